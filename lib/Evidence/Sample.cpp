#include "ctxc/Evidence/Sample.h"
#include "Random.h"

using namespace mlir;
using namespace ctxc;

static Activations draw(xf::BlockOp block, Random &random, int64_t tokens) {
  return llvm::map_to_vector(block.getArgumentTypes(), [&](Type type) {
    return random.normal(tokens, cast<RankedTensorType>(type).getNumElements());
  });
}

Sample ctxc::randomSample(xf::BlockOp block, const SampleOptions &options) {
  Random random(options.seed);
  Sample sample;
  sample.context = draw(block, random, options.context);
  sample.full = draw(block, random, 1);
  sample.reduced = sample.full;
  if (options.inputsAreSources)
    for (auto [i, other] : llvm::enumerate(draw(block, random, 1)))
      if (options.inputsAreSources.contains(i))
        sample.reduced[i] = other;
  sample.others = draw(block, random, options.others);
  sample.kept = std::min(options.kept, options.context);
  return sample;
}
