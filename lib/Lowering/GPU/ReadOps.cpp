#include "lib/Lowering/GPU/ReadOps.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Lowering/GPU/QuantizedNumbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

SmallVector<Value> RowOp::roots() const {
  SmallVector<Value> roots;
  for (const std::optional<Access> &access : accesses)
    if (access)
      roots.push_back(access->view.root);
  for (const Gather &gather : gathered)
    roots.push_back(gather.access.view.root);
  if (support)
    for (const View &view : support->memory)
      roots.push_back(view.root);
  return roots;
}

bool RowOp::isShortSum() const {
  constexpr int64_t most = 8;
  int64_t terms = 1;
  for (auto [size, reduction] : llvm::zip(loops, isReduction))
    if (reduction)
      terms *= size.isFixed() ? size.fixed : most + 1;
  return terms <= most;
}

bool RowOp::reads(Value root) const {
  bool sets = !hasReduction();
  for (auto [i, access] : llvm::enumerate(accesses))
    if (access && access->view.root == root && (int64_t(i) < inputs || !sets))
      return true;
  if (support && support->uses(root))
    return true;
  return llvm::any_of(gathered, [&](const Gather &g) { return g.access.view.root == root; });
}

bool RowOp::writes(Value root) const {
  for (const std::optional<Access> &access : ArrayRef(accesses).drop_front(inputs))
    if (access && access->view.root == root)
      return true;
  return support && support->uses(root);
}

static constexpr StringLiteral noBlocks = "a matrix in fp8 whose rows are not a multiple of 32 "
                                          "numbers, and a table in fp8 or mxfp4, have no "
                                          "GPU kernel";

namespace {

class Reader {
public:
  Reader(const GpuTarget &target, std::string &reason) : target(target), reason(reason) {}

  FailureOr<RowOp> read(Operation *op) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      return readLinalg(linalgOp);
    if (auto copy = dyn_cast<memref::CopyOp>(op))
      return readCopy(copy);
    if (auto contract = dyn_cast<kernel::ContractOp>(op))
      return readContraction(contract);
    if (auto experts = dyn_cast<kernel::ExpertsOp>(op))
      return readExperts(experts);
    if (auto call = dyn_cast<kernel::CallOp>(op))
      return readSupport(call);
    if (auto attention = dyn_cast<kernel::AttentionOp>(op))
      return readAttention(attention);
    return refuse("'" + op->getName().getStringRef() + "' has no GPU kernel");
  }

private:
  LogicalResult refuse(const Twine &why) {
    reason = why.str();
    return failure();
  }

  FailureOr<View> readView(Value memref) {
    auto view = viewOf(memref);
    if (!view)
      return refuse("memory whose place is not a linear function of the visible tokens has no GPU "
                    "kernel");
    if (auto matrix = quantizedOf(view->root)) {
      auto stored = cast<RankedTensorType>(matrix.getStored());
      auto type = cast<xf::QuantizedType>(stored.getElementType());
      if (stored.getShape().back() % type.getDeviceBlockElements())
        return refuse(noBlocks);
    }
    if (cast<MemRefType>(view->root.getType()).getElementType().isF16() && !target.readsFloat16())
      return refuse("weights of storage type f16 are not read; bf16 and f32 are");
    auto count = elementsOf(view->root);
    if (!count || (count->isFixed() && count->fixed >= int64_t(1) << 31))
      return refuse("a tensor of 2^31 or more elements has no GPU kernel");
    return *view;
  }

  FailureOr<std::optional<Access>> readAccess(Value operand, AffineMap map) {
    if (!isa<MemRefType>(operand.getType()))
      return std::optional<Access>();
    auto view = readView(operand);
    if (failed(view))
      return failure();
    auto access = accessOf(*view, map);
    if (!access)
      return refuse("an index that is not one loop's has no GPU kernel");
    return access;
  }

  FailureOr<RowOp> readLinalg(linalg::LinalgOp op) {
    auto row =
        readLoops(op, op.getIteratorTypesArray(), op.getIndexingMapsArray(), op.getNumDpsInputs());
    if (failed(row))
      return failure();
    for (Operation &nested : *op.getBlock())
      if (failed(checkNested(&nested, *row)))
        return failure();
    return row;
  }

