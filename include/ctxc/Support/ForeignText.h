//===- ForeignText.h - text that nobody vouches for ------------------------===//
#ifndef CTXC_SUPPORT_FOREIGNTEXT_H
#define CTXC_SUPPORT_FOREIGNTEXT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace ctxc {

/// The deepest nesting that a text may have: parsers and printers that call themselves for each
/// level would run out of stack.
constexpr unsigned deepestNesting = 256;

/// How large a text may be once each alias is replaced by what it stands for: 30 lines that each
/// name the alias of the line before twice stand for a text of a gigabyte.
constexpr uint64_t largestExpansion = 256 << 20;

/// Fails where `text`, which is MLIR's or JSON's, is nested deeper: by its brackets, by aliases
/// (#name and !name) inside of aliases, and by the operators of one expression (of affine maps).
/// What stands in strings and in comments (from // on) does not count. Fails as well where the
/// text is larger than largestExpansion with its aliases replaced. `name` leads the message, with
/// the line.
llvm::Error checkNesting(llvm::StringRef text, llvm::StringRef name);

/// `text` with \xNN in the place of each control character but line feeds and tabs, and of what is
/// no UTF-8, so that a terminal shows it and does nothing else.
std::string printable(llvm::StringRef text);

/// The same with line feeds and tabs too: what comes from outside does not begin a line.
std::string printableLine(llvm::StringRef text);

} // namespace ctxc

#endif // CTXC_SUPPORT_FOREIGNTEXT_H
