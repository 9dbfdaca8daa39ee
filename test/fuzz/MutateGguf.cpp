// A GGUF file taken apart, changed, and put together with counts, lengths and offsets that fit.
#include "Mutate.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include <vector>

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

namespace {

constexpr uint32_t textType = 8, arrayType = 9;
constexpr unsigned sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
/// ggml's types with the elements and bytes of their blocks.
struct Block {
  uint32_t type;
  uint64_t elements, bytes;
};
constexpr Block blocks[] = {{0, 1, 4},      {1, 1, 2},      {2, 32, 18}, {3, 32, 20},
                            {6, 32, 22},    {7, 32, 24},    {8, 32, 34}, {12, 256, 144},
                            {13, 256, 176}, {14, 256, 210}, {28, 1, 8},  {30, 1, 2}};

struct Key {
  std::string name;
  uint32_t type;
  std::string value; ///< as it is stored
};

struct Tensor {
  std::string name;
  std::vector<uint64_t> shape; ///< fastest first
  uint32_t type;
};

template <typename T> std::string raw(T x) {
  std::string bytes(sizeof(T), '\0');
  llvm::support::endian::write<T, llvm::endianness::little>(bytes.data(), x);
  return bytes;
}
std::string text(StringRef s) { return raw<uint64_t>(s.size()) + s.str(); }

/// Reads from the front of `rest`; after the first failure everything is zero.
struct Source {
  StringRef rest;
  bool ok = true;

  StringRef take(uint64_t size) {
    ok &= size <= rest.size();
    if (!ok)
      return "";
    StringRef found = rest.take_front(size);
    rest = rest.drop_front(size);
    return found;
  }
  template <typename T> T number() {
    StringRef bytes = take(sizeof(T));
    return bytes.empty() ? T(0)
                         : llvm::support::endian::read<T, llvm::endianness::little>(bytes.data());
  }
  std::string name() { return take(number<uint64_t>()).str(); }
  std::string value(uint32_t type) {
    StringRef before = rest;
    if (type == textType) {
      name();
    } else if (type == arrayType) {
      uint32_t of = number<uint32_t>();
      uint64_t count = number<uint64_t>();
      ok &= of < std::size(sizes) && of != arrayType && count <= rest.size();
      for (uint64_t i = 0; ok && i < count; ++i)
        value(of);
    } else {
      ok &= type < std::size(sizes);
      take(ok ? sizes[type] : 0);
    }
    return before.take_front(before.size() - rest.size()).str();
  }
};

class File {
public:
  /// False where `bytes` are no such file.
  bool parse(StringRef bytes) {
    Source from{bytes};
    from.take(4);
    version = from.number<uint32_t>();
    uint64_t tensorCount = from.number<uint64_t>(), keyCount = from.number<uint64_t>();
    for (uint64_t i = 0; from.ok && i < keyCount; ++i) {
      Key key{from.name(), from.number<uint32_t>(), ""};
      key.value = from.value(key.type);
      keys.push_back(std::move(key));
    }
    for (uint64_t i = 0; from.ok && i < tensorCount; ++i) {
      Tensor tensor{from.name(), {}, 0};
      uint32_t dims = from.number<uint32_t>();
      for (uint32_t d = 0; from.ok && d < dims; ++d)
        tensor.shape.push_back(from.number<uint64_t>());
      tensor.type = from.number<uint32_t>();
      from.number<uint64_t>();
      tensors.push_back(std::move(tensor));
    }
    data = from.rest.str();
    return from.ok;
  }

  void change(Random &random);
  std::string write() const;

private:
  void changeKey(Random &random);
  void changeTensor(Random &random);
  static uint64_t bytesOf(const Tensor &tensor);

  uint32_t version = 3;
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::string data;
};

} // namespace

void File::changeKey(Random &random) {
  Key &key = keys[random.below(keys.size())];
  const Key &other = keys[random.below(keys.size())];
  switch (random.below(6)) {
  case 0:
    key.name = plainly(key.name, key.name.size() + 16);
    return;
  case 1:
    key.name = other.name;
    return;
  case 2:
    key.type = other.type;
    key.value = other.value;
    return;
  case 3:
    std::swap(key, keys.back());
    keys.pop_back();
    return;
  default:
    break;
  }
  if (key.type == textType) {
    key.value = text(plainly(StringRef(key.value).drop_front(8), key.value.size() + 16));
  } else if (key.type == arrayType) {
    if (random.oneIn(3))
      key.value.replace(4, 8, raw<uint64_t>(boundary(random)));
    else
      key.value = plainly(key.value, key.value.size());
  } else if (random.oneIn(2)) {
    std::string number = raw<uint64_t>(boundary(random));
    key.value = number.substr(0, key.value.size());
  } else {
    std::string number = plainly(key.value, key.value.size());
    number.resize(key.value.size());
    key.value = number;
  }
}

void File::changeTensor(Random &random) {
  Tensor &tensor = tensors[random.below(tensors.size())];
  switch (random.below(5)) {
  case 0:
    tensor.name = tensors[random.below(tensors.size())].name;
    return;
  case 1:
    tensor.name = plainly(tensor.name, tensor.name.size() + 8);
    return;
  case 2:
    tensor.type =
        random.oneIn(8) ? uint32_t(boundary(random)) : blocks[random.below(std::size(blocks))].type;
    return;
  case 3:
    std::swap(tensor, tensors.back());
    tensors.pop_back();
    return;
  default:
    break;
  }
  size_t at = random.below(tensor.shape.size() + 1);
  if (at == tensor.shape.size())
    tensor.shape.push_back(1);
  else if (random.oneIn(6))
    tensor.shape.erase(tensor.shape.begin() + at);
  else
    tensor.shape[at] = random.oneIn(2) ? boundary(random) : 1 + random.below(64);
}

void File::change(Random &random) {
  for (size_t i = 0, n = 1 + random.below(3); i < n; ++i)
    if (!keys.empty() && (tensors.empty() || random.oneIn(2)))
      changeKey(random);
    else if (!tensors.empty())
      changeTensor(random);
}

uint64_t File::bytesOf(const Tensor &tensor) {
  const Block *block = llvm::find_if(blocks, [&](const Block &b) { return b.type == tensor.type; });
  if (block == std::end(blocks))
    return 0;
  uint64_t elements = 1;
  for (uint64_t size : tensor.shape)
    elements = size < (1 << 16) ? elements * size : 0;
  uint64_t bytes = elements / block->elements * block->bytes;
  return bytes < (1 << 16) ? bytes : 0;
}

std::string File::write() const {
  std::string out =
      "GGUF" + raw(version) + raw<uint64_t>(tensors.size()) + raw<uint64_t>(keys.size());
  for (const Key &key : keys)
    out += text(key.name) + raw(key.type) + key.value;
  uint64_t end = 0;
  auto align = [](uint64_t x) { return (x + 31) / 32 * 32; };
  for (const Tensor &tensor : tensors) {
    out += text(tensor.name) + raw<uint32_t>(tensor.shape.size());
    for (uint64_t size : tensor.shape)
      out += raw(size);
    out += raw(tensor.type) + raw(end);
    end = align(end + bytesOf(tensor));
  }
  out.resize(align(out.size()));
  std::string numbers = data;
  numbers.resize(end);
  return out + numbers;
}

std::string fuzz::mutateGguf(StringRef bytes, size_t most, Random &random) {
  File file;
  if (!file.parse(bytes))
    return "";
  file.change(random);
  return file.write();
}
