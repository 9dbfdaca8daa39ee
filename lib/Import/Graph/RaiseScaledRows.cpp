// Factors that stand beside a matrix or an axis: weight_norm, and batch_norm with the numbers that
// training has left.
#include "GraphValues.h"
#include "Raise.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// Whether `norms` are the lengths of the rows of `matrix`, as numbers behind each other.
static bool areRowNorms(Value norms, Value matrix) {
  graph::CallOp call = callOf(norms, "linalg_vector_norm");
  auto dims = call ? dyn_cast_or_null<ArrayAttr>(call.getArgument("dim")) : ArrayAttr();
  auto dim = dims && dims.size() == 1 ? dyn_cast<IntegerAttr>(dims[0]) : IntegerAttr();
  return dim && (dim.getInt() == 1 || dim.getInt() == -1) &&
         numberOf(call, "ord").value_or(2) == 2 && beforeCopies(call.getOperand(0)) == matrix;
}

namespace {
/// A stored matrix times a number for each row.
struct ScaledRows {
  Value matrix, factors;
  bool byNorms = false; ///< after the division by the row's length
};
} // namespace

static ScaledRows rowsOf(Value weight) {
  if (graph::CallOp norm = callOf(weight, "_weight_norm")) {
    bool isOfRows = integerOf(norm, "dim").value_or(0) == 0;
    return isOfRows ? ScaledRows{norm.getTensor("v"), norm.getTensor("g"), true} : ScaledRows();
  }
  graph::CallOp product = callOf(weight, "mul");
  std::optional<Sides> sides = product ? sidesOf(product) : std::nullopt;
  if (!sides || !sides->right)
    return {};
  for (auto [matrix, factors] :
       {std::pair(sides->left, sides->right), {sides->right, sides->left}}) {
    matrix = beforeCopies(matrix);
    if (!matrix.getDefiningOp<graph::StoredOp>())
      continue;
    graph::CallOp quotient = callOf(beforeCopies(factors), "div");
    std::optional<Sides> parts = quotient ? sidesOf(quotient) : std::nullopt;
    if (parts && parts->right && areRowNorms(beforeCopies(parts->right), matrix))
      return {matrix, parts->left, true};
    return {matrix, factors, false};
  }
  return {};
}

/// The length of each row.
Value Raiser::rowNorms(Location loc, Value matrix) {
  auto type = ranked(matrix);
  Value ones = xf::createOnes(builder, loc, type.getShape());
  Value rows = xf::ScaleOp::create(builder, loc, ones, matrix, llvm::APFloat(0.0f));
  Value squares = xf::MulOp::create(builder, loc, rows, rows);
  Value columns = xf::TransposeOp::create(builder, loc, squares, ArrayRef<int64_t>{1, 0});
  Value sums = xf::CombineOp::create(builder, loc,
                                     xf::createOnes(builder, loc, {type.getDimSize(1)}), columns);
  return activation(loc, xf::ActivationKind::sqrt, sums);
}

Value Raiser::scaledRows(Location loc, Value weight, Value x) {
  constexpr int64_t mostNumbers = 1 << 20; // whose lengths are computed for each token
  ScaledRows rows = rowsOf(weight);
  graph::StoredOp stored = rows.matrix ? storedOf(rows.matrix) : graph::StoredOp();
  auto of =
      rows.factors ? cast<graph::SymbolicType>(rows.factors.getType()) : graph::SymbolicType();
  bool isOfRows = of && of.getRank() == 2 && of.getNumber(1) == 1;
  if (!stored || !isOfRows || ranked(x).getRank() != 1)
    return {};
  Value matrix = weightOf(stored);
  auto type = ranked(matrix);
  if (type.getRank() != 2 || type.getDimSize(1) != ranked(x).getDimSize(0) ||
      of.getNumber(0) != type.getDimSize(0) || type.getNumElements() > mostNumbers)
    return {};
  Value factors = ofStored(rows.factors);
  if (!factors)
    return {};
  Value y = xf::LinearOp::create(builder, loc, matrix, x, /*transposed=*/false);
  if (rows.byNorms)
    y = xf::DivOp::create(builder, loc, y, rowNorms(loc, matrix));
  return xf::MulOp::create(builder, loc, y, reshaped(loc, factors, y.getType()));
}

/// (x − mean) / √(var + ε), entry by entry along the axis behind the first, times a weight, plus a
/// bias.
Raiser::Results Raiser::fixedNorm(graph::CallOp call) {
  Value of = call.getTensor("input"), x = lookup(of), mean = call.getTensor("running_mean"),
        variance = call.getTensor("running_var");
  Location loc = call.getLoc();
  bool isOfEntries = x && ranked(x).getRank() == 1 && tokenDim(of, 1) == 0;
  auto training = dyn_cast_or_null<BoolAttr>(call.getArgument("training"));
  if (!isOfEntries || !mean || !variance || (training && training.getValue()))
    return {};
  Value by = ofStored(variance), from = ofStored(mean);
  if (!by || !from || by.getType() != x.getType() || from.getType() != x.getType())
    return {};
  by = activation(loc, xf::ActivationKind::sqrt,
                  plus(loc, by, numberOf(call, "eps").value_or(1e-5)));
  Value y = xf::DivOp::create(builder, loc, xf::SubOp::create(builder, loc, x, from), by);
  if (Value weight = call.getTensor("weight"))
    y = withScale(loc, y, weight);
  if (Value bias = call.getTensor("bias"))
    y = withBias(loc, y, bias);
  return y ? Results{y} : Results{};
}
