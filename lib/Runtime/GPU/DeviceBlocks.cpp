#include "lib/Runtime/GPU/DeviceBlocks.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include "ctxc/Support/Error.h"
#include "dialects/XF/XF.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace ctxc;
using llvm::Error;

static constexpr int64_t span = CTXC_SCALED_SPAN;
/// How many bytes are uploaded at once.
static constexpr size_t piece = size_t(8) << 20;

/// A block of fp8: the scale, and the elements as they are.
static void putF8(const uint8_t *elements, float scale, char *block) {
  std::memcpy(block, &scale, sizeof scale);
  std::memcpy(block + sizeof scale, elements, span);
}

/// A block of mxfp4: the exponent of the scale, a power of two; then elements i and i + 16 in byte
/// i, where the checkpoint has 2 i and 2 i + 1.
static void putMXFP4(const uint8_t *elements, float scale, char *block) {
  uint32_t bits;
  std::memcpy(&bits, &scale, sizeof bits);
  block[0] = char(bits >> 23); // 2^-127 is no normal number, and its exponent 0
  auto element = [&](int64_t i) { return elements[i / 2] >> (i % 2 ? 4 : 0) & 15; };
  for (int64_t i = 0; i < span / 2; ++i)
    block[1 + i] = char(element(i) | element(i + span / 2) << 4);
}

Error ctxc::uploadBlocks(Device &device, Device::Buffer &to, size_t offset, StringRef name,
                         RankedTensorType stored, const void *matrix) {
  auto type = cast<xf::QuantizedType>(stored.getElementType());
  const auto *first = static_cast<const ctxc_scaled_matrix *>(matrix);
  const bool isF8 = type.getFormat() == xf::BlockFormat::f8e4m3;
  const int64_t columns = stored.getShape().back(), rows = stored.getNumElements() / columns;
  const int64_t rowBytes = isF8 ? columns : columns / 2, blocks = columns / span;
  const int64_t blockBytes = type.getDeviceBlockBytes();
  std::vector<float> scales(blocks);
  std::vector<char> bytes;
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t *elements = ctxc_scaled_row(first, row, rowBytes, scales.data());
    if (!elements)
      return makeError(
          "'" + name + "': has a scale for each " + std::to_string(first->block_columns) +
          " columns; on a GPU, expected a multiple of 32; choose bf16 or f32 as the storage type");
    for (int64_t i = 0; i < blocks; ++i) {
      if (!isF8 && std::isnan(scales[i]))
        return makeError("'" + name + "': row " + std::to_string(row) +
                         " has a scale that is not a number");
      bytes.resize(bytes.size() + blockBytes);
      (isF8 ? putF8 : putMXFP4)(elements + i * span * rowBytes / columns, scales[i],
                                bytes.data() + bytes.size() - blockBytes);
    }
    if (bytes.size() < piece && row + 1 < rows)
      continue;
    if (Error error = device.upload(to, offset, bytes))
      return error;
    offset += bytes.size();
    bytes.clear();
  }
  return Error::success();
}
