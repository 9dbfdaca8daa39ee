//===- ForeignText.h - text from untrusted sources -------------------------===//
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

/// Fails if `text`, in MLIR's syntax or JSON, is nested deeper than deepestNesting: by its
/// brackets, by aliases (#name and !name) inside of aliases, or by the operators of one expression
/// (of affine maps). The content of strings and comments (from // on) does not count. Also fails if
/// the text is larger than largestExpansion with its aliases replaced. The message begins with
/// `name` and the line.
llvm::Error checkNesting(llvm::StringRef text, llvm::StringRef name);

/// `text` with \xNN in place of each control character except line feeds and tabs, and of bytes
/// that are not UTF-8, so that a terminal shows the text and does nothing else.
std::string printable(llvm::StringRef text);

/// The same, also for line feeds and tabs, so that text from outside cannot begin a new line.
std::string printableLine(llvm::StringRef text);

} // namespace ctxc

#endif // CTXC_SUPPORT_FOREIGNTEXT_H
