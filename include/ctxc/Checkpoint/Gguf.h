//===- Gguf.h - read a GGUF file in place ---------------------------------===//
//
// A file is a header of typed key-value pairs, a directory of tensors, and their
// bytes, each tensor aligned (ggml's docs/gguf.md, versions 2 and 3, little-endian).
// Every statement is checked against the file before it is used or memory is
// allocated, as in Safetensors.h; elements may be NaN (checkFinite). Names and
// shapes are the file's own; GgufModel.h translates them for a model.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_GGUF_H
#define CTXC_CHECKPOINT_GGUF_H

#include "ctxc/Checkpoint/Safetensors.h"
#include <variant>

namespace ctxc {

/// An array of metadata, in the mapped file.
struct GgufArray {
  uint32_t type = 0; ///< of its elements
  uint64_t count = 0;
  llvm::ArrayRef<uint8_t> bytes; ///< all elements
};

/// One value of metadata. Text is not checked to be UTF-8: a token need not be.
using GgufValue = std::variant<bool, int64_t, uint64_t, double, llvm::StringRef, GgufArray>;

class GgufFile {
public:
  /// Errors, joined, each beginning `path: `: not GGUF, or of another version or byte order;
  /// a count or length beyond the file; a key or tensor given twice; an unknown type; an
  /// alignment that is no power of two; a row that is no whole number of blocks; a size that
  /// overflows; tensors that overlap, leave holes or go beyond the file; bytes after the last.
  static llvm::Expected<std::unique_ptr<GgufFile>> open(llvm::StringRef path);

  /// The same for a model, whose tensors may be in several files, as llama.cpp's gguf-split divides
  /// them: `path` is the first part, NAME-00001-of-00003.gguf. Errors: a part that is missing or
  /// belongs to other ones; a tensor in two parts; another number of them than the first part says.
  static llvm::Expected<std::unique_ptr<GgufFile>> openModel(llvm::StringRef path);

  /// All tensors, by part and offset, under the file's names; shapes as (out, in), the last
  /// dimension varying fastest.
  llvm::ArrayRef<TensorView> tensors() const { return views; }
  const TensorView *find(llvm::StringRef name) const;

  const std::map<std::string, GgufValue> &metadata() const { return values; }
  /// The key's value; none if it is absent or of another kind. number() also gives integers.
  std::optional<int64_t> integer(llvm::StringRef key) const;
  std::optional<double> number(llvm::StringRef key) const;
  std::optional<bool> flag(llvm::StringRef key) const;
  std::optional<llvm::StringRef> text(llvm::StringRef key) const;
  std::optional<std::vector<llvm::StringRef>> texts(llvm::StringRef key) const;
  std::optional<std::vector<double>> numbers(llvm::StringRef key) const;

  /// The parts behind the first.
  llvm::ArrayRef<std::unique_ptr<GgufFile>> parts() const { return others; }

  const MappedFile &file() const { return *mapped; }
  uint64_t dataStart() const { return start; } ///< where the tensors begin

private:
  llvm::Error addParts(int64_t count);

  std::unique_ptr<MappedFile> mapped;
  std::vector<std::unique_ptr<GgufFile>> others;
  std::vector<TensorView> views;
  std::map<std::string, GgufValue> values;
  uint64_t start = 0;
};

} // namespace ctxc

#endif // CTXC_CHECKPOINT_GGUF_H
