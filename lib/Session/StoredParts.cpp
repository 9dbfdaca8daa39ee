// Parameters that are parts of what a checkpoint stores.
#include "StoredParts.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace ctxc;

/// The entry of a part that is furthest behind, and the number of entries; neither overflows.
static std::pair<uint64_t, uint64_t> reachOf(const StoredPart &part) {
  uint64_t last = part.offset, count = 1;
  for (auto [size, stride] : zip_equal(part.dims, part.strides)) {
    last = SaturatingMultiplyAdd<uint64_t>(std::max<int64_t>(size, 1) - 1, stride, last);
    count = SaturatingMultiply<uint64_t>(count, size);
  }
  return {last, count};
}

/// Copies the part's entries, one after the other, each of `width` bytes.
static std::vector<uint8_t> entriesOf(const StoredPart &part, const TensorView &whole,
                                      uint64_t count) {
  const uint64_t width = bytesOf(whole.dtype, 1);
  std::vector<uint8_t> entries(count * width);
  SmallVector<int64_t, 4> index(part.dims.size(), 0);
  uint64_t place = part.offset;
  for (uint64_t i = 0; i < count; ++i) {
    std::copy_n(whole.data + place * width, width, entries.data() + i * width);
    for (size_t axis = index.size(); axis-- > 0;) {
      place += part.strides[axis];
      if (++index[axis] < part.dims[axis])
        break;
      place -= index[axis] * part.strides[axis];
      index[axis] = 0;
    }
  }
  return entries;
}

Expected<PartsOfWeights> ctxc::partsOfWeights(const Checkpoint &stored,
                                              ArrayRef<StoredPart> parts) {
  PartsOfWeights made;
  std::vector<MemoryTensor> tensors;
  for (const StoredPart &part : parts) {
    const TensorView *own = stored.find(part.name), *whole = stored.find(part.of);
    if (own && own->shape == part.shape)
      continue;
    if (!whole)
      return makeError(stored.directory() + ": has no tensor " + quoted(part.of) + ", of which " +
                       quoted(part.name) + " is a part");
    if (!isFloating(whole->dtype) || whole->matrices)
      return makeError(whole->file + ": tensor " + quoted(part.of) + " is stored as " +
                       nameOf(whole->dtype) + ", of which the part " + quoted(part.name) +
                       " cannot be taken; expected F32, BF16 or F16");
    auto [last, count] = reachOf(part);
    const uint64_t there = whole->elements();
    if (last >= there || count > there)
      return makeError(whole->file + ": tensor " + quoted(part.of) + " has shape " +
                       shapeText(whole->shape) + ", in which " + quoted(part.name) + ", " +
                       Twine(count) + " entries up to entry " + Twine(last) + ", cannot be");
    made.numbers.push_back(entriesOf(part, *whole, count));
    tensors.push_back({part.name, whole->dtype, part.shape, made.numbers.back().data()});
  }
  if (tensors.empty())
    return made;
  auto checkpoint = Checkpoint::fromMemory(stored.directory(), "{}", tensors);
  if (!checkpoint)
    return checkpoint.takeError();
  made.checkpoint = std::move(*checkpoint);
  return made;
}
