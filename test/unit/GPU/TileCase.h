// One contraction of many rows on a device, compared with float64.
#ifndef CTXC_TEST_UNIT_GPU_TILECASE_H
#define CTXC_TEST_UNIT_GPU_TILECASE_H

#include "Device.h"
#include "TileKernel.h"
#include <cmath>
#include <cstring>
#include <random>

namespace ctxc::test {

struct TileData {
  std::vector<char> weights;
  std::vector<float> W, x, y; ///< W as float32
};

inline float bfloat16(uint16_t bits) {
  uint32_t word = uint32_t(bits) << 16;
  float x;
  memcpy(&x, &word, sizeof x);
  return x;
}

/// The nearest bfloat16; of two equally near ones, the even one.
inline float nearest(float x) {
  uint32_t word;
  memcpy(&word, &x, sizeof word);
  return bfloat16((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

struct TileCase : TileKernel {
  TileData data(std::mt19937 &random) const {
    std::normal_distribution<float> normal;
    TileData data;
    for (int64_t i = 0; i < out * in; ++i) {
      float value = normal(random);
      uint32_t word;
      memcpy(&word, &value, sizeof word);
      uint16_t half = element == "f16" ? (random() & 0x83ff) | 0x3800 : word >> 16;
      if (element == "f16") // between 0.5 and 1
        value = std::copysign(0.5f + (half & 0x3ff) / 2048.0f, half & 0x8000 ? -1.0f : 1.0f);
      else if (element == "bf16")
        value = bfloat16(half);
      data.W.push_back(value);
      size_t bytes = element == "f32" ? sizeof value : sizeof half;
      const void *from = element == "f32" ? static_cast<void *>(&value) : &half;
      data.weights.resize(data.weights.size() + bytes);
      memcpy(data.weights.data() + data.weights.size() - bytes, from, bytes);
    }
    for (int64_t i = 0; i < rows * xStride(); ++i)
      data.x.push_back(normal(random));
    for (int64_t i = 0; i < rows * out; ++i)
      data.y.push_back(accumulates ? normal(random) : NAN);
    return data;
  }

  /// Returns y, after checking that the memory around it is unchanged.
  std::vector<float> run(Device &device, const TileData &data) const {
    mlir::MLIRContext context;
    loadDialects(context);
    auto target = GpuTarget::named(device.target());
    EXPECT_TRUE(bool(target));
    auto module =
        mlir::OwningOpRef<mlir::ModuleOp>(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)));
    std::vector<unsigned> arguments;
    gpu_lowering::WrittenKernel written = write(*module, **target, arguments);
    auto code = (*target)->emit(*module);
    EXPECT_TRUE(bool(code)) << (code ? "" : llvm::toString(code.takeError()));
    EXPECT_EQ(llvm::toString(device.load(*code)), "") << text();
    auto bytes = [](const std::vector<float> &numbers) {
      return llvm::ArrayRef(reinterpret_cast<const char *>(numbers.data()), 4 * numbers.size());
    };
    llvm::ArrayRef<char> contents[] = {data.weights, bytes(data.x), bytes(data.y)};
    std::unique_ptr<Device::Buffer> buffers[3];
    for (auto [content, buffer] : llvm::zip(contents, buffers)) {
      buffer = std::move(*device.allocate(content.size()));
      EXPECT_EQ(llvm::toString(device.upload(*buffer, 0, content)), "");
    }
    Device::Launch launch{
        "tiles", "a test", uint32_t(written.blocks), uint32_t(written.threads), {}};
    for (unsigned argument : arguments)
      launch.buffers.push_back(buffers[argument].get());
    auto sequence = device.record(launch);
    EXPECT_TRUE(bool(sequence)) << (sequence ? "" : llvm::toString(sequence.takeError()));
    auto time = device.run(**sequence);
    EXPECT_TRUE(bool(time)) << (time ? "" : llvm::toString(time.takeError()));
    std::vector<float> y(data.y.size());
    EXPECT_EQ(llvm::toString(device.download({reinterpret_cast<char *>(y.data()), 4 * y.size()},
                                             *buffers[2], 0)),
              "");
    return y;
  }

  void check(Device &device, std::mt19937 &random) const {
    TileData from = data(random);
    std::vector<float> y = run(device, from);
    int64_t wrong = 0;
    bool tensor = element == "bf16" && (*GpuTarget::named(device.target()))->multipliesBfloat16();
    // Tensor cores add at least eight products before they truncate a sum.
    double n =
        tensor ? (3 * ((in + 7) / 8) + 2) * std::ldexp(1, -23) : (in + 2) * std::ldexp(1, -24);
    double bound = n / (1 - n);
    for (int64_t s = 0; s < rows; ++s)
      for (int64_t m = 0; m < out; ++m) {
        double sum = accumulates ? from.y[s * out + m] : 0, size = std::fabs(sum);
        for (int64_t k = 0; k < in; ++k) {
          float number = from.x[offset + s * xStride() + k];
          double term = double(from.W[m * in + k]) * (rounded && tensor ? nearest(number) : number);
          sum += term;
          size += std::fabs(term);
        }
        wrong += !(std::fabs(y[s * out + m] - sum) <= bound * size);
      }
    EXPECT_EQ(wrong, 0) << text();
  }
};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_GPU_TILECASE_H
