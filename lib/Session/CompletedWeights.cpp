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
    bool isConstant = constants.find(name) && !(stored && stored->find(name));
    return (isConstant ? fixed : weights)->get(name, type);
  }
  Expected<std::string> hash() override { return weights->hash(); }

private:
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
