#include "Messages.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <unistd.h>

using namespace ctxc::lsp;
using llvm::StringRef;
namespace json = llvm::json;

/// Larger than any document that a person edits.
static constexpr size_t largestMessage = size_t(1) << 30;

std::optional<json::Object> ctxc::lsp::readMessage(FILE *from) {
  size_t size = 0;
  char line[1024];
  while (fgets(line, sizeof(line), from)) {
    StringRef header = StringRef(line).trim();
    if (header.empty() && size)
      break;
    if (header.consume_front_insensitive("content-length:") &&
        (header.trim().getAsInteger(10, size) || size > largestMessage))
      return std::nullopt;
  }
  std::string text(size, 0);
  if (!size || fread(text.data(), 1, size, from) != size)
    return std::nullopt;
  auto value = json::parse(text);
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  if (json::Object *object = value->getAsObject())
    return std::move(*object);
  return std::nullopt;
}

void Sender::send(const json::Object &message) {
  std::string text = llvm::formatv("{0}", json::Value(json::Object(message)));
  text = ("Content-Length: " + llvm::Twine(text.size()) + "\r\n\r\n" + text).str();
  std::lock_guard<std::mutex> lock(mutex);
  for (StringRef rest = text; !rest.empty() && descriptor >= 0;) {
    ssize_t written = write(descriptor, rest.data(), rest.size());
    if (written <= 0)
      return;
    rest = rest.drop_front(written);
  }
}

void Sender::end() {
  std::lock_guard<std::mutex> lock(mutex);
  close(descriptor);
  descriptor = -1;
}
