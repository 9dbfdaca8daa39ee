// Lowers recurrences, which become kernel.scan.
#include "ctxc/Lowering/LinalgArith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

namespace {

/// A kernel.scan of an op, whose region the caller writes in linalg on memory.
class ScanBuilder {
public:
  ScanBuilder(Operation *op, KernelEmitter &e, ArrayRef<int64_t> carried)
      : op(op), e(e), carried(carried) {}

  /// Reads a tensor of (rows, heads, …), of which `heads` of the scan's parts share one in turn.
  void readRows(Value tensor, int64_t parts, int64_t heads) {
    AffineExpr s, p;
    bindDims(op->getContext(), s, p);
    add(tensor, {s, (p * heads).floorDiv(parts)});
  }
  /// Reads a tensor of (parts, …), which all rows share.
  void readShared(Value tensor) {
    AffineExpr s, p;
    bindDims(op->getContext(), s, p);
    add(tensor, {p});
  }

  /// Writes the op with results of (rows, parts, …), and returns them as a tensor. `body` gets the
  /// state, what is read, and the result.
  Value build(ArrayRef<int64_t> shape,
              llvm::function_ref<void(OpBuilder &, Location, ValueRange)> body);

private:
  void add(Value tensor, ArrayRef<AffineExpr> at) {
    reads.push_back(e.read(tensor));
    maps.push_back(AffineMap::get(2, 0, at, op->getContext()));
  }
  Value reshaped(Value memref) {
    return memref && ArrayRef<int64_t>(carried) != cast<MemRefType>(memref.getType()).getShape()
               ? asParts(memref)
               : memref;
  }
  Value asParts(Value memref);

  Operation *op;
  KernelEmitter &e;
  SmallVector<int64_t> carried;
  SmallVector<Value> reads;
  SmallVector<AffineMap> maps;
};

/// The numbers of a memref in the shape that is carried.
Value ScanBuilder::asParts(Value memref) {
  OpBuilder &b = e.builder;
  auto type = cast<MemRefType>(memref.getType());
  ReassociationIndices all, parts;
  for (int64_t i = 0; i < type.getRank(); ++i)
    all.push_back(i);
  for (size_t i = 0; i < carried.size(); ++i)
    parts.push_back(i);
  if (type.getRank() > 1)
    memref =
        memref::CollapseShapeOp::create(b, e.loc, memref, SmallVector<ReassociationIndices>{all});
  return memref::ExpandShapeOp::create(b, e.loc, carried, memref,
                                       SmallVector<ReassociationIndices>{parts});
}

Value ScanBuilder::build(ArrayRef<int64_t> shape,
                         llvm::function_ref<void(OpBuilder &, Location, ValueRange)> body) {
  OpBuilder &b = e.builder;
  MLIRContext *context = op->getContext();
  SmallVector<int64_t> full{ShapedType::kDynamic};
  llvm::append_range(full, shape);
  auto type = MemRefType::get(full, b.getF32Type());
  Value results = memref::AllocOp::create(b, e.loc, type, ValueRange{e.rows()});
  auto scan = kernel::ScanOp::create(b, e.loc, reads, reshaped(e.before(op)), reshaped(e.after(op)),
                                     results, b.getAffineMapArrayAttr(maps));
  Block &region = scan.getBody().emplaceBlock();
  auto addRest = [&](Value memref, unsigned places) {
    auto whole = cast<MemRefType>(memref.getType());
    ArrayRef<int64_t> rest = whole.getShape().drop_front(places);
    SmallVector<int64_t> strides(rest.size(), 1);
    for (int64_t i = int64_t(rest.size()) - 2; i >= 0; --i)
      strides[i] = strides[i + 1] * rest[i + 1];
    region.addArgument(
        MemRefType::get(rest, whole.getElementType(),
                        StridedLayoutAttr::get(context, ShapedType::kDynamic, strides)),
        e.loc);
  };
  addRest(scan.getBefore(), 1);
  for (auto [read, map] : llvm::zip(scan.getReads(), maps))
    addRest(read, map.getNumResults());
  addRest(results, 2);
  OpBuilder inside = OpBuilder::atBlockBegin(&region);
  body(inside, e.loc, region.getArguments());
  return bufferization::ToTensorOp::create(b, e.loc, RankedTensorType::get(full, b.getF32Type()),
                                           results,
                                           /*restrict=*/true);
}

/// A linalg.generic on memory, over the loops of `iterators`.
void overMemory(OpBuilder &b, Location l, ValueRange ins, Value out, ArrayRef<AffineMap> maps,
                ArrayRef<IteratorType> iterators, KernelEmitter::Body body) {
  linalg::GenericOp::create(b, l, ins, out, maps, iterators,
                            [&](OpBuilder &n, Location at, ValueRange a) {
                              linalg::YieldOp::create(n, at, body(n, at, a));
                            });
}

/// Into how many parts a recurrence of `size` numbers is cut, each of which is computed in vectors.
int64_t partsOf(int64_t size) {
  constexpr int64_t mostOfPart = 256;
  int64_t each = std::min(size, mostOfPart);
  while (size % each)
    --each;
  return size / each;
}

/// h = a ⊙ h' + b.
struct LowerScan : Lowering<LowerScan, xf::ScanOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto scan = cast<xf::ScanOp>(op);
    const int64_t size = ranked(scan).getNumElements(), parts = partsOf(size), each = size / parts;
    ScanBuilder builder(op, e, {parts, each});
    for (Value operand : op->getOperands())
      builder.readRows(inParts(e, e.data(operand), parts, each), parts, parts);
    Value made = builder.build({parts, each}, [&](OpBuilder &b, Location l, ValueRange memory) {
      AffineMap all = AffineMap::getMultiDimIdentityMap(1, b.getContext());
      Value h = memory[0], result = memory[3];
      overMemory(b, l, ValueRange{memory[1], memory[2]}, h, {all, all, all}, IteratorType::parallel,
                 [](OpBuilder &n, Location at, ValueRange a) {
                   return add(n, at, mul(n, at, a[0], a[2]), a[1]);
                 });
      overMemory(b, l, h, result, {all, all}, IteratorType::parallel,
                 [](OpBuilder &, Location, ValueRange a) { return a[0]; });
    });
    e.bind(scan, asValue(e, made, ranked(scan)));
    return success();
  }

