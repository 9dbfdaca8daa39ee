#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

using namespace ctxc;
using llvm::StringRef;

/// Past a string that begins at `i`.
static size_t endOfString(StringRef text, size_t i) {
  for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
    if (text[i] == '\\')
      ++i;
  return i;
}

llvm::Error ctxc::checkNesting(StringRef text, StringRef name) {
  unsigned depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      i = endOfString(text, i);
    } else if (c == '/' && text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (StringRef("([{<").contains(c)) {
      if (++depth > deepestNesting)
        return makeError(name + ":" + llvm::Twine(text.take_front(i).count('\n') + 1) +
                         ": brackets are nested more than " + llvm::Twine(deepestNesting) +
                         " deep");
    } else if (StringRef(")]}>").contains(c)) {
      bool isArrow = c == '>' && i && text[i - 1] == '-';
      depth -= depth && !isArrow;
    }
  }
  return llvm::Error::success();
}

static std::string escaped(StringRef text, StringRef allowed) {
  std::string shown;
  const auto *end = text.bytes_end();
  for (const auto *at = text.bytes_begin(); at < end;) {
    unsigned size = llvm::getNumBytesForUTF8(*at);
    bool isWhole = size <= end - at && llvm::isLegalUTF8Sequence(at, at + size);
    bool isControl = (*at < 0x20 && !allowed.contains(char(*at))) || *at == 0x7f ||
                     (isWhole && *at == 0xc2 && at[1] < 0xa0);
    if (!isWhole || isControl) {
      shown += "\\x" + llvm::utohexstr(*at++, /*LowerCase=*/true, /*Width=*/2);
      continue;
    }
    shown.append(reinterpret_cast<const char *>(at), size);
    at += size;
  }
  return shown;
}

std::string ctxc::printable(StringRef text) { return escaped(text, "\n\t"); }

std::string ctxc::printableLine(StringRef text) { return escaped(text, ""); }
