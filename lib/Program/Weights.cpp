#include "ctxc/Program/Weights.h"
#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Checkpoint/MappedPages.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/LargePages.h"
#include "dialects/XF/XF.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"
#include <cmath>
#include <cstring>
#include <mutex>

using namespace llvm;
using namespace ctxc;

namespace {

/// Whether weights have elements of this type.
bool isStored(mlir::Type element) {
  return element.isF32() || element.isBF16() || element.isF16() || isa<xf::QuantizedType>(element);
}

/// The alignment that a kernel that reads `dtype` may assume.
unsigned alignmentOf(DType dtype) { return isQuantized(dtype) ? 1 : bitsOf(dtype) / 8; }

std::string typeText(mlir::Type type) {
  std::string text;
  raw_string_ostream(text) << type;
  return text;
}

/// What is smaller than this lies in small pages.
constexpr uint64_t largeBytes = 1 << 16;

/// Copies, one for each name and storage type.
class Copies {
public:
  /// The copy of `name` as `dtype`; `fill` writes it on first use.
  Expected<const void *> get(StringRef name, DType dtype, uint64_t bytes,
                             function_ref<Error(uint8_t *)> fill) {
    std::string key = (nameOf(dtype) + " " + name).str();
    auto found = copies.find(key);
    if (found != copies.end())
      return found->second;
    uint8_t *copy = memoryOf(bytes);
    if (!copy)
      return makeError("parameter " + quoted(name) + ": there is no memory for " + Twine(bytes) +
                       " bytes");
    if (Error error = fill(copy))
      return std::move(error);
    return copies[key] = copy;
  }

private:
  uint8_t *memoryOf(uint64_t bytes) {
    if (bytes >= largeBytes)
      return pages.take(bytes);
    return small.emplace_back(new uint8_t[bytes + 1]).get();
  }

  LargePages pages;
  std::vector<std::unique_ptr<uint8_t[]>> small;
  StringMap<const uint8_t *> copies;
};

/// Writes `from` as `dtype` at `to`; false where a finite number has no finite
/// form there.
bool store(DType dtype, ArrayRef<float> from, uint8_t *to) {
  writeFloats(dtype, from, to);
  SmallVector<float> back(from.size());
  readFloats(dtype, to, back);
  return llvm::all_of(back, [](float x) { return std::isfinite(x); });
}

/// Whether large pages are worth a copy. Where scales lie apart, what a kernel gets points into the
/// file.
bool isCopied(const TensorView &view) { return view.bytes >= largeBytes && !view.matrices; }

class CheckpointWeights : public Weights {
public:
  CheckpointWeights(const Checkpoint &checkpoint, bool inLargePages)
      : checkpoint(checkpoint), inLargePages(inLargePages) {}

  Expected<const void *> get(StringRef name, mlir::RankedTensorType type) override {
    std::lock_guard<std::mutex> lock(mutex);
    const TensorView *view = checkpoint.find(name);
    if (!view)
      return makeError(checkpoint.directory() + ": has no tensor " + quoted(name));
    if (ArrayRef(view->shape) != type.getShape())
      return makeError(view->file + ": tensor " + quoted(name) + " has shape " +
                       shapeText(view->shape) + "; expected " + shapeText(type.getShape()));
    DType dtype = storageOf(type.getElementType());
    bool converts = isQuantized(dtype) ? view->dtype == dtype : isReadable(view->dtype);
    if (!isStored(type.getElementType()) || !converts)
      return makeError(view->file + ": tensor " + quoted(name) + " is stored as " +
                       nameOf(view->dtype) + ", which does not convert to " +
                       typeText(type.getElementType()));
    if (!checked.contains(name)) {
      if (Error error = checkFinite(*view))
        return std::move(error);
      checked.insert(name);
      // Of an embedding's table few rows are read again.
      constexpr uint64_t large = 16 << 20;
      if (view->bytes >= large)
        giveBackMappedPages(view->data, view->bytes);
    }
    // Headers need not be a multiple of 8 long, so that even a tensor of the
    // right type may lie at an odd address.
    bool aligned = reinterpret_cast<uintptr_t>(view->data) % alignmentOf(dtype) == 0;
    if (view->dtype == dtype && aligned && !(inLargePages && isCopied(*view)))
      return view->stored();
    if (view->dtype == dtype && !view->matrices)
      return copies.get(name, dtype, view->bytes, [&](uint8_t *to) {
        std::memcpy(to, view->data, view->bytes);
        giveBackMappedPages(view->data, view->bytes);
        return Error::success();
      });
    uint64_t bytes = bytesOf(dtype, view->elements());
    return copies.get(name, dtype, bytes, [&](uint8_t *to) { return convert(*view, dtype, to); });
  }

