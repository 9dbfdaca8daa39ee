#include "CompletedWeights.h"

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
