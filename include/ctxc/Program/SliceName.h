//===- SliceName.h - names of the experts of a bank -----------------------===//
//
// A parameter whose name has a `*` stands for as many stored tensors as its first dimension
// has entries: "experts.*.w2" is "experts.0.w2", "experts.1.w2", …. Any other bank is one stored
// tensor, whose slices are named by their index: "experts.down_proj[3]".
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_SLICENAME_H
#define CTXC_PROGRAM_SLICENAME_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <optional>
#include <string>
#include <utility>

namespace ctxc {

/// Whether a parameter's name stands for several stored tensors.
inline bool isBankName(llvm::StringRef name) { return name.contains('*'); }

/// The name of entry `index` of the first dimension of `parameter`.
inline std::string sliceName(llvm::StringRef parameter, int64_t index) {
  auto [before, after] = parameter.split('*');
  if (isBankName(parameter))
    return (before + llvm::Twine(index) + after).str();
  return (parameter + "[" + llvm::Twine(index) + "]").str();
}

namespace detail {
/// An index as sliceName writes it.
inline std::optional<int64_t> sliceNumber(llvm::StringRef digits) {
  int64_t index;
  if (digits.getAsInteger(10, index) || index < 0 || std::to_string(index) != digits)
    return std::nullopt;
  return index;
}
} // namespace detail

/// Splits the name of a slice of one tensor: "experts.down_proj[3]" gives "experts.down_proj"
/// and 3.
inline std::optional<std::pair<llvm::StringRef, int64_t>> splitSliceName(llvm::StringRef name) {
  if (!name.consume_back("]"))
    return std::nullopt;
  auto [tensor, digits] = name.rsplit('[');
  std::optional<int64_t> index = detail::sliceNumber(digits);
  if (!index)
    return std::nullopt;
  return std::pair(tensor, *index);
}

/// The index of the slice of `parameter` named `name`; none if it is not a slice of it.
inline std::optional<int64_t> sliceIndex(llvm::StringRef parameter, llvm::StringRef name) {
  if (!isBankName(parameter)) {
    auto split = splitSliceName(name);
    return split && split->first == parameter ? std::optional(split->second) : std::nullopt;
  }
  auto [before, after] = parameter.split('*');
  if (!name.consume_front(before) || !name.consume_back(after))
    return std::nullopt;
  return detail::sliceNumber(name);
}

} // namespace ctxc

#endif // CTXC_PROGRAM_SLICENAME_H