private:
  static Value flat(KernelEmitter &e, Value rows) {
    int64_t rank = ranked(rows).getRank();
    if (rank == 2)
      return rows;
    SmallVector<ReassociationIndices> groups{{0}, {}};
    for (int64_t i = 1; i < rank; ++i)
      groups.back().push_back(i);
    return tensor::CollapseShapeOp::create(e.builder, e.loc, rows, groups);
  }
  static Value expanded(KernelEmitter &e, Value rows, ArrayRef<int64_t> shape) {
    if (shape.size() == 1)
      return rows;
    SmallVector<ReassociationIndices> groups{{0}, {}};
    SmallVector<int64_t> full{ShapedType::kDynamic};
    SmallVector<OpFoldResult> sizes{e.rows()};
    for (size_t i = 0; i < shape.size(); ++i) {
      groups.back().push_back(i + 1);
      full.push_back(shape[i]);
      sizes.push_back(e.builder.getIndexAttr(shape[i]));
    }
    return tensor::ExpandShapeOp::create(
        e.builder, e.loc, RankedTensorType::get(full, e.builder.getF32Type()), rows, groups, sizes);
  }
  static Value inParts(KernelEmitter &e, Value rows, int64_t parts, int64_t each) {
    return expanded(e, flat(e, rows), {parts, each});
  }
  static Value asValue(KernelEmitter &e, Value rows, RankedTensorType type) {
    return expanded(e, flat(e, rows), type.getShape());
  }
};

/// Attention without a softmax: a state of each head, to which each token adds.
class LinearAttentionEmitter {
public:
  LinearAttentionEmitter(xf::LinearAttentionOp op, KernelEmitter &e)
      : op(op), e(e), heads(ranked(op.getValue()).getDimSize(0)),
        groups(ranked(op.getKey()).getDimSize(0)), rows(ranked(op.getKey()).getDimSize(1)),
        width(ranked(op.getValue()).getDimSize(1)) {}

