#include "ctxc/Checkpoint/Gguf.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <set>

using namespace llvm;
using namespace ctxc;

namespace {

enum ValueType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64 };

/// How many bytes a value has; 0 where that is not fixed.
constexpr unsigned sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/// ggml's numbers of the supported tensor types.
std::optional<DType> dtypeOf(uint32_t type) {
  switch (type) {
  case 0:
    return DType::F32;
  case 1:
    return DType::F16;
  case 2:
    return DType::Q4_0;
  case 3:
    return DType::Q4_1;
  case 6:
    return DType::Q5_0;
  case 7:
    return DType::Q5_1;
  case 8:
    return DType::Q8_0;
  case 12:
    return DType::Q4_K;
  case 13:
    return DType::Q5_K;
  case 14:
    return DType::Q6_K;
  case 28:
    return DType::F64;
  case 30:
    return DType::BF16;
  case 39:
    return DType::BlockMXFP4;
  default:
    return std::nullopt;
  }
}

template <typename T> T read(const uint8_t *at) {
  return support::endian::read<T, endianness::little>(at);
}

/// One value of fixed size.
GgufValue scalar(uint32_t type, const uint8_t *at) {
  switch (type) {
  case U8:
    return int64_t(*at);
  case I8:
    return int64_t(int8_t(*at));
  case U16:
    return int64_t(read<uint16_t>(at));
  case I16:
    return int64_t(read<int16_t>(at));
  case U32:
    return int64_t(read<uint32_t>(at));
  case I32:
    return int64_t(read<int32_t>(at));
  case F32:
    return double(bit_cast<float>(read<uint32_t>(at)));
  case Bool:
    return *at != 0;
  case U64: {
    uint64_t x = read<uint64_t>(at);
    return x <= uint64_t(INT64_MAX) ? GgufValue(int64_t(x)) : GgufValue(x);
  }
  case I64:
    return read<int64_t>(at);
  default:
    return bit_cast<double>(read<uint64_t>(at));
  }
}

/// Reads the header from front to back. After the first problem nothing more is read.
class Reader {
public:
  Reader(ArrayRef<uint8_t> bytes, StringRef path) : bytes(bytes), path(path) {}

  uint64_t position() const { return at; }
  bool failed() const { return bool(problem); }
  Error take() { return problem ? makeError(path + ": " + *problem) : Error::success(); }
  void fail(const Twine &message) {
    if (!problem)
      problem = message.str();
  }

  /// `n` bytes of `what`, or null.
  const uint8_t *take(uint64_t n, const Twine &what) {
    if (n > bytes.size() - at) {
      fail(what + " goes beyond the end of the file; the file is cut short or damaged");
      return nullptr;
    }
    const uint8_t *from = bytes.data() + at;
    at += n;
    return failed() ? nullptr : from;
  }
  template <typename T> T number(const Twine &what) {
    const uint8_t *from = take(sizeof(T), what);
    return from ? read<T>(from) : T(0);
  }
  StringRef text(const Twine &what) {
    uint64_t length = number<uint64_t>(what);
    const uint8_t *from = take(length, what);
    return from ? StringRef(reinterpret_cast<const char *>(from), length) : StringRef();
  }

  GgufValue value(const Twine &what) {
    uint32_t type = number<uint32_t>(what);
    if (type == Text)
      return text(what);
    if (type == Array)
      return array(what);
    if (type > F64) {
      fail(what + " has the unknown type " + Twine(type));
      return false;
    }
    const uint8_t *from = take(sizes[type], what);
    return from ? scalar(type, from) : GgufValue(false);
  }

private:
  GgufValue array(const Twine &what) {
    GgufArray array;
    array.type = number<uint32_t>(what);
    array.count = number<uint64_t>(what);
    if (array.type == Array || array.type > F64) {
      fail(what + " is an array of the unknown type " + Twine(array.type));
      return array;
    }
    uint64_t begin = at;
    if (array.type == Text) {
      // Each takes at least eight bytes, so that a wrong count is found soon.
      for (uint64_t i = 0; i < array.count && !failed(); ++i)
        text(what);
    } else if (std::optional<uint64_t> size =
                   checkedMulUnsigned<uint64_t>(array.count, sizes[array.type])) {
      take(*size, what);
    } else {
      fail(what + " has " + Twine(array.count) + " elements, more than any file");
    }
    if (!failed())
      array.bytes = bytes.slice(begin, at - begin);
    return array;
  }

