#include "ctxc/Tokenizer/TokenName.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using llvm::StringRef;

/// What a table shows for what it could not show as it is.
static StringRef signOf(char c) {
  switch (c) {
  case ' ':
    return "␣";
  case '\n':
    return "\\n";
  case '\r':
    return "\\r";
  case '\t':
    return "\\t";
  default:
    return "";
  }
}

std::string ctxc::visibleText(StringRef bytes) {
  std::string shown;
  while (!bytes.empty()) {
    size_t end = bytes.find_first_of(" \n\r\t");
    shown += printableLine(bytes.take_front(end));
    bytes = bytes.drop_front(std::min(end, bytes.size()));
    if (!bytes.empty())
      shown += signOf(bytes.front());
    bytes = bytes.drop_front(bytes.empty() ? 0 : 1);
  }
  return shown;
}

static std::string idText(int64_t id) {
  return id < 0 ? std::string("(embedding)") : std::to_string(id);
}

std::string TokenName::bytes(int64_t id) const {
  return tokenizer && id >= 0 ? tokenizer->bytes(id) : idText(id);
}

std::string TokenName::piece(int64_t id) const {
  return tokenizer && id >= 0 ? tokenizer->piece(id) : idText(id);
}

std::string TokenName::operator()(int64_t id) const {
  std::string own = bytes(id);
  return visibleText(own.empty() ? piece(id) : own);
}

std::string TokenName::text(int64_t id) const {
  std::string own = bytes(id);
  return llvm::json::isUTF8(own) ? own : printableLine(own);
}
