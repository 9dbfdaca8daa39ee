//===- Payloads.h - the numbers in a program's file --------------------------===//
#ifndef CTXC_IMPORT_PAYLOADS_H
#define CTXC_IMPORT_PAYLOADS_H

#include "Archive.h"
#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include <map>

namespace ctxc::pt2 {

/// The tensors of a program: parameters, buffers and constants, by name.
class Payloads {
public:
  /// Reads what the archive says of them, and none of their numbers. `archive` must outlive it.
  static llvm::Expected<Payloads> read(const Archive &archive);
  /// The tensors of one of ctxc's own files.
  static Payloads of(std::shared_ptr<const SafetensorsFile> file);

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
  /// The name that stands for the tensor, where several are one.
  llvm::StringRef oneOf(llvm::StringRef name) const;
  /// What owns the memory of all checkpoints that were made.
  std::shared_ptr<const void> memory() const { return kept; }

private:
  struct Payload {
    std::string entry;
    DType dtype;
    llvm::SmallVector<int64_t, 4> shape, strides;
    int64_t offset = 0;
    bool hasMemory = false;
    llvm::StringRef mapped = {}; ///< its bytes, where they need no copy
  };
  struct Kept {
    std::map<std::string, std::string, std::less<>> copies;
    std::shared_ptr<const SafetensorsFile> file;
  };
  llvm::Error readConfig(llvm::StringRef folder, llvm::StringRef config);
  llvm::Expected<std::string> copy(llvm::StringRef name, const Payload &payload) const;
  llvm::Expected<llvm::StringRef> bytes(llvm::StringRef name, const Payload &payload) const;

  const Archive *archive = nullptr;
  std::string title; ///< of the file
  std::map<std::string, Payload, std::less<>> payloads;
  std::map<std::string, std::string, std::less<>> aliases;
  std::shared_ptr<Kept> kept = std::make_shared<Kept>();
};

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_PAYLOADS_H