  void emit() {
    ScanBuilder builder(op, e, {heads, rows, width});
    builder.readRows(e.data(op.getQuery()), heads, groups);
    builder.readRows(e.data(op.getKey()), heads, groups);
    builder.readRows(e.data(op.getValue()), heads, heads);
    builder.readRows(decay(), heads, heads);
    if (hasOwnRates())
      builder.readShared(rates());
    if (op.getDelta())
      builder.readRows(e.data(op.getDelta()), heads, heads);
    e.bind(op, builder.build({heads, width}, [&](OpBuilder &b, Location l, ValueRange memory) {
      write(b, l, memory);
    }));
  }

private:
  bool isOfRows(Value value) const { return value && ranked(value).getRank() == 2; }
  /// Whether each row of a head's state has a rate, and a token one step for all of them: the
  /// decays, of which there are as many as the state's numbers or nearly so, are made where they
  /// are used.
  bool hasOwnRates() { return isOfRows(op.getRates()) && !isOfRows(op.getDecay()); }

  /// −exp(A), computed once for all rows of a call.
  Value rates() {
    Value stored = e.lookup(op.getRates());
    RankedTensorType type = ranked(op.getRates());
    AffineMap all = AffineMap::getMultiDimIdentityMap(type.getRank(), e.builder.getContext());
    Value into = tensor::EmptyOp::create(e.builder, e.loc, type.getShape(), e.builder.getF32Type());
    return e.generic(into, {stored}, {all, all},
                     SmallVector<IteratorType>(type.getRank(), IteratorType::parallel),
                     [](OpBuilder &n, Location l, ValueRange a) -> Value {
                       return arith::NegFOp::create(n, l, math::ExpOp::create(n, l, a[0]));
                     });
  }

  /// The decays of all rows and heads; the steps, where the decays are made in the scan.
  Value decay() {
    Value steps = e.data(op.getDecay());
    if (hasOwnRates())
      return steps;
    SmallVector<Value> ins{steps};
    SmallVector<bool> withRows{true};
    SmallVector<int64_t> shape(ranked(op.getDecay()).getShape());
    if (op.getRates()) {
      Value rate = rates();
      if (!isOfRows(op.getRates()) && isOfRows(op.getDecay()))
        rate = tensor::ExpandShapeOp::create(
            e.builder, e.loc, RankedTensorType::get({heads, 1}, e.builder.getF32Type()), rate,
            SmallVector<ReassociationIndices>{{0, 1}});
      return product(steps, rate, shape);
    }
    return e.elementwise(shape, ins, withRows, [](OpBuilder &n, Location l, ValueRange a) -> Value {
      return math::ExpOp::create(n, l, a[0]);
    });
  }

  /// exp(steps ⊙ rate) over rows × `shape`, where the rate may have 1 in place of the last size.
  Value product(Value steps, Value rate, ArrayRef<int64_t> shape) {
    MLIRContext *context = e.builder.getContext();
    unsigned rank = shape.size() + 1;
    AffineMap all = AffineMap::getMultiDimIdentityMap(rank, context);
    SmallVector<AffineExpr> at;
    for (unsigned i = 1; i < rank; ++i)
      at.push_back(ranked(rate).getDimSize(i - 1) == 1 && shape[i - 1] != 1
                       ? getAffineConstantExpr(0, context)
                       : getAffineDimExpr(i, context));
    return e.generic(e.emptyRows(shape), {steps, rate},
                     {all, AffineMap::get(rank, 0, at, context), all},
                     SmallVector<IteratorType>(rank, IteratorType::parallel),
                     [](OpBuilder &n, Location l, ValueRange a) -> Value {
                       return math::ExpOp::create(n, l, mul(n, l, a[0], a[1]));
                     });
  }

  AffineMap map(ArrayRef<AffineExpr> at) const {
    return AffineMap::get(2, 0, at, e.builder.getContext());
  }

  /// The decay of state[k, v], of what the body gets: of the decay alone, or a step and a rate.
  Value decayed(OpBuilder &n, Location l, Value state, ValueRange of) {
    Value factor = of[0];
    if (hasOwnRates())
      factor = math::ExpOp::create(n, l, mul(n, l, of[0], of[1]));
    return mul(n, l, factor, state);
  }

  void write(OpBuilder &b, Location l, ValueRange memory);
  /// state[k, v] = a[k] state[k, v], where `decays`, + key[k] added[v], where something is added.
  void update(OpBuilder &b, Location l, bool decays, Value added);
  /// into[v] = Σ_k vector[k] state[k, v].
  void readState(OpBuilder &b, Location l, Value vector, Value into);

  xf::LinearAttentionOp op;
  KernelEmitter &e;
  int64_t heads, groups, rows, width;
  // In the region: a head's memory, and the loops over its state. The longer of both is innermost,
  // so that it is computed in vectors.
  AffineExpr k, v;
  Value state, key;
  AffineMap ofState;
  SmallVector<Value, 2> factors;
  SmallVector<AffineMap, 2> factorMaps;
};

