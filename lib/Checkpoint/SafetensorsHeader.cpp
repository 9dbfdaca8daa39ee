#include "ctxc/Checkpoint/FormatKeys.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"

using namespace llvm;
using namespace ctxc;

namespace {

constexpr uint64_t maxHeaderBytes = 100'000'000;
/// A hostile header can have a million problems; only the first few are reported.
constexpr unsigned maxHeaderProblems = 20;

class HeaderReader {
public:
  HeaderReader(ArrayRef<uint8_t> bytes, StringRef path)
      : bytes(bytes), path(path), context((path + ": header").str()) {}

  Expected<SafetensorsHeader> read() {
    Expected<StringRef> text = headerText();
    if (!text)
      return joinErrors(std::move(problems), text.takeError());
    StrictJson json(*text, context);
    if (Error e = json.object([&](StringRef key) {
          return key == "__metadata__" ? readMetadata(json) : readEntry(json, key);
        }))
      return joinErrors(std::move(problems), std::move(e));
    if (Error e = json.end())
      return joinErrors(std::move(problems), std::move(e));
    if (!reported)
      checkLayout();
    if (problems)
      return std::move(problems);
    return std::move(header);
  }

private:
  void report(const Twine &message) {
    if (reported++ < maxHeaderProblems)
      problems = joinErrors(std::move(problems), makeError(path + ": " + message));
    else if (reported == maxHeaderProblems + 1)
      problems = joinErrors(std::move(problems), makeError(path + ": and more of the kind"));
  }

  Expected<StringRef> headerText();
  Error readMetadata(StrictJson &json);
  Error readEntry(StrictJson &json, StringRef name);
  void checkSize(const SafetensorsEntry &entry);
  void checkLayout();

