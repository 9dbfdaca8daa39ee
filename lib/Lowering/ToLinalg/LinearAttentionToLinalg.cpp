// Lowers attention without a softmax, which becomes kernel.scan.
#include "ScanBuilder.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

namespace {

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
void registerLinearAttentionLoweringModel(MLIRContext *context) {
  xf::LinearAttentionOp::attachInterface<LowerLinearAttention>(*context);
}
} // namespace ctxc
