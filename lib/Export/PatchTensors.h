//===- PatchTensors.h - what a patch file has for a patch, and back -------===//
//
// Each name may stand behind a prefix, so that a file can hold many patches.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_EXPORT_PATCHTENSORS_H
#define CTXC_LIB_EXPORT_PATCHTENSORS_H

#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Export/PatchFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Problems.h"
#include "llvm/ADT/STLExtras.h"

namespace ctxc {

/// One tensor: NAME.u (m, 1), NAME.v (n, 1) or NAME.delta.
struct PatchTensor {
  std::string name;
  llvm::SmallVector<int64_t, 4> shape;
  const std::vector<double> *values; ///< the patch's own
};
std::vector<PatchTensor> tensorsOf(const Patch &patch);

/// The bytes of `values` as floating type `type`.
std::vector<char> bytesAs(DType type, llvm::ArrayRef<double> values);

/// Appends the tensors of `patch`, which must live until they are written, as type `type`.
void addTensors(const Patch &patch, DType type, llvm::StringRef prefix,
                std::vector<TensorSource> &tensors);

/// The patch of those tensors whose names begin with `prefix`, all of type `type`, with its
/// parameters in natural order of their names. Numbers that are not finite are an error of their
/// own.
llvm::Error patchOf(llvm::ArrayRef<TensorView> tensors, DType type, llvm::StringRef prefix,
                    Problems &problems, Patch &patch);

/// The same, failing with what `problems` has and what is added to it.
llvm::Expected<Patch> readTensors(llvm::ArrayRef<TensorView> tensors, DType type,
                                  llvm::StringRef prefix, Problems &problems);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_PATCHTENSORS_H
