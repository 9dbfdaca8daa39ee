#include "ctxc/Support/ForeignText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

using namespace ctxc;
using llvm::StringRef;

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
