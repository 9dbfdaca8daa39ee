#include "Payloads.h"
#include "JsonFields.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

static constexpr StringLiteral weightsFolder = "data/weights/";

/// The types of torch's schema that tensors are stored in.
static std::optional<DType> dtypeOf(int64_t type) {
  switch (type) {
  case 1:
    return DType::U8;
  case 2:
    return DType::I8;
  case 3:
    return DType::I16;
  case 4:
    return DType::I32;
  case 5:
    return DType::I64;
  case 6:
    return DType::F16;
  case 7:
    return DType::F32;
  case 8:
    return DType::F64;
  case 12:
    return DType::Bool;
  case 13:
    return DType::BF16;
  default:
    return std::nullopt;
  }
}

/// A list of {"as_int": n}, none negative.
static bool readInts(JsonView list, SmallVectorImpl<int64_t> &to) {
  if (!list.isArray() || list.size() > 64)
    return false;
  for (JsonView each : list) {
    std::optional<int64_t> number = each["as_int"].integer();
    if (!number || *number < 0)
      return false;
    to.push_back(*number);
  }
  return true;
}

Error Payloads::readConfig(StringRef folder, StringRef config) {
  std::string entry = (folder + config).str();
  if (!archive->has(entry))
    return Error::success();
  std::string where = (archive->name() + ": " + entry).str();
  Expected<std::string> text = archive->read(entry);
  if (!text)
    return text.takeError();
  Expected<JsonTree> file = readObject(std::move(*text), where);
  if (!file)
    return file.takeError();
  std::map<std::string, std::string> first; // by entry
  auto tensors = objectIn(file->root(), "config", where);
  if (!tensors)
    return tensors.takeError();
  for (JsonView tensor : *tensors) {
    JsonView meta = tensor["tensor_meta"], offset = meta["storage_offset"];
    std::optional<StringRef> path = tensor["path_name"].text();
    if (!meta.isObject() || !path)
      continue; // an object of Python's, which no graph reads
    Payload payload;
    payload.entry = (folder + *path).str();
    std::optional<DType> dtype = dtypeOf(meta["dtype"].integer().value_or(-1));
    payload.offset = offset.isObject() ? offset["as_int"].integer().value_or(-1) : 0;
    payload.hasMemory = dtype && meta["device"].isObject() &&
                        meta["device"]["type"].text() != "meta" &&
                        !tensor["use_pickle"].flag().value_or(false);
    payload.dtype = dtype.value_or(DType::F32);
    if (!readInts(meta["sizes"], payload.shape) || !readInts(meta["strides"], payload.strides) ||
        payload.shape.size() != payload.strides.size() || payload.offset < 0)
      return makeError(where + ": " + quoted(tensor.key()) +
                       " has sizes or strides that are no numbers");
    const bool isWeight = folder == weightsFolder;
    if (isWeight && meta["device"]["type"].text() == "meta")
      return makeError(archive->name() + ": its weights have no memory, so that nothing says which "
                                         "names are one tensor; write it with 'python -m "
                                         "ctxc.export', which says so");
    if (isWeight && payload.hasMemory)
      if (auto [known, isNew] = first.try_emplace(payload.entry, tensor.key().str()); !isNew)
        aliases[tensor.key().str()] = known->second;
    payloads[tensor.key().str()] = std::move(payload);
  }
  return Error::success();
}

Payloads Payloads::of(std::shared_ptr<const SafetensorsFile> file) {
  Payloads result;
  for (const TensorView &tensor : file->tensors()) {
    Payload &payload = result.payloads[tensor.name];
    payload.dtype = tensor.dtype;
    payload.shape = tensor.shape;
    payload.hasMemory = true;
    payload.mapped = StringRef(reinterpret_cast<const char *>(tensor.data), tensor.bytes);
  }
  result.title = file->file().path().str();
  result.kept->file = std::move(file);
  return result;
}

StringRef Payloads::oneOf(StringRef name) const {
  auto alias = aliases.find(name);
  return alias == aliases.end() ? name : StringRef(alias->second);
}

Expected<Payloads> Payloads::read(const Archive &archive) {
  Payloads result;
  result.archive = &archive;
  result.title = archive.name().str();
  if (archive.has("byteorder")) {
    Expected<std::string> order = archive.read("byteorder");
    if (!order)
      return order.takeError();
    if (*order != "little")
      return makeError(archive.name() + ": its numbers are in the byte order " + quoted(*order) +
                       "; expected little");
  }
  if (Error error = result.readConfig(weightsFolder, "model_weights_config.json"))
    return std::move(error);
  if (Error error = result.readConfig("data/constants/", "model_constants_config.json"))
    return std::move(error);
  return result;
}

bool Payloads::has(StringRef name) const {
  auto found = payloads.find(name);
  return found != payloads.end() && found->second.hasMemory;
}