void LinearAttentionEmitter::update(OpBuilder &b, Location l, bool decays, Value added) {
  SmallVector<Value> ins;
  SmallVector<AffineMap> maps;
  if (decays) {
    ins.assign(factors.begin(), factors.end());
    maps.assign(factorMaps.begin(), factorMaps.end());
  }
  const unsigned from = ins.size();
  if (added) {
    ins.append({key, added});
    maps.append({map({k}), map({v})});
  }
  maps.push_back(ofState);
  if (width == 1) { // the rows alone are a loop
    MLIRContext *context = b.getContext();
    for (AffineMap &each : maps)
      each = each.replaceDimsAndSymbols(
          {getAffineConstantExpr(0, context), getAffineDimExpr(0, context)}, {}, 1, 0);
  }
  overMemory(b, l, ins, state, maps,
             SmallVector<IteratorType>(width == 1 ? 1 : 2, IteratorType::parallel),
             [&](OpBuilder &n, Location at, ValueRange a) {
               Value kept = decays ? decayed(n, at, a.back(), a) : Value(a.back());
               return added ? add(n, at, kept, mul(n, at, a[from], a[from + 1])) : kept;
             });
}

void LinearAttentionEmitter::readState(OpBuilder &b, Location l, Value vector, Value into) {
  linalg::FillOp::create(b, l, ctxc::constant(b, l, 0.0), into);
  const bool alongRows = k == getAffineDimExpr(1, b.getContext());
  SmallVector<IteratorType> loops(2, IteratorType::parallel);
  loops[alongRows ? 1 : 0] = IteratorType::reduction;
  auto flags = alongRows ? kFast : arith::FastMathFlags::contract;
  overMemory(b, l, ValueRange{vector, state}, into, {map({k}), ofState, map({v})}, loops,
             [&](OpBuilder &n, Location at, ValueRange a) -> Value {
               Value term = arith::MulFOp::create(n, at, a[0], a[1], flags);
               return arith::AddFOp::create(n, at, a[2], term, flags);
             });
}

/// `memory` is the state, the query, the key, the value, what decays are made of, the delta where
/// there is one, and the result.
void LinearAttentionEmitter::write(OpBuilder &b, Location l, ValueRange memory) {
  bindDims(b.getContext(), k, v);
  if (width < 4)
    std::swap(k, v);
  state = memory[0];
  key = memory[2];
  ofState = map({k, v});
  if (width == 1) { // one number of each row: they lie side by side
    state = memref::CollapseShapeOp::create(b, l, state, SmallVector<ReassociationIndices>{{0, 1}});
    ofState = map({k});
  }
  Value query = memory[1], value = memory[3], result = memory.back();
  factors.push_back(memory[4]);
  factorMaps.push_back(isOfRows(op.getDecay()) ? map({k}) : map({}));
  if (hasOwnRates()) {
    factors.push_back(memory[5]);
    factorMaps.push_back(map({k}));
  }
  if (!op.getDelta()) {
    update(b, l, /*decays=*/true, value);
    return readState(b, l, query, result);
  }
  // What is added lies where the result will be.
  update(b, l, /*decays=*/true, {});
  readState(b, l, key, result);
  AffineMap each = AffineMap::getMultiDimIdentityMap(1, b.getContext());
  overMemory(b, l, ValueRange{value, memory[memory.size() - 2]}, result,
             {each, AffineMap::get(1, 0, {}, b.getContext()), each}, IteratorType::parallel,
             [](OpBuilder &n, Location at, ValueRange a) {
               return mul(n, at, a[1], sub(n, at, a[0], a[2]));
             });
  update(b, l, /*decays=*/false, result);
  readState(b, l, query, result);
}

struct LowerLinearAttention : Lowering<LowerLinearAttention, xf::LinearAttentionOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    LinearAttentionEmitter(cast<xf::LinearAttentionOp>(op), e).emit();
    return success();
  }
};

} // namespace

namespace ctxc {
void registerRecurrenceLoweringModels(MLIRContext *context) {
  xf::ScanOp::attachInterface<LowerScan>(*context);
  xf::LinearAttentionOp::attachInterface<LowerLinearAttention>(*context);
}
} // namespace ctxc
