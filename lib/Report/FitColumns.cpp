#include "ctxc/Report/VerifyReport.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"

using namespace ctxc;

/// The character at the start of `text` and how it is shown; consumes it.
static std::string takeCharacter(llvm::StringRef &text) {
  size_t length = llvm::getNumBytesForUTF8(text[0]);
  if (length >= 1 && length <= text.size()) {
    llvm::StringRef character = text.take_front(length);
    if (llvm::sys::unicode::columnWidthUTF8(character) >= 0) {
      text = text.drop_front(length);
      return character.str();
    }
  }
  std::string escaped = "\\x" + llvm::utohexstr(static_cast<uint8_t>(text[0]), true, 2);
  text = text.drop_front(1);
  return escaped;
}

std::string ctxc::fitColumns(llvm::StringRef text, unsigned columns, bool pad) {
  // `cut` is the longest part that leaves a column for "…".
  std::string shown, cut;
  unsigned used = 0, cutUsed = 0;
  bool fits = true;
  while (!text.empty()) {
    std::string character = takeCharacter(text);
    unsigned width = llvm::sys::unicode::columnWidthUTF8(character);
    if (used + width > columns) {
      fits = false;
      break;
    }
    shown += character;
    used += width;
    if (used < columns) {
      cut = shown;
      cutUsed = used;
    }
  }
  if (!fits) {
    shown = cut + "…";
    used = cutUsed + 1;
  }
  if (pad)
    shown.append(columns - std::min(used, columns), ' ');
  return shown;
}