  ArrayRef<uint8_t> bytes;
  StringRef path;
  uint64_t at = 0;
  std::optional<std::string> problem;
};

/// The directory's entry of one tensor.
struct Entry {
  TensorView view;
  uint64_t offset = 0;
};

Entry readEntry(Reader &reader, StringRef path, uint64_t index) {
  Entry entry;
  std::string what = "the entry of tensor " + std::to_string(index);
  entry.view.name = reader.text(what).str();
  entry.view.file = path.str();
  if (!reader.failed())
    what = "tensor " + quoted(entry.view.name);
  uint32_t dims = reader.number<uint32_t>(what);
  if (dims > 4) {
    reader.fail(what + " has " + Twine(dims) + " dimensions; expected at most 4");
    return entry;
  }
  // Of the sizes but zeros, so that no part of the product wraps, in whatever order.
  int64_t elements = 1;
  bool isEmpty = false;
  for (uint32_t i = 0; i < dims; ++i) {
    uint64_t size = reader.number<uint64_t>(what);
    isEmpty |= size == 0;
    std::optional<int64_t> product =
        size > INT64_MAX ? std::nullopt : checkedMul<int64_t>(elements, size ? int64_t(size) : 1);
    // No element takes more than eight bytes.
    if (!product || *product > INT64_MAX / 8) {
      reader.fail(what + " has more elements than any file");
      return entry;
    }
    elements = *product;
    entry.view.shape.insert(entry.view.shape.begin(), int64_t(size));
  }
  uint32_t type = reader.number<uint32_t>(what);
  entry.offset = reader.number<uint64_t>(what);
  if (reader.failed())
    return entry;
  std::optional<DType> dtype = dtypeOf(type);
  if (!dtype) {
    reader.fail(what + " has ggml's type " + Twine(type) +
                ", which is not read; F32, F16, BF16, F64, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, "
                "Q5_K, Q6_K and MXFP4 are");
    return entry;
  }
  entry.view.dtype = *dtype;
  BlockSize block = blockSizeOf(*dtype);
  int64_t row = entry.view.shape.empty() ? 1 : entry.view.shape.back();
  if (row % block.elements)
    reader.fail(what + " has rows of " + Twine(row) + " elements; expected a multiple of " +
                Twine(block.elements) + " for type " + nameOf(*dtype));
  entry.view.bytes = isEmpty ? 0 : bytesOf(*dtype, elements);
  return entry;
}

} // namespace

