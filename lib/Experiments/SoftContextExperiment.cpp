// Contexts that are not text: embeddings in place of a prompt's tokens. They are the tokens' own,
// these with noise, embeddings between those of two prompts, or those of a file.
#include "Experiments.h"
#include "ctxc/Checkpoint/Npy.h"
#include "ctxc/Experiments/Specificity.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "ctxc/Verify/Verify.h"
#include <cmath>
#include <random>

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;

namespace {

/// Noise in units of an embedding's root mean square; and the share of the other prompt in
/// mixtures.
constexpr double noises[] = {0.03, 0.1, 0.3, 1, 3}, mixtures[] = {0.25, 0.5, 0.75, 1};

using Embeddings = std::vector<std::vector<double>>;

/// The embeddings of tokens.
Expected<Embeddings> embeddingsOf(const Program &program, Weights &weights,
                                  llvm::ArrayRef<int64_t> tokens) {
  ProgramStep step = program.steps.front();
  std::vector<int64_t> positions(tokens.size());
  for (auto [i, position] : llvm::enumerate(positions))
    position = i;
  reference::Environment environment{weights, step.layer, tokens, positions};
  reference::Evaluation evaluation(environment);
  auto outputs = reference::evaluateBlock(step.block, {}, evaluation);
  if (!outputs)
    return outputs.takeError();
  const reference::Matrix &values = evaluation.rows(valueOfToken(step.block));
  Embeddings embeddings;
  for (int64_t i = 0; i < values.rows(); ++i)
    embeddings.emplace_back(values.row(i).data(), values.row(i).data() + values.cols());
  return embeddings;
}

/// Adds noise of `amount` times the embedding's root mean square, the same at every call.
void addNoise(Embeddings &embeddings, double amount) {
  std::mt19937_64 random(1);
  // std::normal_distribution differs between libraries; this does not.
  auto uniform = [&] { return (double(random() >> 11) + 0.5) * 0x1p-53; };
  for (std::vector<double> &embedding : embeddings) {
    double square = 0;
    for (double x : embedding)
      square += x * x;
    double size = amount * std::sqrt(square / embedding.size());
    for (double &x : embedding)
      x += size * std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform());
  }
}

/// Moves `embeddings` towards `others`, as many as both have.
void mix(Embeddings &embeddings, const Embeddings &others, double part) {
  for (auto [embedding, other] : llvm::zip(embeddings, others))
    for (auto [x, y] : llvm::zip(embedding, other))
      x = (1 - part) * x + part * y;
}

class SoftContextExperiment {
public:
  explicit SoftContextExperiment(Lab &lab) : lab(lab) {}

  Error run() {
    if (Error error = readFile())
      return error;
    contexts = {{"own", 0}};
    for (double amount : noises)
      contexts.push_back({"noise", amount});
    for (double amount : mixtures)
      if (lab.prompts.size() > 1)
        contexts.push_back({"mix", amount});
    if (!file.empty())
      contexts.push_back({"file", 0});
    lab.progress.expect(lab.dtypes.size() * lab.updates.size() * lab.prompts.size() *
                        contexts.size());
    for (const std::string &dtype : lab.dtypes)
      for (const std::string &update : lab.updates)
        if (Error error = run(dtype, update))
          return error;
    return Error::success();
  }

private:
  struct Context {
    StringRef kind;
    double amount;
  };

  Error readFile() {
    StringRef path = lab.option("embeddings", "");
    if (path.empty())
      return Error::success();
    auto matrix = readNpyMatrix(path);
    if (!matrix)
      return matrix.takeError();
    for (int64_t i = 0; i < matrix->rows; ++i)
      file.push_back(matrix->row(i).vec());
    return Error::success();
  }

  std::string keyOf(const std::string &dtype, const std::string &update, size_t prompt,
                    const Context &context) const {
    return key({{"dtype", dtype},
                {"update", update},
                {"prompt", std::to_string(prompt)},
                {"rows", context.kind.str()},
                {"amount", std::to_string(context.amount)}});
  }

