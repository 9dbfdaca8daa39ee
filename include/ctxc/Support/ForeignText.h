//===- ForeignText.h - text that nobody vouches for ------------------------===//
#ifndef CTXC_SUPPORT_FOREIGNTEXT_H
#define CTXC_SUPPORT_FOREIGNTEXT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ctxc {

/// The deepest nesting of brackets that a text may have: parsers that call themselves for each
/// would run out of stack.
constexpr unsigned deepestNesting = 256;

/// Fails where brackets of `text`, which is MLIR's or JSON's, are nested deeper. Those in strings
/// and in comments (from // on) do not count. `name` leads the message, with the line.
llvm::Error checkNesting(llvm::StringRef text, llvm::StringRef name);

/// `text` with \xNN in the place of each control character but line feeds and tabs, and of what is
/// no UTF-8, so that a terminal shows it and does nothing else.
std::string printable(llvm::StringRef text);

/// The same with line feeds and tabs too: what comes from outside does not begin a line.
std::string printableLine(llvm::StringRef text);

} // namespace ctxc

#endif // CTXC_SUPPORT_FOREIGNTEXT_H
