// The sizes and the source lines that a .pt2 file writes as text.
#ifndef CTXC_IMPORT_SYMBOLS_H
#define CTXC_IMPORT_SYMBOLS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace ctxc::pt2 {

/// A number, or the text of an expression.
using Size = std::variant<int64_t, std::string>;

/// What sympy's srepr() wrote: "Symbol('s0', integer=True)" is "s0", "Integer(3)" is 3,
/// "Mul(Integer(2), Symbol('s0'))" is "Mul(2, s0)". None where it is no such text, is longer than
/// 4096 bytes or nested deeper than 64.
std::optional<Size> readSize(llvm::StringRef srepr);

/// A line of a Python file, from 1.
struct SourceLine {
  llvm::StringRef file;
  unsigned line = 0;
  llvm::StringRef text; ///< without the white space around it; may be empty
};

/// The innermost line of a stack trace that is not torch's own.
std::optional<SourceLine> innermostLine(llvm::StringRef stackTrace);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_SYMBOLS_H
