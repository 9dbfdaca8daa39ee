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
#include <map>
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

/// Whether large pages are worth a copy of so many bytes of a tensor. Where scales lie apart, what
/// a kernel gets points into the file.
bool isCopied(const TensorView &view, uint64_t bytes) {
  return bytes >= largeBytes && !view.matrices;
}

class CheckpointWeights : public Weights {
public:
  CheckpointWeights(const Checkpoint &checkpoint, bool inLargePages)
      : checkpoint(checkpoint), inLargePages(inLargePages) {}

  Expected<const void *> get(StringRef name, mlir::RankedTensorType type) override {
    std::lock_guard<std::mutex> lock(mutex);
    Expected<const TensorView &> view = find(name, type);
    if (!view)
      return view.takeError();
    return read(name, *view, type, ElementRun{0, view->elements()});
  }

  Expected<const void *> getPart(StringRef name, mlir::RankedTensorType type,
                                 ArrayRef<ElementRun> runs) override {
    std::lock_guard<std::mutex> lock(mutex);
    Expected<const TensorView &> view = find(name, type);
    if (!view)
      return view.takeError();
    if (view->matrices)
      return nullptr;
    hasParts = true;
    Expected<const void *> part = read(keyOf(name, runs), *view, type, runs);
    // Now and then, when a sixteenth more has been mapped.
    if (mapped.bytes - mapped.atTrim > mapped.atTrim / 16)
      trim();
    return part;
  }

  Expected<std::string> hash() override { return checkpoint.hash(); }

private:
  static std::string keyOf(StringRef name, ArrayRef<ElementRun> runs) {
    ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(runs.data()),
                            runs.size() * sizeof(ElementRun));
    return (name + " " + Twine(xxh3_64bits(bytes))).str();
  }

  /// The tensor under this name, which converts to `type`.
  Expected<const TensorView &> find(StringRef name, mlir::RankedTensorType type) const {
    const TensorView *view = checkpoint.find(name);
    if (!view)
      return makeError(checkpoint.directory() + ": has no tensor " + quoted(name));
    if (!isSameShape(view->shape, type.getShape()))
      return makeError(view->file + ": tensor " + quoted(name) + " has shape " +
                       shapeText(view->shape) + "; expected " + shapeText(type.getShape()));
    DType dtype = storageOf(type.getElementType());
    bool converts = isQuantized(dtype) ? view->dtype == dtype : isReadable(view->dtype);
    if (!isStored(type.getElementType()) || !converts)
      return makeError(view->file + ": tensor " + quoted(name) + " is stored as " +
                       nameOf(view->dtype) + ", which does not convert to " +
                       typeText(type.getElementType()));
    return *view;
  }

  /// The elements of `runs`, which are known as `key`.
  Expected<const void *> read(StringRef key, const TensorView &view, mlir::RankedTensorType type,
                              ArrayRef<ElementRun> runs) {
    int64_t count = 0;
    for (const ElementRun &run : runs)
      count += run.count;
    const uint64_t stored = bytesOf(view.dtype, count);
    // From the first run to the last one: what lies between them is of the same pages.
    const uint8_t *begin = view.data + bytesOf(view.dtype, runs.front().begin);
    const uint64_t span =
        bytesOf(view.dtype, runs.back().begin + runs.back().count - runs.front().begin);
    if (!checked.contains(key)) {
      if (hasParts && !view.matrices)
        mapWithoutNeighbours(begin, span);
      for (const ElementRun &run : runs)
        if (Error error = checkFinite(view, run.begin, run.count))
          return std::move(error);
      checked.insert(key);
      // Of an embedding's table few rows are read again.
      constexpr uint64_t large = 16 << 20;
      if (stored >= large)
        giveBackMappedPages(begin, span);
    }
    const DType dtype = storageOf(type.getElementType());
    const bool isWhole = count == view.elements();
    const void *from = isWhole ? view.stored() : begin;
    // Headers need not be a multiple of 8 long, so that even a tensor of the
    // right type may lie at an odd address.
    const bool aligned = reinterpret_cast<uintptr_t>(from) % alignmentOf(dtype) == 0;
    if (view.dtype == dtype && aligned && runs.size() == 1 &&
        !(inLargePages && isCopied(view, stored))) {
      mapped.add(begin, stored);
      return from;
    }
    return copies.get(key, dtype, bytesOf(dtype, count), [&](uint8_t *to) -> Error {
      for (const ElementRun &run : runs) {
        if (view.dtype == dtype && !view.matrices)
          std::memcpy(to, view.data + bytesOf(dtype, run.begin), bytesOf(dtype, run.count));
        else if (Error error = convert(view, run, dtype, to))
          return error;
        to += bytesOf(dtype, run.count);
      }
      giveBackMappedPages(begin, span);
      return Error::success();
    });
  }

  static Error convert(const TensorView &view, ElementRun run, DType dtype, uint8_t *to) {
    constexpr int64_t chunk = 1 << 14;
    SmallVector<float> numbers;
    for (int64_t i = 0; i < run.count; i += chunk) {
      numbers.resize(std::min(chunk, run.count - i));
      readFloats(view.dtype, view.stored(), run.begin + i, numbers);
      if (!store(dtype, numbers, to + bytesOf(dtype, i)))
        return makeError(view.file + ": tensor " + quoted(view.name) +
                         " has a number beyond the range of " + nameOf(dtype) +
                         "; use a wider storage type");
    }
    return Error::success();
  }

  /// Gives the pages back on which nothing lies that was asked for: with a page that is read, the
  /// system maps the next ones, too.
  void trim() {
    mapped.atTrim = mapped.bytes;
    for (const TensorView &view : checkpoint.tensors()) {
      const uint8_t *at = view.data, *end = view.data + view.bytes;
      for (auto next = mapped.parts.lower_bound(at);
           next != mapped.parts.end() && next->first < end; ++next) {
        if (next->first > at)
          giveBackMappedPages(at, next->first - at);
        at = std::max(at, next->first + next->second);
      }
      if (at < end)
        giveBackMappedPages(at, end - at);
    }
  }

  /// What was given out where it lies in a file.
  struct Mapped {
    std::map<const uint8_t *, uint64_t> parts; ///< bytes from an address on
    uint64_t bytes = 0, atTrim = 0;            ///< of all of them, now and at the last `trim`

    void add(const uint8_t *from, uint64_t size) {
      uint64_t &known = parts[from];
      if (known >= size)
        return;
      bytes += size - known;
      known = size;
    }
  };

  const Checkpoint &checkpoint;
  const bool inLargePages;
  std::mutex mutex;
  bool hasParts = false; ///< whether parts were asked for
  llvm::StringSet<> checked;
  Copies copies;
  Mapped mapped;
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
    bytes += isCopied(view, view.bytes) ? view.bytes : 0;
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
