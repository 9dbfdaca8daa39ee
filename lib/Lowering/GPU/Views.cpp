#include "lib/Lowering/GPU/Views.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

Extent gpu_lowering::operator+(const Extent &a, const Extent &b) {
  return {a.fixed + b.fixed, {a.visible[0] + b.visible[0], a.visible[1] + b.visible[1]}};
}

Extent gpu_lowering::operator*(const Extent &a, int64_t factor) {
  return {a.fixed * factor, {a.visible[0] * factor, a.visible[1] * factor}};
}

std::optional<Extent> gpu_lowering::product(const Extent &a, const Extent &b) {
  if (a.isFixed())
    return b * a.fixed;
  if (b.isFixed())
    return a * b.fixed;
  return std::nullopt;
}

bool gpu_lowering::isAtMost(const Extent &a, const Extent &b) {
  return a.visible[0] <= b.visible[0] && a.visible[1] <= b.visible[1] && a.at(1, 1) <= b.at(1, 1);
}

bool gpu_lowering::isLess(const Extent &a, const Extent &b) {
  return isAtMost(a + fixedExtent(1), b);
}

std::optional<Extent> gpu_lowering::extentOf(Value index) {
  if (!index.getType().isIndex())
    return std::nullopt;
  if (auto number = getConstantIntValue(index))
    return fixedExtent(*number);
  Operation *op = index.getDefiningOp();
  if (auto dim = dyn_cast_or_null<memref::DimOp>(op))
    return dim.getConstantIndex() ? sizeOf(dim.getSource(), *dim.getConstantIndex()) : std::nullopt;
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  auto a = extentOf(op->getOperand(0)), b = extentOf(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::MulIOp>(op))
    return product(*a, *b);
  return *a + *b * (isa<arith::SubIOp>(op) ? -1 : 1);
}

static std::optional<Extent> extentOf(OpFoldResult size) {
  if (auto value = dyn_cast<Value>(size))
    return gpu_lowering::extentOf(value);
  return fixedExtent(cast<IntegerAttr>(cast<Attribute>(size)).getInt());
}

std::optional<Extent> gpu_lowering::sizeOf(Value memref, int64_t i) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(i))
    return fixedExtent(type.getDimSize(i));
  if (isa<BlockArgument>(memref)) {
    kernel::ArgAttr role = kernel::roleOf(memref);
    if (!role || !role.isOfVisible() || i != 0)
      return std::nullopt;
    Extent size; // one row for each visible token
    size.visible[int(role.getRun())] = 1;
    return size;
  }
  Operation *op = memref.getDefiningOp();
  if (auto alloc = dyn_cast<memref::AllocOp>(op))
    return ::extentOf(alloc.getMixedSizes()[i]);
  if (auto cast = dyn_cast<memref::CastOp>(op))
    return sizeOf(cast.getSource(), i);
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(op))
    return ::extentOf(expand.getMixedOutputShape()[i]);
  if (auto view = dyn_cast<memref::SubViewOp>(op)) {
    llvm::SmallBitVector dropped = view.getDroppedDims();
    for (auto [source, size] : llvm::enumerate(view.getMixedSizes()))
      if (!dropped[source] && i-- == 0)
        return ::extentOf(size);
  }
  if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op)) {
    Extent all = fixedExtent(1);
    const SmallVector<ReassociationIndices> groups = collapse.getReassociationIndices();
    for (int64_t source : groups[i]) {
      auto size = sizeOf(collapse.getSrc(), source);
      auto more = size ? product(all, *size) : std::nullopt;
      if (!more)
        return std::nullopt;
      all = *more;
    }
    return all;
  }
  return std::nullopt;
}

std::optional<Extent> gpu_lowering::elementsOf(Value memref) {
  Extent all = fixedExtent(1);
  for (int64_t i = 0, e = cast<MemRefType>(memref.getType()).getRank(); i < e; ++i) {
    auto size = sizeOf(memref, i);
    auto more = size ? product(all, *size) : std::nullopt;
    if (!more)
      return std::nullopt;
    all = *more;
  }
  return all;
}

kernel::QuantizedOp gpu_lowering::quantizedOf(Value root) {
  return root.getDefiningOp<kernel::QuantizedOp>();
}

/// The view of a memref whose rows lie one after the other.
static std::optional<View> wholeOf(Value root) {
  int64_t rank = cast<MemRefType>(root.getType()).getRank();
  View view{root, {}, SmallVector<Extent>(rank, fixedExtent(1))};
  for (int64_t i = rank - 2; i >= 0; --i) {
    auto size = sizeOf(root, i + 1);
    auto stride = size ? product(view.strides[i + 1], *size) : std::nullopt;
    if (!stride)
      return std::nullopt;
    view.strides[i] = *stride;
  }
  return view;
}

static std::optional<View> partOf(memref::SubViewOp op) {
  auto source = viewOf(op.getSource());
  if (!source)
    return std::nullopt;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  View view{source->root, source->offset, {}};
  for (auto [i, offset] : llvm::enumerate(op.getMixedOffsets())) {
    auto at = ::extentOf(offset), step = ::extentOf(op.getMixedStrides()[i]);
    auto moved = at ? product(*at, source->strides[i]) : std::nullopt;
    auto stride = step ? product(*step, source->strides[i]) : std::nullopt;
    if (!moved || !stride)
      return std::nullopt;
    view.offset = view.offset + *moved;
    if (!dropped[i])
      view.strides.push_back(*stride);
  }
  return view;
}

std::optional<View> gpu_lowering::viewOf(Value memref) {
  Operation *op = memref.getDefiningOp();
  if (!op || isa<memref::AllocOp, kernel::QuantizedOp>(op))
    return isa<MemRefType>(memref.getType()) ? wholeOf(memref) : std::nullopt;
  if (auto cast = dyn_cast<memref::CastOp>(op))
    return viewOf(cast.getSource());
  if (auto part = dyn_cast<memref::SubViewOp>(op))
    return partOf(part);
  if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op)) {
    auto source = viewOf(collapse.getSrc());
    if (!source)
      return std::nullopt;
    View view{source->root, source->offset, {}};
    for (const ReassociationIndices &group : collapse.getReassociationIndices())
      view.strides.push_back(source->strides[group.back()]);
    return view;
  }
  auto expand = dyn_cast<memref::ExpandShapeOp>(op);
  auto source = expand ? viewOf(expand.getSrc()) : std::nullopt;
  if (!source)
    return std::nullopt;
  View view{source->root, source->offset,
            SmallVector<Extent>(expand.getResultType().getRank(), fixedExtent(1))};
  for (auto [i, group] : llvm::enumerate(expand.getReassociationIndices())) {
    Extent stride = source->strides[i];
    for (int64_t dim : llvm::reverse(group)) {
      view.strides[dim] = stride;
      auto size = sizeOf(memref, dim);
      auto next = size ? product(stride, *size) : std::nullopt;
      if (!next && dim != group.front())
        return std::nullopt;
      stride = next.value_or(Extent());
    }
  }
  return view;
}

std::optional<Access> gpu_lowering::accessOf(const View &view, AffineMap map) {
  Access access{view, view.offset, SmallVector<Extent>(map.getNumDims())};
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      Extent &step = access.steps[dim.getPosition()];
      step = step + view.strides[i];
    } else if (auto number = dyn_cast<AffineConstantExpr>(expr)) {
      access.offset = access.offset + view.strides[i] * number.getValue();
    } else {
      return std::nullopt;
    }
  }
  return access;
}
