// Ops that give each entry another place, and change none: transpose and permute. What they say to
// the analyses is what a reshape says, but for sums: an entry meets another than its own there.
#include "dialects/XF/InferTypes.h"
#include "dialects/XF/Sizes.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ctxc::xf;

static ArrayRef<int64_t> shapeOf(Value value) { return ranked(value.getType()).getShape(); }

static bool isPermutation(ArrayRef<int64_t> order, size_t count) {
  SmallVector<bool> seen(count);
  for (int64_t from : order) {
    if (from < 0 || from >= int64_t(count) || seen[from])
      return false;
    seen[from] = true;
  }
  return order.size() == count;
}

static SmallVector<int64_t> inverse(ArrayRef<int64_t> order) {
  SmallVector<int64_t> result(order.size());
  for (auto [to, from] : llvm::enumerate(order))
    result[from] = to;
  return result;
}

static std::string textOf(ArrayRef<int64_t> numbers) {
  auto texts = llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); });
  return "[" + llvm::join(texts, ", ") + "]";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(checkShapes(loc, "xf.transpose", {{adaptor.getData().getType()}})))
    return failure();
  auto x = ranked(adaptor.getData().getType());
  DenseI64ArrayAttr order = adaptor.getProperties().order;
  // C1
  if (!order || !isPermutation(order.asArrayRef(), x.getRank()))
    return emitOptionalError(loc, "'xf.transpose' op orders the dimensions of ", x, " by ",
                             order ? textOf(order.asArrayRef()) : "nothing", "; each of 0 to ",
                             x.getRank() - 1, " must be there once");
  types.push_back(activation(context, llvm::map_to_vector(order.asArrayRef(), [&](int64_t from) {
                               return x.getDimSize(from);
                             })));
  return success();
}

LogicalResult PermuteOp::verify() {
  auto x = ranked(getData().getType());
  int64_t along = getAlong();
  // C1
  if (along < 0 || along >= x.getRank())
    return emitOpError("orders parts along dimension ") << along << " of " << x;
  // C2
  int64_t left = x.getDimSize(along);
  bool areSizes = true;
  for (int64_t size : getParts()) {
    areSizes &= size > 0 && size <= left;
    left -= areSizes ? size : 0;
  }
  if (!areSizes || left != 0)
    return emitOpError("divides a dimension of ")
           << x.getDimSize(along) << " into parts " << textOf(getParts())
           << "; the sizes must be positive, and their sum that dimension";
  // C3
  if (!isPermutation(getOrder(), getParts().size()))
    return emitOpError("orders ") << getParts().size() << " parts by " << textOf(getOrder())
                                  << "; each of 0 to " << getParts().size() - 1
                                  << " must be there once";
  return success();
}

//===----------------------------------------------------------------------===//
// Analyses
//===----------------------------------------------------------------------===//

/// Whether all entries stay where they are, in row-major order.
static bool keepsOrder(TransposeOp op) {
  int64_t last = -1;
  for (int64_t from : op.getOrder()) {
    if (shapeOf(op.getData())[from] == 1)
      continue;
    if (from < last)
      return false;
    last = from;
  }
  return true;
}
static bool keepsOrder(PermuteOp op) { return llvm::is_sorted(op.getOrder()); }

/// What holds of all entries holds wherever they are. The result counts as piecewise: an entry of
/// it is one of the operand, so that their difference may be zero everywhere.
static Facts ofMoved(bool keepsOrder, const Facts &operand) {
  Facts facts = operand;
  facts.piecewise |= !keepsOrder;
  return facts;
}
static SmallVector<SumTerm> termsOf(bool keepsOrder) {
  if (keepsOrder)
    return {{0, 1}};
  return {};
}

Facts TransposeOp::inferFacts(ArrayRef<Facts> operands) {
  return ofMoved(keepsOrder(*this), operands[0]);
}
Facts PermuteOp::inferFacts(ArrayRef<Facts> operands) {
  return ofMoved(keepsOrder(*this), operands[0]);
}
SmallVector<SumTerm> TransposeOp::getSumTerms() { return termsOf(keepsOrder(*this)); }
SmallVector<SumTerm> PermuteOp::getSumTerms() { return termsOf(keepsOrder(*this)); }

// Distances, dimensions and signs do not depend on the order of the entries.
Reach TransposeOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) { return operands[0]; }
Reach PermuteOp::inferReach(ArrayRef<Reach> operands, ArrayRef<Facts>) { return operands[0]; }

//===----------------------------------------------------------------------===//
// Chains
//===----------------------------------------------------------------------===//

Solvability TransposeOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
Value TransposeOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  return TransposeOp::create(b, getLoc(), target, inverse(getOrder()));
}

Solvability PermuteOp::getSolvability(unsigned, std::string &) { return Solvability::Exact; }
Value PermuteOp::buildSolve(OpBuilder &b, unsigned, Value target, ValueRange) {
  auto sizes = llvm::map_to_vector(getOrder(), [&](int64_t from) { return getParts()[from]; });
  return PermuteOp::create(b, getLoc(), target.getType(), target, sizes, inverse(getOrder()),
                           getAlong());
}

SmallVector<int64_t> PermuteOp::getStarts() {
  SmallVector<int64_t> starts;
  int64_t from = 0;
  for (int64_t size : getParts()) {
    starts.push_back(from);
    from += size;
  }
  return starts;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

namespace {
struct PermuteSizes : SizesOpInterface::ExternalModel<PermuteSizes, PermuteOp> {
  SmallVector<SizeRelation> getSizeRelations(Operation *op) const {
    auto permute = cast<PermuteOp>(op);
    return {{SizeRelation::Sum,
             {shapeOf(permute.getData())[permute.getAlong()]},
             SmallVector<int64_t, 4>(permute.getParts())}};
  }
  void resize(Operation *op, llvm::function_ref<int64_t(int64_t)> f) const {
    auto permute = cast<PermuteOp>(op);
    permute.setParts(llvm::map_to_vector(permute.getParts(), f));
  }
};
} // namespace

void ctxc::xf::attachPermutationModels(MLIRContext &context) {
  PermuteOp::attachInterface<PermuteSizes>(context);
}