/// The tensor's entries one after the other, whatever its strides are.
Expected<std::string> Payloads::copy(StringRef name, const Payload &payload) const {
  Expected<std::string> stored = archive->read(payload.entry, /*most=*/UINT64_MAX);
  if (!stored)
    return stored;
  uint64_t width = bytesOf(payload.dtype, 1), count = 1, last = payload.offset;
  bool overflows = false, isRowMajor = payload.offset == 0;
  for (size_t i = payload.shape.size(); i-- > 0;) {
    isRowMajor &= payload.shape[i] == 1 || uint64_t(payload.strides[i]) == count;
    bool tooFar = false, tooMany = false;
    uint64_t reach = SaturatingMultiply<uint64_t>(std::max<int64_t>(payload.shape[i], 1) - 1,
                                                  payload.strides[i], &tooFar);
    last = SaturatingAdd(last, reach);
    count = SaturatingMultiply<uint64_t>(count, payload.shape[i], &tooMany);
    overflows |= tooFar || tooMany;
  }
  // A tensor may have its entries several times, and is yet not larger than what is stored.
  if (overflows || (count && last >= stored->size() / width) || count > stored->size() / width)
    return makeError(archive->name() + ": tensor " + quoted(name) + " has " + Twine(count) +
                     " entries, which are not all in '" + payload.entry + "' of " +
                     Twine(stored->size()) + " bytes");
  if (isRowMajor) {
    stored->resize(count * width);
    return stored;
  }
  std::string result(count * width, '\0');
  SmallVector<int64_t, 4> index(payload.shape.size(), 0);
  uint64_t place = payload.offset;
  for (uint64_t i = 0; i < count; ++i) {
    std::copy_n(stored->data() + place * width, width, result.data() + i * width);
    for (size_t axis = index.size(); axis-- > 0;) {
      place += payload.strides[axis];
      if (++index[axis] < payload.shape[axis])
        break;
      place -= index[axis] * payload.strides[axis];
      index[axis] = 0;
    }
  }
  return result;
}

Expected<StringRef> Payloads::bytes(StringRef name, const Payload &payload) const {
  if (kept->file)
    return payload.mapped;
  auto known = kept->copies.find(name);
  if (known == kept->copies.end()) {
    Expected<std::string> made = copy(name, payload);
    if (!made)
      return made.takeError();
    known = kept->copies.try_emplace(name.str(), std::move(*made)).first;
  }
  return StringRef(known->second);
}

template <typename T> static void widen(StringRef bytes, std::vector<double> &to) {
  for (size_t i = 0; i < to.size(); ++i) {
    T number;
    std::copy_n(bytes.data() + i * sizeof(T), sizeof(T), reinterpret_cast<char *>(&number));
    to[i] = double(number);
  }
}

Expected<std::vector<double>> Payloads::numbers(StringRef name) const {
  const Payload &payload = payloads.find(name)->second;
  Expected<StringRef> stored = bytes(name, payload);
  if (!stored)
    return stored.takeError();
  std::vector<double> result(stored->size() / bytesOf(payload.dtype, 1));
  switch (payload.dtype) {
  case DType::Bool:
  case DType::U8:
    widen<uint8_t>(*stored, result);
    break;
  case DType::I8:
    widen<int8_t>(*stored, result);
    break;
  case DType::I16:
    widen<int16_t>(*stored, result);
    break;
  case DType::I32:
    widen<int32_t>(*stored, result);
    break;
  case DType::I64:
    widen<int64_t>(*stored, result);
    break;
  case DType::F64:
    widen<double>(*stored, result);
    break;
  default:
    readDoubles(payload.dtype, stored->data(), 0, result);
  }
  return result;
}

Expected<std::string> Payloads::digest() const {
  std::vector<std::string> lines;
  for (const auto &[name, payload] : payloads) {
    if (!payload.hasMemory)
      continue;
    Expected<StringRef> stored = bytes(name, payload);
    if (!stored)
      return stored.takeError();
    std::string line;
    raw_string_ostream(line) << name << " "
                             << format_hex_no_prefix(crc32(arrayRefFromStringRef(*stored)), 8)
                             << "\n";
    lines.push_back(std::move(line));
  }
  sort(lines);
  return toHex(SHA256::hash(arrayRefFromStringRef(join(lines, ""))), /*LowerCase=*/true);
}

Expected<std::unique_ptr<Checkpoint>> Payloads::checkpoint(function_ref<bool(StringRef)> takes) {
  std::vector<MemoryTensor> tensors;
  for (const auto &[name, payload] : payloads) {
    if (!payload.hasMemory || !takes(name))
      continue;
    Expected<StringRef> stored = bytes(name, payload);
    if (!stored)
      return stored.takeError();
    tensors.push_back({name, payload.dtype, payload.shape, stored->data()});
  }
  if (tensors.empty())
    return nullptr;
  return Checkpoint::fromMemory(title, "{}", tensors);
}
