// The prompts of experiments, and functions that all experiments use.
#include "ctxc/Experiments/Lab.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;

llvm::ArrayRef<llvm::StringLiteral> experiments::paperPrompts() {
  // The lines of examples/02-gemma-3-270m/prompts.txt; a unit test compares them.
  static constexpr llvm::StringLiteral prompts[] = {
      "Write a single-sentence weather forecast for Mars, from the perspective of a slightly "
      "annoyed robot:",
      "What is the meaning of life? Answer in exactly 20 words without using the letter e:",
      "Explain the word \"bug\" in computer programming to a medieval peasant:",
      "Write a haiku about three siblings named Jack, Fred and Alice:",
      "Write a rhyming couplet about the weights of an MLP absorbing a prompt:"};
  return prompts;
}

std::vector<std::vector<int64_t>> experiments::madeUpPrompts(int64_t vocabulary) {
  std::vector<std::vector<int64_t>> prompts(5);
  uint64_t state = 1;
  for (std::vector<int64_t> &prompt : prompts)
    for (int i = 0; i < 12; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      prompt.push_back((state >> 33) % vocabulary);
    }
  return prompts;
}

std::string experiments::key(llvm::ArrayRef<std::pair<StringRef, std::string>> parts) {
  std::string text;
  for (auto &[name, value] : parts) {
    text += text.empty() ? "" : " ";
    text += (name + "=" + value).str();
  }
  return text;
}

Object experiments::tokenJson(const Lab &lab, int64_t position, int64_t token, int64_t next) {
  return Object{{"position", position},
                {"token", token},
                {"text", lab.tokenName.text(token)},
                {"piece", llvm::json::fixUTF8(lab.tokenName.piece(token))},
                {"next", next},
                {"nextText", next < 0 ? "" : lab.tokenName.text(next)}};
}

Object experiments::normJson(const PatchNorm &norm) {
  return Object{{"matrixNorm", number(norm.matrix)},
                {"matrixRelative", number(norm.matrixRelative)},
                {"vectorNorm", number(norm.vector)},
                {"vectorRelative", number(norm.vectorRelative)}};
}

Object experiments::patchedJson(const VerifyStep &step) {
  Object record = metricsJson(step.patched);
  merge(record, normJson(step.norm));
  double replay = 0;
  int64_t harmful = 0;
  for (const LayerReport &layer : step.layers) {
    replay = std::max(replay, layer.replayError);
    harmful += layer.obligations.harmful;
  }
  record["replayError"] = number(replay);
  record["harmful"] = harmful;
  return record;
}

bool experiments::roundsPatches(StringRef dtype) { return dtype == "bf16" || dtype == "f16"; }

Expected<std::vector<int64_t>> experiments::continueGreedily(Executor &executor,
                                                             const Prompt &prompt, int64_t count) {
  std::vector<int64_t> tokens = prompt.tokens;
  if (count <= 1 || executor.isBidirectional()) // nothing follows an encoder's tokens
    return tokens;
  std::unique_ptr<Run> run = executor.start(tokens.size() + count, Keeps::Seen);
  if (executor.isBidirectional()) { // its tokens come in one call, and one more would change theirs
    auto all = llvm::to_vector(llvm::seq<int64_t>(0, tokens.size()));
    auto logits = executor.forward(*run, tokens, all, ForwardOptions());
    if (!logits)
      return logits.takeError();
    if (int64_t next = argmax(*logits); next >= 0)
      tokens.push_back(next);
    return tokens;
  }
  llvm::ArrayRef<int64_t> context = llvm::ArrayRef(tokens).drop_back();
  auto positions = llvm::to_vector(llvm::seq<int64_t>(0, context.size()));
  auto logits = executor.forward(*run, context, positions, ForwardOptions());
  if (!logits)
    return logits.takeError();
  for (int64_t i = 1; i < count; ++i) {
    auto next = executor.next(*run, tokens.back(), tokens.size() - 1, ForwardOptions());
    if (!next)
      return next.takeError();
    if (*next < 0)
      break;
    tokens.push_back(*next);
  }
  return tokens;
}

llvm::Error experiments::patchLast(
    Executor &executor, llvm::ArrayRef<int64_t> tokens, llvm::ArrayRef<int64_t> kept, int64_t count,
    llvm::function_ref<llvm::Error(int64_t, const Patch &, llvm::ArrayRef<LayerObligations>,
                                   llvm::ArrayRef<double>)>
        sink) {
  RunRequest request;
  request.tokens = toInputs(tokens);
  request.kept = kept.vec();
  RunTimes times;
  if (executor.isBidirectional()) {
    Expected<PatchStep> made = makePatch(executor, request, times);
    if (!made)
      return made.takeError();
    return sink(tokens.size() - 1, made->patch, made->obligations, made->replayError);
  }
  for (int64_t position = tokens.size() - count; position < int64_t(tokens.size()); ++position)
    request.positions.push_back(position);
  return makePatches(executor, request, times, [&](const TokenPatch &given) -> llvm::Error {
    Expected<Patch> patch = given.patch();
    if (!patch)
      return patch.takeError();
    return sink(given.position, *patch, given.obligations, given.replayError);
  });
}
