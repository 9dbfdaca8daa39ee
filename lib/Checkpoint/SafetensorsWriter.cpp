#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/EndianStream.h"

using namespace llvm;
using namespace ctxc;

namespace {

Expected<uint64_t> bytesOf(const TensorSource &tensor, StringRef path) {
  int64_t bits = bitsOf(tensor.dtype);
  for (int64_t size : tensor.shape) {
    std::optional<int64_t> product = size < 0 ? std::nullopt : checkedMul<int64_t>(bits, size);
    if (!product)
      return makeError(path + ": tensor " + quoted(tensor.name) + ": the shape " +
                       shapeText(tensor.shape) + " is negative or overflows");
    bits = *product;
  }
  if (bits % 8)
    return makeError(path + ": tensor " + quoted(tensor.name) + ": does not end on a byte");
  return bits / 8;
}

/// Offsets count from the end of the header, to which its length is not added.
Expected<SafetensorsLayout> layOut(StringRef path, ArrayRef<TensorSource> tensors,
                                   const std::map<std::string, std::string> &metadata) {
  SafetensorsLayout layout;
  raw_string_ostream os(layout.header);
  json::OStream json(os);
  Error failure = Error::success();
  auto fail = [&](const Twine &message) {
    failure = joinErrors(std::move(failure), makeError(path + ": " + message));
  };
  json.objectBegin();
  for (const auto &[key, value] : metadata)
    if (!json::isUTF8(key) || !json::isUTF8(value))
      fail("metadata " + quoted(key) + " is not valid UTF-8");
  if (!metadata.empty() && !failure)
    json.attributeObject("__metadata__", [&] {
      for (const auto &[key, value] : metadata)
        json.attribute(key, value);
    });
  uint64_t at = 0;
  for (const auto &[i, tensor] : enumerate(tensors)) {
    Expected<uint64_t> bytes = bytesOf(tensor, path);
    if (!bytes) {
      failure = joinErrors(std::move(failure), bytes.takeError());
      continue;
    }
    std::optional<uint64_t> end = checkedAddUnsigned(at, *bytes);
    if (!end || *end > static_cast<uint64_t>(INT64_MAX)) {
      fail("the tensors' sizes add up to more than a file can hold");
      break;
    }
    if (!json::isUTF8(tensor.name) || tensor.name == "__metadata__") {
      fail("tensor " + quoted(tensor.name) + ": a name that no tensor can have");
      continue;
    }
    json.attributeObject(tensor.name, [&, &shape = tensor.shape, dtype = tensor.dtype] {
      json.attribute("dtype", nameOf(dtype));
      json.attributeArray("shape", [&] {
        for (int64_t size : shape)
          json.value(size);
      });
      json.attributeArray("data_offsets", [&] {
        json.value(static_cast<int64_t>(at));
        json.value(static_cast<int64_t>(*end));
      });
    });
    layout.offsets.push_back(at);
    at = *end;
  }
  json.objectEnd();
  os.flush();
  if (failure)
    return std::move(failure);
  layout.header.resize((layout.header.size() + 7) / 8 * 8, ' ');
  layout.size = at;
  return layout;
}

} // namespace

Expected<SafetensorsLayout>
ctxc::layOutSafetensors(StringRef path, std::vector<TensorSource> &tensors,
                        const std::map<std::string, std::string> &metadata) {
  llvm::sort(tensors, [](const TensorSource &a, const TensorSource &b) {
    return std::tie(b.dtype, a.name) < std::tie(a.dtype, b.name);
  });
  std::vector<StringRef> names;
  for (const TensorSource &tensor : tensors)
    names.push_back(tensor.name);
  llvm::sort(names);
  if (auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return makeError(path + ": tensor " + quoted(*twice) + " is given twice");
  Expected<SafetensorsLayout> layout = layOut(path, tensors, metadata);
  if (!layout)
    return layout;
  std::string length;
  raw_string_ostream os(length);
  support::endian::write<uint64_t>(os, layout->header.size(), endianness::little);
  layout->header = length + layout->header;
  for (uint64_t &offset : layout->offsets)
    offset += layout->header.size();
  layout->size += layout->header.size();
  return layout;
}

Error ctxc::writeSafetensors(StringRef path, std::vector<TensorSource> tensors,
                             const std::map<std::string, std::string> &metadata) {
  Expected<SafetensorsLayout> layout = layOutSafetensors(path, tensors, metadata);
  if (!layout)
    return layout.takeError();
  return writeFileAtomically(path, [&](raw_pwrite_stream &os) -> Error {
    os << layout->header;
    for (auto [i, tensor] : enumerate(tensors)) {
      uint64_t from = os.tell();
      uint64_t end = i + 1 < tensors.size() ? layout->offsets[i + 1] : layout->size;
      uint64_t bytes = end - layout->offsets[i];
      if (Error e = tensor.write(os))
        return e;
      if (os.tell() - from != bytes)
        return makeError(path + ": tensor " + quoted(tensor.name) + ": its source wrote " +
                         Twine(os.tell() - from) + " bytes, expected " + Twine(bytes));
    }
    return Error::success();
  });
}
