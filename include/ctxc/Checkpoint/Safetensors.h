//===- Safetensors.h - read a safetensors file in place -------------------===//
//
// A file is a little-endian u64 N, N bytes of JSON, then the tensors' bytes.
// Every statement of the header is checked against the file before it is used or
// memory is allocated: what these functions return can be read without a
// further check, except that elements may be NaN (checkFinite) and the file
// may be cut short later (MappedFile.h).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_SAFETENSORS_H
#define CTXC_CHECKPOINT_SAFETENSORS_H

#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ctxc {

/// One stored tensor. `data` points into the map, need not be aligned, and
/// lives as long as the file it came from. Rank 0 and zero sizes are legal.
struct TensorView {
  std::string name;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  const uint8_t *data = nullptr;
  uint64_t bytes = 0;
  std::string file; ///< path of the file, for messages
  /// For a type with separate scales (ScaledTensors.h): each matrix with its scales; `data` and
  /// `bytes` are then those of the elements.
  std::shared_ptr<ctxc_scaled_matrix[]> matrices = {};

  int64_t elements() const; ///< product of `shape`
  /// What readFloats and kernels take.
  const void *stored() const { return matrices ? static_cast<const void *>(matrices.get()) : data; }
};

/// Whether the shapes are equal except for axes of one entry between others, or in front of a
/// matrix (a number may have an axis or none), so that a parameter of one shape can hold what is
/// stored in the other. PyTorch stores a number without an axis, and the weights of a depthwise
/// convolution with another axis between the channels and the taps; modules store tables of
/// positions for one sequence.
bool isSameShape(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// What a header says about one tensor; [begin, end) counts from dataStart.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  uint64_t dataStart = 0;                ///< 8 + N
  std::vector<SafetensorsEntry> entries; ///< by offset
  std::map<std::string, std::string> metadata;
};

/// Reads the header of the file whose content is `bytes`. Errors, joined, each
/// beginning `path: `: a length beyond the file or above 100,000,000; a header
/// that is not UTF-8, not a JSON object or nested deeply; a key given twice;
/// metadata that is not text; an unknown dtype; a shape that is no list of
/// non-negative integers or whose size overflows; offsets that do not enclose
/// exactly the shape's bytes; holes, overlaps, trailing bytes.
llvm::Expected<SafetensorsHeader> parseSafetensorsHeader(llvm::ArrayRef<uint8_t> bytes,
                                                         llvm::StringRef path);

class SafetensorsFile {
public:
  static llvm::Expected<std::unique_ptr<SafetensorsFile>> open(llvm::StringRef path);

  llvm::ArrayRef<TensorView> tensors() const { return views; } ///< by offset
  const TensorView *find(llvm::StringRef name) const;
  const std::map<std::string, std::string> &metadata() const { return meta; }
  uint64_t dataStart() const { return start; } ///< 8 + header length
  const MappedFile &file() const { return *mapped; }

private:
  std::unique_ptr<MappedFile> mapped;
  std::vector<TensorView> views;
  std::map<std::string, size_t> byName;
  std::map<std::string, std::string> meta;
  uint64_t start = 0;
};

/// Fails at the first element of a floating tensor that is NaN or infinite:
/// `FILE: tensor NAME: element [i, j] is NaN; …`. Tensors of other types pass.
/// Called when a layer's weights are first read.
llvm::Error checkFinite(const TensorView &tensor);
/// The same for `count` elements from `begin` on; whole blocks if the type has blocks.
llvm::Error checkFinite(const TensorView &tensor, int64_t begin, int64_t count);

/// A shape as messages show it: "[2, 3]".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_SAFETENSORS_H
