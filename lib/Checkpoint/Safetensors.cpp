#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include <cstring>

using namespace llvm;
using namespace ctxc;

bool ctxc::isSameShape(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  auto plain = [](llvm::ArrayRef<int64_t> shape) {
    llvm::SmallVector<int64_t, 4> sizes;
    while (shape.size() > 2 && shape.front() == 1)
      shape = shape.drop_front();
    for (auto [i, size] : llvm::enumerate(shape))
      if (i == 0 || i + 1 == shape.size() || size != 1)
        sizes.push_back(size);
    return sizes.empty() ? llvm::SmallVector<int64_t, 4>{1} : sizes;
  };
  return plain(a) == plain(b);
}

int64_t TensorView::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Expected<std::unique_ptr<SafetensorsFile>> SafetensorsFile::open(StringRef path) {
  Expected<std::unique_ptr<MappedFile>> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.takeError();
  Expected<SafetensorsHeader> header = parseSafetensorsHeader((*mapped)->bytes(), path);
  if (!header)
    return header.takeError();
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->mapped = std::move(*mapped);
  file->meta = std::move(header->metadata);
  file->start = header->dataStart;
  for (SafetensorsEntry &entry : header->entries) {
    TensorView view;
    view.name = std::move(entry.name);
    view.dtype = entry.dtype;
    view.shape = std::move(entry.shape);
    view.data = file->mapped->bytes().data() + file->start + entry.begin;
    view.bytes = entry.end - entry.begin;
    view.file = path.str();
    file->byName[view.name] = file->views.size();
    file->views.push_back(std::move(view));
  }
  return file;
}

const TensorView *SafetensorsFile::find(StringRef name) const {
  auto found = byName.find(name.str());
  return found == byName.end() ? nullptr : &views[found->second];
}

namespace {

/// Elements [begin, end) of a tensor.
struct Stretch {
  int64_t begin, end;
};

/// The first element whose exponent bits are all ones, or -1. Whole blocks are
/// tested without a branch, which vectorises; a hit is then located.
template <typename Word>
int64_t firstNonFinite(const TensorView &tensor, Stretch in, Word exponent) {
  constexpr size_t block = 4096;
  const size_t end = in.end;
  for (size_t from = in.begin; from < end; from += block) {
    size_t n = std::min(block, end - from);
    const uint8_t *data = tensor.data + from * sizeof(Word);
    auto isBad = [&](size_t i) {
      Word word;
      std::memcpy(&word, data + i * sizeof(Word), sizeof(Word));
      return (word & exponent) == exponent;
    };
    bool bad = false;
    for (size_t i = 0; i < n; ++i)
      bad |= isBad(i);
    for (size_t i = 0; bad && i < n; ++i)
      if (isBad(i))
        return static_cast<int64_t>(from + i);
  }
  return -1;
}

/// A block with a scale that is not finite is not finite.
int64_t firstNonFiniteQuantized(const TensorView &tensor, Stretch in) {
  constexpr int64_t chunk = 1 << 12; // elements, of whole blocks
  std::vector<float> values;
  for (int64_t first = in.begin; first < in.end; first += chunk) {
    values.resize(std::min(chunk, in.end - first));
    readFloats(tensor.dtype, tensor.stored(), first, values);
    auto bad = llvm::find_if(values, [](float x) { return !std::isfinite(x); });
    if (bad != values.end())
      return first + (bad - values.begin());
  }
  return -1;
}

int64_t firstNonFinite(const TensorView &tensor, Stretch in) {
  switch (tensor.dtype) {
  case DType::F16:
    return firstNonFinite<uint16_t>(tensor, in, 0x7c00);
  case DType::BF16:
    return firstNonFinite<uint16_t>(tensor, in, 0x7f80);
  case DType::F32:
    return firstNonFinite<uint32_t>(tensor, in, 0x7f800000);
  case DType::F64:
    return firstNonFinite<uint64_t>(tensor, in, 0x7ff0000000000000);
  default:
    return isQuantized(tensor.dtype) ? firstNonFiniteQuantized(tensor, in) : -1;
  }
}

} // namespace

Error ctxc::checkFinite(const TensorView &tensor) {
  return checkFinite(tensor, 0, tensor.elements());
}

Error ctxc::checkFinite(const TensorView &tensor, int64_t begin, int64_t count) {
  int64_t index = firstNonFinite(tensor, {begin, begin + count});
  if (index < 0)
    return Error::success();
  BlockSize block = blockSizeOf(tensor.dtype);
  SmallVector<double, 256> values(block.elements);
  readDoubles(tensor.dtype, tensor.stored(), index / block.elements * block.elements, values);
  double value = values[index % block.elements];
  SmallVector<int64_t, 4> position(tensor.shape.size());
  int64_t rest = index;
  for (size_t axis = tensor.shape.size(); axis-- > 0; rest /= tensor.shape[axis])
    position[axis] = rest % tensor.shape[axis];
  return makeError(tensor.file + ": tensor " + quoted(tensor.name) + ": element " +
                   shapeText(position) + " is " +
                   (value != value ? "NaN"
                    : value > 0    ? "infinity"
                                   : "-infinity") +
                   ", expected a finite number; the checkpoint is damaged, fetch it again");
}