  ArrayRef<uint8_t> bytes;
  StringRef path;
  std::string context;
  SafetensorsHeader header;
  Error problems = Error::success();
  unsigned reported = 0;
};

Expected<StringRef> HeaderReader::headerText() {
  if (bytes.size() < 8)
    return makeError(path + ": found " + Twine(bytes.size()) +
                     " bytes, expected at least the 8 of a safetensors header length");
  uint64_t length = support::endian::read64le(bytes.data());
  if (length > maxHeaderBytes)
    return makeError(path + ": header length " + Twine(length) + " exceeds the format's limit of " +
                     Twine(maxHeaderBytes) + "; this is not a safetensors file");
  if (length > bytes.size() - 8)
    return makeError(path + ": header length " + Twine(length) + " exceeds the " +
                     Twine(bytes.size() - 8) +
                     " bytes after it; the file is truncated, fetch it again");
  if (length == 0)
    return makeError(path + ": header length is 0, expected at least the 2 of an empty object");
  StringRef text(reinterpret_cast<const char *>(bytes.data()) + 8, length);
  if (text.front() != '{')
    return makeError(context + ": begins with " + quoted(text.take_front(1)) + ", expected '{'");
  if (Error error = checkUtf8(text, context))
    return std::move(error);
  header.dataStart = 8 + length;
  return text;
}

Error HeaderReader::readMetadata(StrictJson &json) {
  if (json.next() == 'n') // null, as good as none
    return json.skip();
  return json.object([&](StringRef key) -> Error {
    Expected<StringRef> value = json.string();
    if (!value)
      return joinErrors(value.takeError(),
                        makeError(context + ": __metadata__ maps " + quoted(key) +
                                  " to something that is not a string"));
    header.metadata[key.str()] = value->str();
    return Error::success();
  });
}

Error HeaderReader::readEntry(StrictJson &json, StringRef name) {
  SafetensorsEntry entry;
  entry.name = name.str();
  bool hasDType = false, hasShape = false, knownDType = true;
  SmallVector<int64_t, 2> offsets;
  bool hasOffsets = false;
  auto integers = [&](SmallVectorImpl<int64_t> &to) {
    return json.array([&]() -> Error {
      Expected<int64_t> value = json.nonNegativeInteger();
      if (!value)
        return value.takeError();
      to.push_back(*value);
      return Error::success();
    });
  };
  Error failed = json.object([&](StringRef key) -> Error {
    if (key == "dtype") {
      Expected<StringRef> value = json.string();
      if (!value)
        return value.takeError();
      hasDType = true;
      if (std::optional<DType> dtype = dtypeNamed(*value))
        entry.dtype = *dtype;
      else {
        knownDType = false;
        report("tensor " + quoted(name) + ": unknown dtype " + quoted(*value));
      }
      return Error::success();
    }
    if (key == "shape") {
      hasShape = true;
      return integers(entry.shape);
    }
    if (key == "data_offsets") {
      hasOffsets = true;
      return integers(offsets);
    }
    report("tensor " + quoted(name) + ": its header entry has the key " + quoted(key) +
           ", which is not known here, and may change what the tensor is");
    return json.skip();
  });
  if (failed)
    return joinErrors(std::move(failed),
                      makeError(path + ": tensor " + quoted(name) + ": its header entry is bad"));
  for (auto [present, key] : {std::pair<bool, const char *>(hasDType, "dtype"),
                              {hasShape, "shape"},
                              {hasOffsets, "data_offsets"}})
    if (!present)
      report("tensor " + quoted(name) + ": its header entry has no '" + key + "'");
  if (hasOffsets && offsets.size() != 2)
    report("tensor " + quoted(name) + ": found " + Twine(offsets.size()) +
           " data_offsets, expected 2");
  if (offsets.size() != 2 || !hasDType || !hasShape || !knownDType)
    return Error::success();
  entry.begin = offsets[0];
  entry.end = offsets[1];
  checkSize(entry);
  header.entries.push_back(std::move(entry));
  return Error::success();
}

/// Checks that the offsets enclose exactly the bytes of dtype and shape. Zeros come after all other
/// factors are multiplied, so that no part of the product wraps, in whatever order.
void HeaderReader::checkSize(const SafetensorsEntry &entry) {
  if (entry.end < entry.begin)
    return report("tensor " + quoted(entry.name) + ": data_offsets [" + Twine(entry.begin) + ", " +
                  Twine(entry.end) + "] end before they begin");
  int64_t count = 1;
  for (int64_t size : entry.shape) {
    std::optional<int64_t> product = checkedMul<int64_t>(count, size ? size : 1);
    if (!product)
      return report("tensor " + quoted(entry.name) + ": the product of shape " +
                    shapeText(entry.shape) + " overflows");
    count = *product;
  }
  std::optional<int64_t> bits = checkedMul<int64_t>(count, bitsOf(entry.dtype));
  if (!bits)
    return report("tensor " + quoted(entry.name) + ": the size of shape " + shapeText(entry.shape) +
                  " overflows");
  if (llvm::is_contained(entry.shape, 0))
    bits = count = 0;
  if (*bits % 8)
    return report("tensor " + quoted(entry.name) + ": " + Twine(count) + " elements of " +
                  nameOf(entry.dtype) + " do not end on a byte");
  uint64_t found = entry.end - entry.begin, expected = static_cast<uint64_t>(*bits) / 8;
  if (found != expected)
    report("tensor " + quoted(entry.name) + ": found " + Twine(found) +
           " bytes in its data_offsets, expected " + Twine(expected) + " for " +
           nameOf(entry.dtype) + shapeText(entry.shape));
}

/// Checks that tensors cover the data without holes or overlaps, to its last byte.
void HeaderReader::checkLayout() {
  llvm::sort(header.entries, [](const SafetensorsEntry &a, const SafetensorsEntry &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = 0, available = bytes.size() - header.dataStart;
  for (const SafetensorsEntry &entry : header.entries) {
    if (entry.begin != at)
      return report("tensor " + quoted(entry.name) + ": begins at data byte " + Twine(entry.begin) +
                    ", expected " + Twine(at) + ", the end of the one before; " +
                    (entry.begin < at ? "tensors overlap" : "there is a hole"));
    at = entry.end;
  }
  if (at > available)
    return report("the tensors need " + Twine(at) + " bytes, but only " + Twine(available) +
                  " follow the header; the file is truncated, fetch it again");
  if (at < available)
    report("found " + Twine(available - at) + " bytes after the last tensor, expected none");
}

} // namespace

static constexpr KeyRule keysOfHeader[] = {
    {"__metadata__", {}, "texts about the file, of which none changes a tensor"},
    {"dtype", isRead, "of each tensor: the type of its numbers"},
    {"shape", isRead, "of each tensor: its sizes"},
    {"data_offsets", isRead, "of each tensor: where its numbers are"},
    {"*", never, "something that is not known here"},
};

const KeyTable ctxc::safetensorsKeys{"safetensors, the header", keysOfHeader};

Expected<SafetensorsHeader> ctxc::parseSafetensorsHeader(ArrayRef<uint8_t> bytes, StringRef path) {
  return HeaderReader(bytes, path).read();
}

std::string ctxc::shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, size] : enumerate(shape)) {
    if (i == 8)
      return text + ", …]";
    text += (i ? ", " : "") + std::to_string(size);
  }
  return text + "]";
}