  FailureOr<RowOp> readContraction(kernel::ContractOp op) {
    return readLoops(op, op.getIteratorTypes(), op.getIndexingMaps(), 2);
  }

  FailureOr<RowOp> readLoops(Operation *op, ArrayRef<utils::IteratorType> types,
                             ArrayRef<AffineMap> maps, int64_t inputs) {
    RowOp row{op, {}, {}, {}, inputs, {}, {}, {}};
    row.loops.resize(types.size(), fixedExtent(-1));
    for (auto type : types)
      row.isReduction.push_back(type == utils::IteratorType::reduction);
    for (auto [operand, map] : llvm::zip(op->getOperands(), maps)) {
      auto access = readAccess(operand, map);
      if (failed(access))
        return failure();
      row.accesses.push_back(*access);
      for (auto [i, expr] : llvm::enumerate(map.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
          auto size = sizeOf(operand, i);
          if (!size)
            return refuse("a size that is not a linear function of the visible tokens has no GPU "
                          "kernel");
          row.loops[dim.getPosition()] = *size;
        }
    }
    return row;
  }

  /// Checks that an op inside a linalg op has a GPU form.
  LogicalResult checkNested(Operation *op, RowOp &row) {
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      auto view = readView(load.getMemRef());
      if (failed(view))
        return failure();
      row.gathered.push_back(gatherOf(load, *view, row.loops.size()));
    } else if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
               !isa<linalg::IndexOp, linalg::YieldOp>(op)) {
      return refuse("'" + op->getName().getStringRef() + "' inside of a loop has no GPU kernel");
    }
    for (Value operand : op->getOperands()) {
      bool isInside = operand.getParentBlock() == op->getBlock();
      bool isNumber = matchPattern(operand, m_Constant()) || extentOf(operand);
      if (!isInside && !isNumber && !isa<MemRefType>(operand.getType()))
        return refuse("a value that is computed outside of a loop has no GPU kernel");
    }
    return success();
  }

  static Gather gatherOf(memref::LoadOp load, const View &view, size_t loops) {
    Gather gather{{view, view.offset, SmallVector<Extent>(loops)}, *elementsOf(view.root)};
    for (auto [index, stride] : llvm::zip(load.getIndices(), view.strides)) {
      auto loop = index.getDefiningOp<linalg::IndexOp>();
      if (!loop)
        break;
      Extent &step = gather.access.steps[loop.getDim()];
      step = step + stride;
      gather.length = stride;
    }
    return gather;
  }

  FailureOr<RowOp> readCopy(memref::CopyOp op) {
    int64_t rank = cast<MemRefType>(op.getSource().getType()).getRank();
    AffineMap identity = AffineMap::getMultiDimIdentityMap(rank, op.getContext());
    RowOp row{op, {}, SmallVector<bool>(rank, false), {}, 1, {}, {}, {}};
    for (int64_t i = 0; i < rank; ++i) {
      auto size = sizeOf(op.getTarget(), i);
      if (!size)
        return refuse("a size that is not a linear function of the visible tokens has no GPU "
                      "kernel");
      row.loops.push_back(*size);
    }
    for (Value memref : {op.getSource(), op.getTarget()}) {
      auto access = readAccess(memref, identity);
      if (failed(access))
        return failure();
      row.accesses.push_back(*access);
    }
    return row;
  }

  FailureOr<RowOp> readExperts(kernel::ExpertsOp op) {
    if (cast<MemRefType>(op.getBank().getType()).getRank() != 3)
      return refuse(noBlocks);
    SmallVector<View> views;
    for (Value memory : {op.getBank(), op.getVectors(), op.getSums(), op.getSelected()}) {
      auto view = readView(memory);
      if (failed(view))
        return failure();
      views.push_back(*view);
    }
    const View &bank = views[0], &x = views[1], &y = views[2], &selected = views[3];
    int64_t in = cast<MemRefType>(op.getVectors().getType()).getShape().back();
    bool each = x.strides.size() == 3; // each slot has a vector of its own
    RowOp row{op, {}, {false, false, false, true}, {}, 2, {}, {}, {}};
    for (int64_t i : {0, 1, 2})
      row.loops.push_back(*sizeOf(op.getSums(), i));
    row.loops.push_back(fixedExtent(in));
    Extent m = bank.strides[1], k = bank.strides[2], slot = bank.strides[0];
    if (op.getTransposed())
      std::swap(m, k);
    row.accesses = {
        // The strides are those for slots that all take different matrices.
        Access{bank, bank.offset, {slot * row.loops[1].fixed, slot, m, k}},
        Access{x, x.offset, {x.strides[0], each ? x.strides[1] : Extent(), {}, x.strides.back()}},
        Access{y, y.offset, {y.strides[0], y.strides[1], y.strides[2], {}}}};
    row.selected = Access{selected, selected.offset, {selected.strides[0], selected.strides[1]}};
    row.gathered.push_back(
        {{selected, selected.offset, {selected.strides[0], selected.strides[1], {}, {}}},
         fixedExtent(1)});
    return row;
  }

  /// The loops are (row, group, head, slot, component of a key, component of a value); accesses are
  /// those of all operands.
  FailureOr<RowOp> readAttention(kernel::AttentionOp op) {
    AffineExpr s, g, r, t, d, x;
    bindDims(op.getContext(), s, g, r, t, d, x);
    auto map = [&](ArrayRef<AffineExpr> of) { return AffineMap::get(6, 0, of, op.getContext()); };
    SmallVector<AffineMap> maps{map({s, g, r, d}), map({t, g, d}), map({t, g, x})};
    if (op.getWindow())
      maps.push_back(map(getAffineConstantExpr(0, op.getContext())));
    for (AffineMap other : op.getMaps().getAsValueRange<AffineMapAttr>())
      maps.push_back(map(other.getResults()));
    if (op.getSinks())
      maps.push_back(map({s, g, r}));
    if (op.getOwnScores())
      maps.append({map({s, g, r}), map({s, g, x})});
    maps.push_back(map({s, g, r, x}));
    SmallVector<utils::IteratorType> types(6, utils::IteratorType::parallel);
    auto row = readLoops(op, types, maps, int64_t(maps.size()) - 1);
    if (failed(row))
      return failure();
    for (Operation &nested : op.getScore().front().without_terminator())
      if (failed(checkNested(&nested, *row)))
        return failure();
    return row;
  }

  /// Whether the rows of the table that `call` decodes are whole blocks of the device's memory.
  static bool hasBlocks(kernel::CallOp call) {
    auto number = [&](unsigned i) { return cast<IntegerAttr>(call.getNumbers()[i]).getInt(); };
    auto type = xf::QuantizedType::get(call.getContext(), xf::BlockFormat(number(0)));
    return number(2) % type.getDeviceBlockElements() == 0;
  }

  FailureOr<RowOp> readSupport(kernel::CallOp call) {
    if (!isSupported(call.getFunction()))
      return refuse("'" + call.getCallee() + "' has no GPU form");
    if (call.getFunction() == kernel::SupportFunction::ctxc_decode_rows && !hasBlocks(call))
      return refuse(noBlocks);
    auto count = sizeOf(call.getMemory().back(), 0);
    if (!count)
      return refuse("a call for rows that are not counted has no GPU kernel");
    RowOp row{call, {}, {}, {}, 0, {}, Support{call.getFunction(), call.getNumbers(), {}}, {}};
    bool isOfOne = *count == fixedExtent(1);
    if (!isOfOne) {
      row.loops.push_back(*count);
      row.isReduction.push_back(false);
    }
    const kernel::Signature signature = call.getSignature();
    for (auto [memory, parameter] : llvm::zip(call.getMemory(), signature.memory())) {
      auto view = readView(memory);
      if (failed(view))
        return failure();
      view->strides.truncate(isOfOne || parameter.isShared ? 0 : 1);
      row.support->memory.push_back(*view);
    }
    return row;
  }

  const GpuTarget &target;
  std::string &reason;
};

} // namespace

FailureOr<RowOp> gpu_lowering::readOp(Operation *op, const GpuTarget &target, std::string &reason) {
  return Reader(target, reason).read(op);
}
