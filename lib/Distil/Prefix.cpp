#include "ctxc/Distil/Prefix.h"
#include "Sequences.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;

/// `rows`, of tokens × heads × width, with the heads outermost.
static std::vector<float> headsFirst(llvm::ArrayRef<float> rows, int64_t tokens, int64_t heads,
                                     int64_t width) {
  std::vector<float> ordered(rows.size());
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t head = 0; head < heads; ++head)
      llvm::copy(rows.slice((token * heads + head) * width, width),
                 ordered.begin() + (head * tokens + token) * width);
  return ordered;
}

/// The shapes of what a contextual op keeps of a token.
static auto keptShapes(xf::ContextualOpInterface op) {
  return llvm::map_to_vector(op.getStateOperands(), [](Value operand) {
    return cast<RankedTensorType>(operand.getType()).getShape();
  });
}

llvm::Error ctxc::checkPrefixCache(const SplitModel &model) {
  std::string unlike;
  for (ProgramStep step : model.split.program.steps)
    step.block.walk([&](xf::ContextualOpInterface op) {
      auto shapes = keptShapes(op);
      if (!isa<xf::AttentionOp>(op) || shapes.size() != 2 || shapes[0].size() != 2 ||
          shapes[1].size() != 2 || shapes[0][0] != shapes[1][0])
        unlike = op->getName().getStringRef().str();
    });
  if (unlike.empty())
    return llvm::Error::success();
  return makeError("'" + unlike +
                   "' keeps something else of the tokens in front than a key and a "
                   "value of each head, so that they cannot be stored; let the model read them");
}

/// Adds what the attentions of `block` keep.
static void addKept(xf::BlockOp block, llvm::ArrayRef<std::vector<float>> rows,
                    std::vector<KeysAndValues> &all) {
  block.walk([&](xf::ContextualOpInterface op) {
    auto shapes = keptShapes(op);
    KeysAndValues kept;
    kept.heads = shapes[0][0];
    kept.keyWidth = shapes[0][1];
    kept.valueWidth = shapes[1][1];
    kept.tokens = rows[0].size() / (kept.heads * kept.keyWidth);
    kept.keys = headsFirst(rows[0], kept.tokens, kept.heads, kept.keyWidth);
    kept.values = headsFirst(rows[1], kept.tokens, kept.heads, kept.valueWidth);
    rows = rows.drop_front(2);
    all.push_back(std::move(kept));
  });
}

llvm::Expected<std::vector<KeysAndValues>> ctxc::prefixCache(SplitModel model,
                                                             const Adapter &adapter) {
  if (!adapter.entries.empty())
    return adapter.entries.attentions;
  if (adapter.prefix.empty())
    return makeError("no token stands in front of the texts");
  if (llvm::Error error = checkPrefixCache(model))
    return std::move(error);
  auto front = OwnedFront::make(model, adapter);
  if (!front)
    return front.takeError();
  AdaptedWeights adapted(model.weights);
  if (llvm::Error error = adapted.add(adapter))
    return std::move(error);
  std::vector<PassageSequence> sequences;
  addAfter(sequences, front->get(), {});
  PassageCache cache(model.steps);
  sequences.front().cached = cache.add(adapter.inFront());
  auto passage = Passage::start(model.steps, adapted, std::move(sequences), &cache);
  if (!passage)
    return passage.takeError();
  llvm::ArrayRef<ProgramStep> steps = model.split.program.steps;
  std::vector<KeysAndValues> all;
  for (size_t step = 0, end = model.split.program.head().value_or(steps.size()); step < end;
       ++step) {
    if (llvm::Error error = passage->run(step))
      return std::move(error);
    addKept(steps[step].block, cache.rows(0, step), all);
  }
  return all;
}
