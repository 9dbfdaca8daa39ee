//===- Payloads.h - the numbers in a .pt2 file ------------------------------===//
#ifndef CTXC_IMPORT_PAYLOADS_H
#define CTXC_IMPORT_PAYLOADS_H

#include "Archive.h"
#include "ctxc/Checkpoint/Checkpoint.h"
#include <map>

namespace ctxc::pt2 {

/// The tensors of a program: parameters, buffers and constants, by name.
class Payloads {
public:
  /// Reads what the archive says of them, and none of their numbers. `archive` must outlive it.
  static llvm::Expected<Payloads> read(const Archive &archive);

  /// Whether the numbers of tensor `name` are in the file: not where it was exported without
  /// memory.
  bool has(llvm::StringRef name) const;
  /// The entries of a tensor, row-major.
  llvm::Expected<std::vector<double>> numbers(llvm::StringRef name) const;
  /// All tensors in the file for which `takes` is true, as a checkpoint that holds their numbers;
  /// null where there are none.
  /// Their memory is that of this object.
  llvm::Expected<std::unique_ptr<Checkpoint>>
  checkpoint(llvm::function_ref<bool(llvm::StringRef)> takes);
  /// Identifies the numbers of all tensors, as python/ctxc/_source_numbers.py does.
  llvm::Expected<std::string> digest() const;
  /// What owns the memory of all checkpoints that were made.
  std::shared_ptr<const void> memory() const { return kept; }

private:
  struct Payload {
    std::string entry;
    DType dtype;
    llvm::SmallVector<int64_t, 4> shape, strides;
    int64_t offset = 0;
    bool hasMemory = false;
  };
  llvm::Error readConfig(llvm::StringRef folder, llvm::StringRef config);
  llvm::Expected<std::string> bytes(llvm::StringRef name, const Payload &payload) const;

  const Archive *archive = nullptr;
  std::map<std::string, Payload, std::less<>> payloads;
  std::shared_ptr<std::map<std::string, std::string>> kept =
      std::make_shared<std::map<std::string, std::string>>();
};

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_PAYLOADS_H
