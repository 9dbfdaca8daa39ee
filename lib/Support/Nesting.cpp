// How deep a text is nested, found without calling itself.
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

using namespace ctxc;
using llvm::StringRef;

namespace {

/// What an alias stands for: levels of brackets, and bytes.
struct Extent {
  uint64_t depth = 0, size = 0;
};

/// Reads a text from front to back, token by token, as MLIR's lexer does.
class Scan {
public:
  Scan(StringRef text, StringRef name) : text(text), name(name) {}

  llvm::Error run() {
    while (at < text.size())
      if (llvm::Error error = token())
        return error;
    return llvm::Error::success();
  }

private:
  llvm::Error token();
  llvm::Error open();
  void close();
  llvm::Error operation();
  llvm::Error named();
  llvm::Error use(StringRef alias);
  void string();
  void endDefinition();
  StringRef word(StringRef others);
  uint64_t depth() const { return operators.size() - 1; }
  llvm::Error fail(const llvm::Twine &message) const {
    return makeError(name + ":" + llvm::Twine(text.take_front(at).count('\n') + 1) + ": " +
                     message);
  }
  llvm::Error tooDeep(const llvm::Twine &what) const {
    return fail(what + " nested more than " + llvm::Twine(deepestNesting) + " deep");
  }

  StringRef text, name;
  size_t at = 0;
  /// For the text outside of brackets and for each open one, how many operators the expression
  /// has that is being read.
  llvm::SmallVector<unsigned, 64> operators = {0};
  llvm::StringMap<Extent> aliases;
  Extent *defined = nullptr; ///< the alias whose text is being read
  uint64_t outside = 0;      ///< the depth at which that began
  uint64_t expanded = 0;
};

} // namespace

/// Letters, digits and `others`.
StringRef Scan::word(StringRef others) {
  size_t from = at;
  while (at < text.size() && (llvm::isAlnum(text[at]) || others.contains(text[at])))
    ++at;
  return text.slice(from, at);
}

void Scan::string() {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    if (text[at] == '\\')
      ++at;
  ++at;
  if (text.substr(at).starts_with("(")) // "dialect.op"(…)
    endDefinition();
}

/// An op begins, unless it is inside of brackets that an alias began.
void Scan::endDefinition() {
  if (depth() <= outside)
    defined = nullptr;
}

llvm::Error Scan::open() {
  if (depth() == deepestNesting)
    return tooDeep("brackets are");
  operators.push_back(0);
  if (defined)
    defined->depth = std::max(defined->depth, depth() - std::min(depth(), outside));
  return llvm::Error::success();
}

void Scan::close() {
  if (operators.size() > 1)
    operators.pop_back();
}

llvm::Error Scan::operation() {
  if (++operators.back() > deepestNesting)
    return tooDeep("operators are");
  return llvm::Error::success();
}

/// #name, !name, %name, ^name or @name: an alias is defined, or used.
llvm::Error Scan::named() {
  bool mayBeAlias = text[at] == '#' || text[at] == '!';
  if (text[at] == '%')
    endDefinition();
  size_t from = at++;
  word("$._-");
  StringRef alias = text.slice(from, at);
  if (!mayBeAlias)
    return llvm::Error::success();
  StringRef rest = text.substr(at).ltrim();
  if (!rest.starts_with("=") || rest.starts_with("=="))
    return use(alias);
  defined = &aliases[alias];
  outside = depth();
  return llvm::Error::success();
}

llvm::Error Scan::use(StringRef alias) {
  auto found = aliases.find(alias);
  if (found == aliases.end())
    return llvm::Error::success();
  const Extent used = found->second;
  if (depth() + used.depth + 1 > deepestNesting)
    return tooDeep("aliases are");
  expanded += used.size;
  if (defined) {
    uint64_t inside = depth() - std::min(depth(), outside);
    defined->depth = std::max(defined->depth, inside + used.depth + 1);
    defined->size += used.size;
  }
  if (expanded > largestExpansion)
    return fail("with its aliases replaced, the text is larger than " +
                llvm::Twine(largestExpansion) + " bytes");
  return llvm::Error::success();
}

llvm::Error Scan::token() {
  const size_t from = at;
  const char c = text[at];
  llvm::Error error = llvm::Error::success();
  if (c == '"') {
    string();
  } else if (StringRef("#!%^@").contains(c)) {
    error = named();
  } else if (llvm::isAlpha(c) || c == '_') {
    StringRef name = word("_$.");
    if (name == "mod" || name == "floordiv" || name == "ceildiv")
      error = operation();
    else if (name.contains('.') || name == "module")
      endDefinition();
  } else if (text.substr(at).starts_with("//")) {
    at = std::min(text.find('\n', at), text.size());
  } else if (text.substr(at).starts_with("->") || text.substr(at).starts_with("<=") ||
             text.substr(at).starts_with(">=")) {
    at += 2; // no brackets, and no operators
  } else {
    ++at;
    if (StringRef("([{<").contains(c))
      error = open();
    else if (StringRef(")]}>").contains(c))
      close();
    else if (StringRef("+-*").contains(c))
      error = operation();
    else if (StringRef(",:=").contains(c))
      operators.back() = 0;
  }
  if (defined && !error)
    defined->size += at - from;
  return error;
}

llvm::Error ctxc::checkNesting(StringRef text, StringRef name) { return Scan(text, name).run(); }