Expected<std::unique_ptr<GgufFile>> GgufFile::open(StringRef path) {
  Expected<std::unique_ptr<MappedFile>> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.takeError();
  std::unique_ptr<GgufFile> file(new GgufFile);
  file->mapped = std::move(*mapped);
  ArrayRef<uint8_t> bytes = file->mapped->bytes();
  Reader reader(bytes, path);

  const uint8_t *magic = reader.take(4, "the magic number");
  if (!magic || std::memcmp(magic, "GGUF", 4) != 0)
    return makeError(path +
                     ": is not a GGUF file, which begins with 'GGUF'; expected such a file, or the "
                     "directory of a checkpoint");
  uint32_t version = reader.number<uint32_t>("the version");
  if (version != 2 && version != 3)
    return makeError(path + ": has GGUF version " + Twine(version) +
                     "; 2 and 3, little-endian, are read");
  uint64_t tensors = reader.number<uint64_t>("the number of tensors");
  uint64_t pairs = reader.number<uint64_t>("the number of keys");

  // A pair takes at least 13 bytes and an entry 24: a wrong count fails at the file's end.
  for (uint64_t i = 0; i < pairs && !reader.failed(); ++i) {
    StringRef key = reader.text("key " + Twine(i));
    GgufValue value = reader.value("key " + quoted(key));
    if (!reader.failed() && !file->values.emplace(key.str(), std::move(value)).second)
      reader.fail("key " + quoted(key) + " is given twice");
  }
  std::vector<Entry> entries;
  std::set<std::string> names;
  for (uint64_t i = 0; i < tensors && !reader.failed(); ++i) {
    entries.push_back(readEntry(reader, path, i));
    if (!reader.failed() && !names.insert(entries.back().view.name).second)
      reader.fail("tensor " + quoted(entries.back().view.name) + " is given twice");
  }
  int64_t alignment = file->integer("general.alignment").value_or(32);
  if (file->values.count("general.alignment") && !file->integer("general.alignment"))
    alignment = 0;
  if (alignment <= 0 || !isPowerOf2_64(alignment) || alignment > (1 << 20))
    reader.fail("key 'general.alignment' = " + Twine(alignment) + "; expected a power of two");
  if (reader.failed())
    return reader.take();

  uint64_t start = file->start = alignTo(reader.position(), alignment), end = 0;
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return std::tie(a.offset, a.view.name) < std::tie(b.offset, b.view.name);
  });
  for (Entry &entry : entries) {
    std::string what = path.str() + ": tensor " + quoted(entry.view.name);
    if (entry.offset != alignTo(end, alignment))
      return makeError(what + " begins at offset " + Twine(entry.offset) +
                       " of the data; expected " + Twine(alignTo(end, alignment)) +
                       ", right after the one before, by a general.alignment of " +
                       Twine(alignment));
    end = entry.offset + entry.view.bytes;
    if (start > bytes.size() || end > bytes.size() - start)
      return makeError(what + " goes beyond the end of the file; the file is cut short or damaged");
    entry.view.data = bytes.data() + start + entry.offset;
    file->views.push_back(std::move(entry.view));
  }
  if (!entries.empty() && start + alignTo(end, alignment) < bytes.size())
    return makeError(path + ": has bytes after its last tensor; expected " +
                     Twine(start + alignTo(end, alignment)) + " bytes, found " +
                     Twine(bytes.size()) + ", with a general.alignment of " + Twine(alignment));
  return file;
}

const TensorView *GgufFile::find(StringRef name) const {
  auto found = llvm::find_if(views, [&](const TensorView &view) { return view.name == name; });
  return found == views.end() ? nullptr : &*found;
}

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

template <typename T>
static std::optional<T> as(const std::map<std::string, GgufValue> &values, StringRef key) {
  auto found = values.find(key.str());
  const T *value = found == values.end() ? nullptr : std::get_if<T>(&found->second);
  return value ? std::optional<T>(*value) : std::nullopt;
}

std::optional<int64_t> GgufFile::integer(StringRef key) const { return as<int64_t>(values, key); }
std::optional<bool> GgufFile::flag(StringRef key) const { return as<bool>(values, key); }
std::optional<StringRef> GgufFile::text(StringRef key) const { return as<StringRef>(values, key); }
std::optional<double> GgufFile::number(StringRef key) const {
  if (std::optional<int64_t> whole = integer(key))
    return double(*whole);
  return as<double>(values, key);
}

std::optional<std::vector<StringRef>> GgufFile::texts(StringRef key) const {
  std::optional<GgufArray> array = as<GgufArray>(values, key);
  if (!array || array->type != Text)
    return std::nullopt;
  std::vector<StringRef> result;
  const uint8_t *at = array->bytes.data();
  for (uint64_t i = 0; i < array->count; ++i) {
    uint64_t length = read<uint64_t>(at);
    result.emplace_back(reinterpret_cast<const char *>(at + 8), length);
    at += 8 + length;
  }
  return result;
}

std::optional<std::vector<double>> GgufFile::numbers(StringRef key) const {
  std::optional<GgufArray> array = as<GgufArray>(values, key);
  if (!array || array->type == Text)
    return std::nullopt;
  std::vector<double> result;
  for (uint64_t i = 0; i < array->count; ++i) {
    GgufValue value = scalar(array->type, array->bytes.data() + i * sizes[array->type]);
    if (auto *whole = std::get_if<int64_t>(&value))
      result.push_back(double(*whole));
    else if (auto *big = std::get_if<uint64_t>(&value))
      result.push_back(double(*big));
    else if (auto *real = std::get_if<double>(&value))
      result.push_back(*real);
    else
      result.push_back(std::get<bool>(value));
  }
  return result;
}
