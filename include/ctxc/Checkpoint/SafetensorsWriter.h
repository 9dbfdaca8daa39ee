//===- SafetensorsWriter.h - write a safetensors file ---------------------===//
#ifndef CTXC_CHECKPOINT_SAFETENSORSWRITER_H
#define CTXC_CHECKPOINT_SAFETENSORSWRITER_H

#include "ctxc/Checkpoint/DType.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ctxc {

/// A tensor to be written. `write` is called when the tensor's turn comes, and writes
/// exactly the bytes that dtype and shape need, so that no other tensor is in memory.
struct TensorSource {
  std::string name;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  std::function<llvm::Error(llvm::raw_ostream &)> write;
};

/// Writes `path` atomically (AtomicFile.h), as the format's own writer would:
/// tensors by width of element, widest first, then by name; the header padded
/// with spaces to a multiple of 8. Fails on a name given twice, a name or
/// metadata that is not UTF-8, a size that overflows, a source that writes
/// another number of bytes, and whatever the system refuses.
llvm::Error writeSafetensors(llvm::StringRef path, std::vector<TensorSource> tensors,
                             const std::map<std::string, std::string> &metadata);

/// The layout of a file that writeSafetensors writes.
struct SafetensorsLayout {
  std::string header;            ///< with its length before it: the file's first bytes
  std::vector<uint64_t> offsets; ///< of each tensor, from the file's beginning
  uint64_t size = 0;             ///< of the file
};

/// Sorts `tensors` in the order of the file, and computes its layout. Their `write` is not called.
llvm::Expected<SafetensorsLayout>
layOutSafetensors(llvm::StringRef path, std::vector<TensorSource> &tensors,
                  const std::map<std::string, std::string> &metadata);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_SAFETENSORSWRITER_H
