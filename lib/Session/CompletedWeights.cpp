#include "CompletedWeights.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using llvm::Expected;

namespace {
class CompletedWeights : public Weights {
public:
  CompletedWeights(std::unique_ptr<Weights> weights, const Checkpoint *stored,
                   const Checkpoint &constants)
      : weights(std::move(weights)), stored(stored), constants(constants),
        fixed(checkpointWeights(constants)) {}

  Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override {
    return ownerOf(name).get(name, type);
  }
  Expected<const void *> getPart(llvm::StringRef name, mlir::RankedTensorType type,
                                 llvm::ArrayRef<ElementRun> runs) override {
    return ownerOf(name).getPart(name, type, runs);
  }
  Expected<std::string> hash() override { return weights->hash(); }

private:
  Weights &ownerOf(llvm::StringRef name) {
    const bool isConstant = constants.find(name) && !(stored && stored->find(name));
    return *(isConstant ? fixed : weights);
  }

  std::unique_ptr<Weights> weights;
  const Checkpoint *stored, &constants;
  std::unique_ptr<Weights> fixed;
};
} // namespace

std::unique_ptr<Weights> ctxc::completedWeights(std::unique_ptr<Weights> weights,
                                                const Checkpoint *stored,
                                                const Checkpoint &constants) {
  return std::make_unique<CompletedWeights>(std::move(weights), stored, constants);
}

llvm::Error ctxc::checkConstants(const Checkpoint &stored, const Checkpoint &constants,
                                 llvm::ArrayRef<std::string> names) {
  for (const std::string &name : names) {
    const TensorView *given = stored.find(name), *own = constants.find(name);
    if (!given || !own)
      continue;
    bool isSame = given->shape == own->shape;
    if (isSame) {
      std::vector<double> found(given->elements()), wanted(found.size());
      readDoubles(given->dtype, given->data, found);
      readDoubles(own->dtype, own->data, wanted);
      // Weights may be stored in a narrower type.
      std::vector<uint8_t> rounded(bytesOf(given->dtype, wanted.size()));
      writeDoubles(given->dtype, wanted, rounded.data());
      readDoubles(given->dtype, rounded.data(), wanted);
      isSame = found == wanted;
    }
    if (!isSame)
      return makeError(stored.directory() + ": '" + name +
                       "' has other numbers than in the program, of which it is a part, as no "
                       "parameter is; expected the same: export the module with these weights");
  }
  return llvm::Error::success();
}
