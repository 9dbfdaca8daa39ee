#include "ctxc/Support/OwnFile.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/InputFile.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include <unistd.h>

using namespace llvm;
using namespace ctxc;

namespace {

/// A file of which parts are looked at.
class OpenFile {
public:
  explicit OpenFile(StringRef path) {
    struct stat status;
    Expected<int> opened = openRegularFile(path, status);
    if (opened) {
      descriptor = *opened;
      size = status.st_size;
    } else {
      consumeError(opened.takeError());
    }
  }
  ~OpenFile() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  OpenFile(const OpenFile &) = delete;

  /// Up to `count` bytes from `offset` on; none where they cannot be read.
  std::string bytes(uint64_t offset, uint64_t count) const {
    if (descriptor < 0 || offset > size)
      return "";
    std::string text(std::min(count, size - offset), '\0');
    Error error =
        readAt(descriptor, "", offset, {reinterpret_cast<uint8_t *>(text.data()), text.size()});
    return errorToBool(std::move(error)) ? "" : text;
  }

  int descriptor = -1;
  uint64_t size = 0;
};

} // namespace

static constexpr uint64_t headBytes = 4096, tailBytes = 64, largestText = 64 << 20;
/// A module of SPIR-V names all of its kernels before it has place for a mark.
static constexpr uint64_t spirvHeadBytes = 1 << 20;
static constexpr StringLiteral spirvMagic = "\x03\x02\x23\x07";

static std::optional<json::Object> parseObject(StringRef text) {
  if (errorToBool(checkNesting(text, "")))
    return std::nullopt;
  Expected<json::Value> value = json::parse(text);
  if (!value) {
    consumeError(value.takeError());
    return std::nullopt;
  }
  json::Object *object = value->getAsObject();
  return object ? std::optional(std::move(*object)) : std::nullopt;
}

static bool hasOwnFormat(const json::Object *object) {
  return object && object->getString("format").value_or("").starts_with("ctxc");
}

static bool isOwnJson(const OpenFile &file, StringRef head) {
  if (!head.ltrim().starts_with("{") || file.size > largestText)
    return false;
  std::string text = file.bytes(0, file.size);
  for (StringRef part : {StringRef(text).split('\n').first, StringRef(text)})
    if (std::optional<json::Object> object = parseObject(part); object && hasOwnFormat(&*object))
      return true;
  return false;
}

/// Eight bytes with the header's length, then the header, which is JSON.
static bool isOwnSafetensors(const OpenFile &file, StringRef head) {
  if (head.size() < 9 || head[8] != '{')
    return false;
  uint64_t length = support::endian::read64le(head.data());
  if (length > largestText || length > file.size - 8)
    return false;
  std::optional<json::Object> header = parseObject(file.bytes(8, length));
  const json::Object *metadata = header ? header->getObject("__metadata__") : nullptr;
  // A patch of ctxc 0.1 has no format.
  bool isPatch = metadata && metadata->get("format_version") && metadata->get("model_hash");
  return isPatch || hasOwnFormat(metadata);
}

bool ctxc::isOwnFile(StringRef path) {
  OpenFile file(path);
  std::string head = file.bytes(0, headBytes);
  std::string tail = file.bytes(file.size - std::min(file.size, tailBytes), tailBytes);
  if (StringRef(head).starts_with(spirvMagic))
    head = file.bytes(0, spirvHeadBytes);
  bool isGguf = StringRef(head).starts_with("GGUF");
  return StringRef(head).contains(ownMark) || StringRef(tail).contains(ownMark) ||
         (isGguf && StringRef(head).contains("ctxc.format_version")) || isOwnJson(file, head) ||
         isOwnSafetensors(file, head);
}
