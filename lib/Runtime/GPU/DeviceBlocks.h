// Matrices whose scales are stored in a tensor of their own, as blocks of a GPU's memory.
#ifndef CTXC_LIB_RUNTIME_GPU_DEVICEBLOCKS_H
#define CTXC_LIB_RUNTIME_GPU_DEVICEBLOCKS_H

#include "ctxc/Runtime/GPU/Device.h"
#include "mlir/IR/BuiltinTypes.h"

namespace ctxc {

/// Uploads the matrix of the type `stored` at `matrix` (a ctxc_scaled_matrix), in the blocks of
/// xf::QuantizedType::deviceBytesOf, from byte `offset` of `to` on. Fails where a scale belongs to
/// columns that are no whole blocks, or is not a number that mxfp4's blocks can have.
llvm::Error uploadBlocks(Device &device, Device::Buffer &to, size_t offset, llvm::StringRef name,
                         mlir::RankedTensorType stored, const void *matrix);

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_DEVICEBLOCKS_H
