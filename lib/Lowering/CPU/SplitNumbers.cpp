#include "lib/Lowering/CPU/SplitNumbers.h"
#include "dialects/XF/XF.h"
#include "lib/Lowering/StoredLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ctxc;

int64_t split::partsOf(Type element) {
  if (auto quantized = dyn_cast<xf::QuantizedType>(element)) {
    const blocks::Layout &layout = layoutOf(quantized);
    if (layout.numbers == blocks::E2M1) // times a power of two
      return 1;
    const bool isProduct = layout.scale == blocks::Half && !layout.minimumAt;
    return isProduct && layout.bits() <= 5 ? 2 : parts; // 11 bits and 5
  }
  return element.isBF16() ? 1 : element.isF16() ? 2 : parts;
}

Value split::takePart(OpBuilder &b, Location loc, Value &rest) {
  Type wide = rest.getType();
  Type narrow = isa<ShapedType>(wide) ? Type(cast<ShapedType>(wide).clone(b.getBF16Type()))
                                      : Type(b.getBF16Type());
  Value part = arith::TruncFOp::create(b, loc, narrow, rest);
  rest = arith::SubFOp::create(b, loc, rest, arith::ExtFOp::create(b, loc, wide, part));
  return part;
}

llvm::SmallVector<Value> split::takeParts(OpBuilder &b, Location loc, Value numbers,
                                          int64_t count) {
  Type type = numbers.getType(), element = getElementTypeOrSelf(type);
  if (element.isBF16())
    return {numbers};
  if (!element.isF32())
    numbers = arith::ExtFOp::create(b, loc, cast<ShapedType>(type).clone(b.getF32Type()), numbers);
  llvm::SmallVector<Value> taken;
  while (int64_t(taken.size()) < count)
    taken.push_back(takePart(b, loc, numbers));
  return taken;
}

llvm::SmallVector<split::Product> split::products(int64_t wParts) {
  llvm::SmallVector<Product> all;
  for (int64_t w = wParts - 1; w >= 0; --w) {
    const int64_t first = all.empty() ? 0 : all.back().x; // is at hand
    all.push_back({first, w});
    for (int64_t x = 0; x + w < parts; ++x)
      if (x != first)
        all.push_back({x, w});
  }
  return all;
}
