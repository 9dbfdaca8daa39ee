#include "Mutate.h"
#include "llvm/Support/Endian.h"
#include <algorithm>

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

int64_t fuzz::boundary(Random &random) {
  static constexpr int64_t numbers[] = {
      0,         1,          2,         3,         4,         7,         8,
      15,        16,         17,        32,        64,        127,       128,
      255,       256,        1000,      4096,      65535,     65536,     1 << 20,
      1 << 24,   2147483647, 1LL << 31, 1LL << 32, 1LL << 40, 1LL << 53, 1LL << 62,
      INT64_MAX, INT64_MIN,  -1,        -2,        -128,      1LL << 61};
  return numbers[random.below(std::size(numbers))];
}

std::string fuzz::plainly(StringRef bytes, size_t most) {
  std::string changed = bytes.str();
  size_t size = changed.size();
  changed.resize(std::max(most, size));
  changed.resize(
      LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(changed.data()), size, changed.size()));
  return changed;
}

/// The header's text changed, and its length made to fit.
std::string fuzz::mutateNpy(StringRef bytes, size_t most, Random &random) {
  if (bytes.size() < 12 || random.oneIn(8))
    return "";
  bool wide = bytes[6] > 1;
  size_t from = wide ? 12 : 10;
  size_t length = wide ? llvm::support::endian::read32le(bytes.data() + 8)
                       : llvm::support::endian::read16le(bytes.data() + 8);
  if (length > bytes.size() - from)
    return "";
  std::string header = bytes.substr(from, length).str(), data = bytes.substr(from + length).str();
  std::string &changed = random.oneIn(3) ? data : header;
  changed = plainly(changed, changed.size() + 32);
  std::string result = bytes.take_front(from).str() + header + data;
  if (wide)
    llvm::support::endian::write32le(result.data() + 8, header.size());
  else
    llvm::support::endian::write16le(result.data() + 8, uint16_t(header.size()));
  return result;
}

/// Either part of JSON and a safetensors file.
static std::string mutateBoth(StringRef bytes, size_t most, Random &random) {
  auto [text, tensors] = bytes.split('\0');
  std::string json = text.str(), numbers = tensors.str();
  if (random.oneIn(2))
    json = mutateJson(text, random);
  else
    numbers = mutateSafetensors(tensors, most, random);
  if (json.empty() || numbers.empty())
    return "";
  return json + '\0' + numbers;
}

/// Either part of a program and its note.
std::string fuzz::mutate(StringRef reader, StringRef bytes, size_t most, Random &random) {
  if (random.oneIn(6))
    return "";
  if (reader == "safetensors" || reader == "patch" || reader == "patches")
    return mutateSafetensors(bytes, most, random);
  if (reader == "witness" || reader == "adapter")
    return mutateBoth(bytes, most, random);
  if (reader == "gguf")
    return mutateGguf(bytes, most, random);
  if (reader == "npy")
    return mutateNpy(bytes, most, random);
  if (reader == "records")
    return mutateJsonLines(bytes, random);
  if (reader == "mlir")
    return mutateModelText(bytes, random);
  if (reader == "template" && !bytes.starts_with("{\""))
    return mutateTemplate(bytes, random);
  if (reader == "sentencepiece" || reader == "pt2")
    return "";
  return mutateJson(bytes, random);
}

std::string fuzz::cross(StringRef reader, StringRef a, StringRef b, Random &random) {
  if (reader == "mlir" || reader == "template")
    return crossLines(a, b, random);
  return a.take_front(random.below(a.size() + 1)).str() +
         b.drop_front(random.below(b.size() + 1)).str();
}