  Error run(const std::string &dtype, const std::string &update) {
    auto model = lab.open({dtype, update});
    if (!model)
      return model.takeError();
    if (!embeddingWidth((*model)->program()))
      return makeError(
          "soft-context: the model has no place for embeddings: it reads the token for more "
          "than its embedding");
    // All tokens but the first, which models treat unlike others, and the last.
    std::vector<Embeddings> own;
    for (const Prompt &prompt : lab.prompts) {
      auto embeddings = embeddingsOf((*model)->program(), (*model)->weights(),
                                     llvm::ArrayRef(prompt.tokens).drop_front().drop_back());
      if (!embeddings)
        return embeddings.takeError();
      own.push_back(std::move(*embeddings));
    }
    for (size_t prompt = 0; prompt < lab.prompts.size(); ++prompt) {
      lab.progress.begin(dtype + " " + update);
      for (const Context &context : contexts) {
        bool there = lab.records.has(keyOf(dtype, update, prompt, context));
        if (!there)
          if (Error error = run(**model, dtype, update, prompt, context, own))
            return error;
        lab.progress.advance(1, there);
      }
    }
    return Error::success();
  }

  std::vector<Input> inputsOf(size_t prompt, const Context &context,
                              llvm::ArrayRef<Embeddings> own) const {
    llvm::ArrayRef<int64_t> tokens = lab.prompts[prompt].tokens;
    std::vector<Input> inputs = toInputs(tokens);
    if (context.kind == "file") {
      std::vector<Input> embeddings;
      for (const std::vector<double> &embedding : file)
        embeddings.push_back(Input::ofEmbedding(embedding));
      inputs.insert(inputs.begin() + 1, embeddings.begin(), embeddings.end());
      return inputs;
    }
    Embeddings embeddings = own[prompt];
    if (context.kind == "noise")
      addNoise(embeddings, context.amount);
    if (context.kind == "mix")
      mix(embeddings, own[(prompt + 1) % own.size()], context.amount);
    for (auto [i, embedding] : llvm::enumerate(embeddings))
      inputs[i + 1] = Input::ofEmbedding(embedding);
    return inputs;
  }

  Error run(ReadyModel &model, const std::string &dtype, const std::string &update, size_t prompt,
            const Context &context, llvm::ArrayRef<Embeddings> own) {
    llvm::ArrayRef<int64_t> tokens = lab.prompts[prompt].tokens;
    auto ofTokens = answersInContext(model.executor(), tokens, int64_t(tokens.size() - 1), nullptr);
    if (!ofTokens)
      return ofTokens.takeError();
    RunRequest request;
    request.tokens = inputsOf(prompt, context, own);
    std::vector<double> full;
    request.logits = [&](llvm::ArrayRef<double> logits, llvm::ArrayRef<double>,
                         llvm::ArrayRef<double>) { full = logits.vec(); };
    auto result = verify(model.executor(), request, 1, model.norms(), [](const VerifyStep &) {});
    if (!result)
      return result.takeError();
    const VerifyStep &step = result->steps.front();
    Object record = tokenJson(lab, step.position, step.token, step.next);
    record["dtype"] = dtype;
    record["update"] = update;
    record["prompt"] = int64_t(prompt);
    record["rows"] = context.kind;
    record["amount"] = context.amount;
    merge(record, metricsJson(step.patched));
    record["control"] = metricsJson(step.control);
    merge(record, normJson(step.norm));
    AnswerChange change = changeOf(ofTokens->logits.front(), full);
    record["fromTokens"] = Object{{"totalVariation", number(change.totalVariation)},
                                  {"divergence", number(change.divergence)},
                                  {"linf", number(change.linf)},
                                  {"sameToken", change.sameToken}};
    return lab.records.add(keyOf(dtype, update, prompt, context), std::move(record));
  }

  Lab &lab;
  std::vector<Context> contexts;
  Embeddings file;
};

Error runSoftContext(Lab &lab) { return SoftContextExperiment(lab).run(); }

} // namespace

Experiment experiments::softContextExperiment() {
  Experiment experiment;
  experiment.name = "soft-context";
  experiment.paper =
      "not in the paper, whose equations do not depend on where a context comes from";
  experiment.summary =
      "contexts that are not tokens: embeddings in place of a prompt's tokens: the\n"
      "tokens' own, with noise, between two prompts, or from a file";
  experiment.generate = 1;
  experiment.dtypes = {"f32", "bf16"};
  experiment.updates = {"least"};
  experiment.options = {{"embeddings", "FILE.npy",
                         "soft-context: as for `ctxc verify`; they are inserted behind each\n"
                         "prompt's first token"}};
  experiment.run = runSoftContext;
  return experiment;
}
