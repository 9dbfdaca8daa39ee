// The sizes and the source lines that a .pt2 file writes as text.
#ifndef CTXC_IMPORT_SYMBOLS_H
#define CTXC_IMPORT_SYMBOLS_H

#include "llvm/ADT/SmallVector.h"
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

/// Whether a text is such an expression as readSize gives it: "Mul(2, t)".
bool isSizeText(llvm::StringRef text);

/// A line of a Python file, from 1.
struct SourceLine {
  llvm::StringRef file;
  unsigned line = 0;
  unsigned column = 1; ///< of the expression, from 1
  unsigned width = 0;  ///< of the expression; 0 where the trace does not mark it
  /// As it stands in the file where the expression is marked, else without the white space around
  /// it; may be empty.
  llvm::StringRef text;
};

/// The lines of a stack trace that are not torch's own, the innermost first. Expressions are marked
/// as Python marks them, by a line of carets below.
llvm::SmallVector<SourceLine> ownLines(llvm::StringRef stackTrace);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_SYMBOLS_H
