// Products of split numbers, computed as tile registers would compute them. Runs on any processor.
#include "lib/Lowering/CPU/SplitNumbers.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace ctxc;

namespace {

float rounded(float value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool loses;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
  number.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return number.convertToFloat();
}

std::vector<float> partsOf(float value, int64_t count) {
  std::vector<float> parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(rounded(value, llvm::APFloat::BFloat()));
    value -= parts.back();
  }
  EXPECT_EQ(value, 0) << "something is left over";
  return parts;
}

mlir::Type typeOf(mlir::Builder &b, const llvm::fltSemantics &semantics) {
  return &semantics == &llvm::APFloat::BFloat()     ? mlir::Type(b.getBF16Type())
         : &semantics == &llvm::APFloat::IEEEhalf() ? mlir::Type(b.getF16Type())
                                                    : mlir::Type(b.getF32Type());
}

TEST(SplitNumbers, ProductsAreThoseOfFloat32) {
  mlir::MLIRContext context;
  mlir::Builder b(&context);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const llvm::fltSemantics *semantics :
       {&llvm::APFloat::BFloat(), &llvm::APFloat::IEEEhalf(), &llvm::APFloat::IEEEsingle()}) {
    const int64_t wParts = split::partsOf(typeOf(b, *semantics));
    for (int i = 0; i < 1000; ++i) {
      float x = normal(random), w = rounded(normal(random), *semantics);
      std::vector<float> xs = partsOf(x, split::parts), ws = partsOf(w, wParts);
      double sum = 0;
      for (split::Product product : split::products(wParts)) {
        float exact = xs[product.x] * ws[product.w];
        EXPECT_EQ(exact, double(xs[product.x]) * ws[product.w]);
        sum += exact;
      }
      EXPECT_LE(std::abs(sum - double(x) * w), 0x1p-25 * std::abs(double(x) * w));
    }
  }
}

/// Each of the others is there once.
TEST(SplitNumbers, ProductsOfSmallPartsAreLeftOut) {
  for (auto [wParts, count] : {std::pair(1, 3), {2, 5}, {3, 6}}) {
    auto all = split::products(wParts);
    EXPECT_EQ(int64_t(all.size()), count);
    for (auto [i, product] : llvm::enumerate(all)) {
      EXPECT_LE(product.x + product.w, 2);
      EXPECT_LT(product.w, wParts);
      for (split::Product before : llvm::ArrayRef(all).take_front(i))
        EXPECT_TRUE(before.x != product.x || before.w != product.w);
    }
  }
}

} // namespace
