// The k = min(K, t) largest of a token's scores of all t tokens, of which a mask is made: while
// t ≤ K they are all tokens, and the mask is the same everywhere. The program is then read for at
// most K tokens (graph.program's `positions`), as attention without a selection.
#include "GraphValues.h"
#include "Spelling.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// `value` before it was copied to other types of integers.
static Value beforeCasts(Value value) {
  while (graph::CallOp cast = callOf(value, "_to_copy")) {
    if (!isa<IntegerType>(elementOf(cast.getOperand(0))) || elementOf(value).isInteger(1))
      return value;
    value = cast.getOperand(0);
  }
  return value;
}

/// K of "Min(K, t)"; none where `size` is another one.
static std::optional<int64_t> mostOf(Attribute size, Attribute tokens) {
  auto text = dyn_cast_or_null<StringAttr>(size), symbol = dyn_cast<StringAttr>(tokens);
  StringRef rest = text ? text.getValue() : StringRef();
  if (!symbol || !rest.consume_front("Min(") || !rest.consume_back(")"))
    return std::nullopt;
  auto [first, second] = rest.split(", ");
  int64_t most;
  if (first == symbol.getValue())
    std::swap(first, second);
  return second == symbol.getValue() && !first.getAsInteger(10, most) && most > 0
             ? std::optional(most)
             : std::nullopt;
}

/// How many tokens there can be so that `call` writes its number to all entries: along one axis, at
/// the places of the largest scores of all tokens.
static std::optional<int64_t> tokensOfWhole(graph::CallOp call, Attribute tokens) {
  Value self = call.getTensor("self"), index = call.getTensor("index");
  graph::CallOp top = index ? callOf(beforeCasts(index), "topk") : graph::CallOp();
  Value scores = top ? top.getTensor("self") : Value();
  std::optional<int64_t> dim = integerOf(call, "dim");
  if (!self || !scores || !dim || beforeCasts(index) != top.getResult(1))
    return std::nullopt;
  ArrayRef<Attribute> sizes = cast<graph::SymbolicType>(scores.getType()).getSizes();
  const int64_t rank = sizes.size(),
                along = top.getArgument("dim") ? integerOf(top, "dim").value_or(rank) : int64_t(-1);
  const int64_t axis = (*dim + rank) % std::max<int64_t>(rank, 1);
  // So that each entry along the axis is written, once.
  if (cast<graph::SymbolicType>(self.getType()).getSizes() != sizes || along >= rank ||
      (along + rank) % rank != axis || sizes[axis] != tokens)
    return std::nullopt;
  return mostOf(cast<graph::SymbolicType>(index.getType()).getSizes()[axis], tokens);
}

void pt2::takeWholeSelections(graph::ProgramOp program) {
  graph::CallOp selection; // of the fewest tokens
  for (auto call : llvm::make_early_inc_range(program.getBody().getOps<graph::CallOp>())) {
    if (call.getTarget() != "aten.scatter.value" || !call.getArgument("value"))
      continue;
    std::optional<int64_t> most = tokensOfWhole(call, program.getTokens());
    if (!most)
      continue;
    if (!program.getPositions() || *most < int64_t(*program.getPositions())) {
      program.setPositions(*most);
      selection = callOf(beforeCasts(call.getTensor("index")), "topk");
    }
    OpBuilder builder(call);
    Value result = call.getResult(0);
    NamedAttribute arguments[] = {
        builder.getNamedAttr("fill_value", call.getArgument("value")),
        builder.getNamedAttr(
            "size", builder.getArrayAttr(cast<graph::SymbolicType>(result.getType()).getSizes()))};
    auto filled =
        graph::CallOp::create(builder, call.getLoc(), result.getType(), "aten.full.default",
                              ValueRange(), builder.getDictionaryAttr(arguments), call.getPath(),
                              /*visible=*/false);
    result.replaceAllUsesWith(filled.getResult(0));
  }
  if (selection)
    mlir::emitRemark(selection.getLoc())
        << "keeps the " << int64_t(*program.getPositions())
        << " tokens with the largest scores: the program is read for at most as many tokens, of "
           "which it keeps all";
}
