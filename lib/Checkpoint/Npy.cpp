#include "ctxc/Checkpoint/Npy.h"
#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Checkpoint/MappedFile.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include <algorithm>
#include <cmath>
#include <optional>

using namespace llvm;
using namespace ctxc;

namespace {

constexpr StringLiteral magic("\x93NUMPY");
/// NumPy's own limit, above which it refuses to read a header.
constexpr uint64_t largestHeader = 10000;

/// The contents of a header.
struct Header {
  std::string descr;
  bool fortranOrder = false;
  SmallVector<int64_t, 2> shape;
};

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 64), }`: each key once, in any
/// order.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

  /// Null where the text is something else.
  std::optional<Header> parse() {
    unsigned seen = 0;
    if (!take("{"))
      return std::nullopt;
    while (!take("}")) {
      std::optional<StringRef> key = quoted();
      unsigned bit = !key                      ? 0
                     : *key == "descr"         ? 1
                     : *key == "fortran_order" ? 2
                     : *key == "shape"         ? 4
                                               : 0;
      if (bit == 0 || (seen & bit) || !take(":") || !value(bit))
        return std::nullopt;
      seen |= bit;
      if (!take(",")) {
        if (!take("}"))
          return std::nullopt;
        break;
      }
    }
    return seen == 7 && rest.trim().empty() ? std::optional(header) : std::nullopt;
  }

private:
  bool take(StringRef what) {
    rest = rest.ltrim();
    return rest.consume_front(what);
  }
  std::optional<StringRef> quoted() {
    char quote = take("'") ? '\'' : take("\"") ? '"' : 0;
    size_t end = quote ? rest.find(quote) : StringRef::npos;
    if (end == StringRef::npos)
      return std::nullopt;
    StringRef text = rest.take_front(end);
    rest = rest.drop_front(end + 1);
    return text;
  }
  bool value(unsigned bit) {
    if (bit == 4)
      return shape();
    if (bit == 2) {
      header.fortranOrder = take("True");
      return header.fortranOrder || take("False");
    }
    if (std::optional<StringRef> text = quoted()) {
      header.descr = text->str();
      return true;
    }
    // A list is a type with fields, and in any case no float.
    rest = rest.ltrim();
    size_t end = rest.starts_with("[") ? rest.rfind(']') : StringRef::npos;
    if (end == StringRef::npos)
      return false;
    header.descr = rest.take_front(end + 1).str();
    rest = rest.drop_front(end + 1);
    return true;
  }
  bool shape() {
    if (!take("("))
      return false;
    while (!take(")")) {
      int64_t size;
      rest = rest.ltrim();
      if (rest.empty() || !isDigit(rest.front()) || rest.consumeInteger(10, size))
        return false;
      header.shape.push_back(size);
      if (!take(","))
        return take(")");
    }
    return true;
  }

  StringRef rest;
  Header header;
};

struct NpyType {
  DType dtype;
  unsigned bytes;
  bool bigEndian;
};

std::optional<NpyType> typeNamed(StringRef descr) {
  bool bigEndian = descr.consume_front(">");
  if (!bigEndian && !descr.consume_front("<"))
    return std::nullopt;
  if (descr == "f2")
    return NpyType{DType::F16, 2, bigEndian};
  if (descr == "f4")
    return NpyType{DType::F32, 4, bigEndian};
  if (descr == "f8")
    return NpyType{DType::F64, 8, bigEndian};
  return std::nullopt;
}

std::string tupleText(ArrayRef<int64_t> shape) {
  std::string text = join(map_range(shape, [](int64_t n) { return std::to_string(n); }), ", ");
  return "(" + text + (shape.size() == 1 ? ",)" : ")");
}

/// The header's text, and what follows it.
Expected<std::pair<StringRef, ArrayRef<uint8_t>>> splitFile(StringRef path,
                                                            ArrayRef<uint8_t> bytes) {
  StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (!text.starts_with(magic))
    return makeError(path + ": is no .npy file; expected one that numpy.save wrote");
  unsigned version = bytes.size() > 7 ? bytes[6] : 0;
  uint64_t lengthBytes = version == 1 ? 2 : 4, start = 8 + lengthBytes;
  if (bytes.size() > 7 && (version < 1 || version > 3 || bytes[7] != 0))
    return makeError(path + ": found .npy version " + Twine(version) + "." +
                     Twine(unsigned(bytes[7])) + ", expected 1.0, 2.0 or 3.0");
  if (bytes.size() < start)
    return makeError(path + ": ends inside its header; the file is truncated");
  uint64_t length = version == 1 ? support::endian::read16le(bytes.data() + 8)
                                 : support::endian::read32le(bytes.data() + 8);
  if (length > largestHeader)
    return makeError(path + ": found a header of " + Twine(length) + " bytes, expected at most " +
                     Twine(largestHeader) + "; a matrix of floats needs about 100");
  if (bytes.size() - start < length)
    return makeError(path + ": ends inside its header; the file is truncated");
  return std::make_pair(text.substr(start, length), bytes.drop_front(start + length));
}

Error checkHeader(StringRef path, const Header &header) {
  Error errors = Error::success();
  auto fail = [&](const Twine &message) {
    errors = joinErrors(std::move(errors), makeError(path + ": " + message));
  };
  if (!typeNamed(header.descr))
    fail("found numbers of type '" + header.descr +
         "', expected float16, float32 or float64 ('<f2', '<f4', '<f8')");
  if (header.fortranOrder)
    fail("is in Fortran order, expected C order: save numpy.ascontiguousarray of it");
  if (header.shape.size() != 2)
    fail("found shape " + tupleText(header.shape) + ", expected two dimensions: (rows, columns)");
  else if (header.shape[0] == 0 || header.shape[1] == 0)
    fail("found shape " + tupleText(header.shape) + ", expected at least one row and one column");
  return errors;
}

} // namespace

Expected<NpyMatrix> ctxc::readNpyMatrix(StringRef path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  auto parts = splitFile(path, (*file)->bytes());
  if (!parts)
    return parts.takeError();
  std::optional<Header> header = HeaderParser(parts->first).parse();
  if (!header)
    return makeError(path + ": has a header that is not as NumPy writes it; expected {'descr': "
                            "..., 'fortran_order': ..., 'shape': (rows, columns), }");
  if (Error error = checkHeader(path, *header))
    return std::move(error);
  NpyType type = *typeNamed(header->descr);
  uint64_t held = parts->second.size(), most = held / type.bytes;
  uint64_t rows = header->shape[0], columns = header->shape[1];
  if (columns > most || rows > most / columns || rows * columns * type.bytes != held)
    return makeError(path + ": holds " + Twine(held) +
                     " bytes of numbers, which is not what shape " + tupleText(header->shape) +
                     " of '" + header->descr + "' needs; the file is truncated or damaged");

  NpyMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.numbers.resize(rows * columns);
  std::vector<uint8_t> bytes = parts->second.vec();
  if (type.bigEndian)
    for (auto at = bytes.begin(); at != bytes.end(); at += type.bytes)
      std::reverse(at, at + type.bytes);
  readDoubles(type.dtype, bytes.data(), matrix.numbers);
  for (auto [i, number] : enumerate(matrix.numbers))
    if (!std::isfinite(number))
      return makeError(path + ": row " + Twine(i / columns) + ", column " + Twine(i % columns) +
                       " is not a finite number");
  return matrix;
}
