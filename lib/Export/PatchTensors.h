//===- PatchTensors.h - a patch's parameters as tensors of a file -----------===//
//
// The tensors of PatchFile.h, each name behind a prefix, so that a file can hold many patches.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LIB_EXPORT_PATCHTENSORS_H
#define CTXC_LIB_EXPORT_PATCHTENSORS_H

#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Program/Patch.h"
#include "ctxc/Support/Error.h"

namespace ctxc {

/// Collects problems; after the first fifty they are only counted.
class Problems {
public:
  explicit Problems(llvm::StringRef prefix) : prefix(prefix) {}
  void add(const llvm::Twine &message) {
    if (count++ < limit)
      errors = llvm::joinErrors(std::move(errors), makeError(prefix + message));
  }
  llvm::Error take() {
    if (count > limit)
      errors = llvm::joinErrors(
          std::move(errors),
          makeError(prefix + "and " + llvm::Twine(count - limit) + " more problems of the kind"));
    return std::move(errors);
  }

private:
  static constexpr unsigned limit = 50;
  std::string prefix;
  llvm::Error errors = llvm::Error::success();
  unsigned count = 0;
};

/// Appends the tensors of `patch`, which must live until they are written.
void addTensors(const Patch &patch, llvm::StringRef prefix, std::vector<TensorSource> &tensors);

/// The patch of those tensors whose names begin with `prefix`, its parameters in natural order of
/// their names. Fails with what `problems` has and what is added to it.
llvm::Expected<Patch> readTensors(llvm::ArrayRef<TensorView> views, llvm::StringRef prefix,
                                  Problems &problems);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_PATCHTENSORS_H
