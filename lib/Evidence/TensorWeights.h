// Weights in memory, under a block's own names.
#ifndef CTXC_LIB_EVIDENCE_TENSORWEIGHTS_H
#define CTXC_LIB_EVIDENCE_TENSORWEIGHTS_H

#include "ctxc/Evidence/Witness.h"

namespace ctxc {

class TensorWeights : public Weights {
public:
  /// The tensors must outlive this object.
  explicit TensorWeights(llvm::ArrayRef<WitnessTensor> tensors) : tensors(tensors) {}
  llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override;
  llvm::Expected<std::string> hash() override { return "witness"; }

private:
  llvm::ArrayRef<WitnessTensor> tensors;
};

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_TENSORWEIGHTS_H
