// Weights in quantised formats, for tests.
#ifndef CTXC_TEST_UNIT_COMPILED_QUANTIZEDWEIGHTS_H
#define CTXC_TEST_UNIT_COMPILED_QUANTIZEDWEIGHTS_H

#include "TextModel.h"
#include "ctxc/Lowering/CpuTarget.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include <cstring>
#include <list>
#include <random>

namespace ctxc::test {

/// Whether matrices in this format are multiplied with vectors in fixed point.
inline bool multipliesInFixedPoint(llvm::StringRef format, const CpuTarget &target) {
  llvm::SmallVector<llvm::StringRef> features;
  llvm::StringRef(target.features).split(features, ',');
  return target.lanes == 16 && llvm::is_contained(features, "+avx512vnni") &&
         (format.starts_with("q4_") || format.starts_with("q5_") || format == "q6_k");
}

/// Random numbers in the requested formats. A bank stored as one tensor or expert by expert holds
/// the same numbers.
class QuantizedWeights : public Weights {
public:
  /// With `wholeSpans`, scales stored separately are each for a multiple of 32 columns.
  explicit QuantizedWeights(uint64_t seed, bool wholeSpans = false)
      : seed(seed), wholeSpans(wholeSpans), plain(randomWeights(seed)) {}

  llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override {
    DType dtype = storageOf(type.getElementType());
    if (!isQuantized(dtype))
      return plain->get(name, type);
    auto &known = made[name.str()];
    if (known)
      return known;
    std::mt19937 random(seed + std::hash<std::string>()(name.str()));
    int64_t columns = type.getShape().back(), rows = type.getNumElements() / columns;
    int64_t matrices = type.getRank() == 3 ? type.getDimSize(0) : 1;
    if (!hasScalesApart(dtype))
      return known = blocks(dtype, rows * columns, random);
    auto *list = new (keep(sizeof(ctxc_scaled_matrix) * matrices)) ctxc_scaled_matrix[matrices];
    for (int64_t i = 0; i < matrices; ++i)
      list[i] = scaled(dtype, rows / matrices, columns, random);
    return known = list;
  }
  llvm::Expected<std::string> hash() override { return "quantised"; }

private:
  uint8_t *keep(int64_t bytes) { return memory.emplace_back(bytes).data(); }

  const void *blocks(DType dtype, int64_t elements, std::mt19937 &random) {
    int64_t size = blockSizeOf(dtype).bytes, bytes = bytesOf(dtype, elements);
    uint8_t *at = keep(bytes);
    for (int64_t i = 0; i < bytes; ++i)
      at[i] = uint8_t(random());
    for (int64_t block = 0; block < bytes; block += size) {
      if (dtype == DType::BlockMXFP4) {
        at[block] = uint8_t(122 + random() % 3);
        continue;
      }
      auto put = [&](int64_t offset, float number) {
        uint16_t half = floatToF16(number);
        std::memcpy(at + block + offset, &half, sizeof half);
      };
      if (dtype == DType::Q6_K) {
        put(size - 2, 1e-5f);
        continue;
      }
      bool isK = dtype == DType::Q4_K || dtype == DType::Q5_K;
      float digits = 1 + 1e-3f * float(random() % 1000);
      put(0, isK ? 2e-5f : 1e-3f * digits);
      if (isK || dtype == DType::Q4_1 || dtype == DType::Q5_1)
        put(2, isK ? 1e-4f : -8e-3f);
    }
    return at;
  }

  /// Blocks that do not divide the matrix, and scales that are not aligned.
  ctxc_scaled_matrix scaled(DType dtype, int64_t rows, int64_t columns, std::mt19937 &random) {
    bool isF8 = dtype == DType::ScaledF8E4M3;
    ctxc_scaled_matrix m = {};
    m.rows = rows, m.columns = columns;
    // Kernels read blocks of 32 columns in another way than those of 12.
    m.block_rows = isF8 ? 5 : 1, m.block_columns = isF8 && !wholeSpans && random() % 2 ? 12 : 32;
    m.scale_type = isF8 ? CTXC_SCALE_F32 : CTXC_SCALE_E8M0;
    int64_t bytes = isF8 ? rows * columns : rows * columns / 2;
    uint8_t *elements = keep(bytes);
    for (int64_t i = 0; i < bytes; ++i) {
      elements[i] = uint8_t(random());
      if (isF8 && (elements[i] & 0x7f) > 0x50) // at most 16
        elements[i] -= 0x30;
    }
    int64_t count = (rows / m.block_rows + 1) * (columns / m.block_columns + 1);
    uint8_t *scales = keep(4 * count + 1) + 1;
    for (int64_t i = 0; i < count; ++i) {
      float scale = 0.01f + 0.0001f * float(random() % 100);
      if (isF8)
        std::memcpy(scales + 4 * i, &scale, sizeof scale);
      else
        scales[i] = uint8_t(122 + random() % 3);
    }
    m.elements = elements, m.scales = scales;
    return m;
  }

  uint64_t seed;
  bool wholeSpans;
  std::unique_ptr<Weights> plain;
  std::map<std::string, const void *> made;
  std::list<std::vector<uint8_t>> memory;
};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_COMPILED_QUANTIZEDWEIGHTS_H