  Expected<std::string> hash() override { return checkpoint.hash(); }

private:
  static Error convert(const TensorView &view, DType dtype, uint8_t *to) {
    constexpr int64_t chunk = 1 << 14;
    SmallVector<float> numbers;
    for (int64_t i = 0, n = view.elements(); i < n; i += chunk) {
      numbers.resize(std::min(chunk, n - i));
      readFloats(view.dtype, view.stored(), i, numbers);
      if (!store(dtype, numbers, to + bytesOf(dtype, i)))
        return makeError(view.file + ": tensor " + quoted(view.name) +
                         " has a number beyond the range of " + nameOf(dtype) +
                         "; use a wider --dtype");
    }
    return Error::success();
  }

  const Checkpoint &checkpoint;
  const bool inLargePages;
  std::mutex mutex;
  llvm::StringSet<> checked;
  Copies copies;
};

/// A counter-based generator (SplitMix64), so that numbers do not depend on
/// the library or the order of calls.
class RandomWeights : public Weights {
public:
  explicit RandomWeights(uint64_t seed) : seed(seed) {}

  Expected<const void *> get(StringRef name, mlir::RankedTensorType type) override {
    std::lock_guard<std::mutex> lock(mutex);
    DType dtype = storageOf(type.getElementType());
    if (!isStored(type.getElementType()) || isQuantized(dtype) || !type.hasStaticShape())
      return makeError("parameter " + quoted(name) + ": there are no random numbers of type " +
                       typeText(type));
    int64_t n = type.getNumElements();
    std::string key = (name + shapeText(type.getShape())).str();
    return copies.get(key, dtype, bytesOf(dtype, n), [&](uint8_t *to) {
      double deviation = type.getRank() >= 2 ? 1 / std::sqrt(double(type.getShape().back())) : 0.3;
      uint64_t state = mix(seed) ^ xxh3_64bits(key);
      std::vector<float> numbers(n);
      for (float &x : numbers)
        x = float(deviation * normal(state));
      writeFloats(dtype, numbers, to);
      return Error::success();
    });
  }

  Expected<std::string> hash() override { return "random-" + std::to_string(seed); }

private:
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  /// In (0, 1].
  static double uniform(uint64_t &state) {
    return double((mix(state += 0x9e3779b97f4a7c15u) >> 11) + 1) * 0x1p-53;
  }
  /// Box and Muller's method, one of its two numbers.
  static double normal(uint64_t &state) {
    double radius = std::sqrt(-2 * std::log(uniform(state)));
    return radius * std::cos(2 * M_PI * uniform(state));
  }

  uint64_t seed;
  std::mutex mutex;
  Copies copies;
};

} // namespace

DType ctxc::storageOf(mlir::Type element) {
  constexpr DType formats[] = {
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES) DType::NAME,
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES) DType::NAME,
#include "ctxc/Support/BlockFormats.def"
  };
  if (auto quantized = dyn_cast<xf::QuantizedType>(element))
    return formats[static_cast<size_t>(quantized.getFormat())];
  return element.isBF16() ? DType::BF16 : element.isF16() ? DType::F16 : DType::F32;
}

mlir::Type ctxc::elementOf(DType dtype, mlir::MLIRContext *context) {
  switch (dtype) {
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES)                                     \
  case DType::NAME:                                                                                \
    return xf::QuantizedType::get(context, xf::BlockFormat::NAME_IN_TEXT);
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES)                              \
  case DType::NAME:                                                                                \
    return xf::QuantizedType::get(context, xf::BlockFormat::NAME_IN_TEXT);
#include "ctxc/Support/BlockFormats.def"
  case DType::BF16:
    return mlir::BFloat16Type::get(context);
  case DType::F16:
    return mlir::Float16Type::get(context);
  default:
    return mlir::Float32Type::get(context);
  }
}

std::unique_ptr<Weights> ctxc::checkpointWeights(const Checkpoint &checkpoint, bool inLargePages) {
  return std::make_unique<CheckpointWeights>(checkpoint, inLargePages);
}

uint64_t ctxc::bytesInLargePages(const Checkpoint &checkpoint) {
  uint64_t bytes = 0;
  for (const TensorView &view : checkpoint.tensors())
    bytes += isCopied(view) ? view.bytes : 0;
  return bytes;
}

std::unique_ptr<Weights> ctxc::randomWeights(uint64_t seed) {
  return std::make_unique<RandomWeights>(seed);
}

Expected<const void *> ctxc::getSlice(Weights &weights, StringRef name, mlir::RankedTensorType type,
                                      int64_t index) {
  auto slice = mlir::RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  if (isBankName(name))
    return weights.get(sliceName(name, index), slice);
  Expected<const void *> whole = weights.get(name, type);
  if (!whole)
    return whole.takeError();
  return sliceOf(storageOf(type.getElementType()), *whole, index, slice.getNumElements());
}

Expected<std::vector<const void *>> ctxc::getSlices(Weights &weights, StringRef name,
                                                    mlir::RankedTensorType type) {
  std::vector<const void *> slices;
  for (int64_t i = 0; i < type.getDimSize(0); ++i) {
    Expected<const void *> slice = getSlice(weights, name, type, i);
    if (!slice)
      return slice.takeError();
    slices.push_back(*slice);
  }
  return slices;
}
