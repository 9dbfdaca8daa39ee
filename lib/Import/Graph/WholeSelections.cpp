// Masks that are the same everywhere while there are few tokens: of the k = min(K, t) largest of a
// token's scores of all t tokens, which are all while t ≤ K, and of chunks of K tokens, of which
// the first is then the only one. The program is read for at most K tokens (graph.program's
// `positions`), as attention without the mask.
#include "Follower.h"
#include "GraphValues.h"
#include "Spelling.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// `value` before it was copied to other types of integers.
static Value beforeCasts(Value value) {
  while (graph::CallOp cast = callOf(value, "_to_copy")) {
    Value from = cast.getTensor("self");
    if (!from || !isa<IntegerType>(elementOf(from)) || elementOf(value).isInteger(1))
      return value;
    value = from;
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
  std::optional<int64_t> dim = integerOf(call, "dim"),
                         along = top && top.getArgument("dim") ? integerOf(top, "dim") : -1;
  if (!self || !scores || !dim || !along || top.getNumResults() != 2 ||
      beforeCasts(index) != top.getResult(1))
    return std::nullopt;
  ArrayRef<Attribute> sizes = cast<graph::SymbolicType>(scores.getType()).getSizes(),
                      places = cast<graph::SymbolicType>(index.getType()).getSizes();
  const int64_t rank = sizes.size(), axis = *dim < 0 ? *dim + rank : *dim;
  // So that each entry along the axis is written, once.
  if (cast<graph::SymbolicType>(self.getType()).getSizes() != sizes || axis < 0 || axis >= rank ||
      (*along < 0 ? *along + rank : *along) != axis || sizes[axis] != tokens ||
      int64_t(places.size()) != rank || places.take_front(axis) != sizes.take_front(axis) ||
      places.drop_front(axis + 1) != sizes.drop_front(axis + 1))
    return std::nullopt;
  return mostOf(places[axis], tokens);
}

/// The K of ⌊p / K⌋, where `value` is that of each token's position p; none where it is another.
static std::optional<int64_t> chunkOf(Value value, const TokenAxes &axes) {
  graph::CallOp divided = callOf(value, "floor_divide");
  std::optional<int64_t> size = divided ? integerOf(divided, "other") : std::nullopt;
  Value from = size && *size > 0 ? divided.getTensor("self") : Value();
  if (!from || axes.isData(from) || axes.countAxes(from) != 1)
    return std::nullopt;
  std::optional<Follower::Places> at = placesOfToken(from, axes);
  if (!at)
    return std::nullopt;
  std::string obstacle;
  Follower::Found found = Follower(axes, writtenNumbers, obstacle).entry(from, *at);
  auto *line = found ? std::get_if<Line>(&*found) : nullptr;
  return line && line->isCount() && line->row && line->number == 0 ? size : std::nullopt;
}

namespace {
/// Replaces calls by what they are for few tokens, and knows how few.
class FewTokens {
public:
  explicit FewTokens(graph::ProgramOp program) : program(program) {}

  /// `call` is `number` everywhere for at most `most` tokens, because of `at`.
  void fill(graph::CallOp call, Attribute number, int64_t most, Location at, const Twine &why) {
    if (!program.getPositions() || most < int64_t(*program.getPositions())) {
      program.setPositions(most);
      fewest.emplace(at);
      said = (why + ": the program is read for at most " + Twine(most) + " tokens").str();
    }
    OpBuilder builder(call);
    Value result = call.getResult(0);
    ArrayRef<Attribute> sizes = cast<graph::SymbolicType>(result.getType()).getSizes();
    NamedAttribute arguments[] = {builder.getNamedAttr("fill_value", number),
                                  builder.getNamedAttr("size", builder.getArrayAttr(sizes))};
    auto filled =
        graph::CallOp::create(builder, call.getLoc(), result.getType(), "aten.full.default",
                              ValueRange(), builder.getDictionaryAttr(arguments), call.getPath(),
                              /*visible=*/false);
    result.replaceAllUsesWith(filled.getResult(0));
  }
  void tell() const {
    if (fewest)
      mlir::emitRemark(*fewest) << said;
  }

private:
  graph::ProgramOp program;
  std::optional<Location> fewest;
  std::string said;
};
} // namespace

void pt2::takeWholeSelections(graph::ProgramOp program) {
  FewTokens few(program);
  std::optional<TokenAxes> axes; // made where there are chunks
  auto isQuotient = [](Value operand) { return bool(callOf(operand, "floor_divide")); };
  for (auto call : llvm::make_early_inc_range(program.getBody().getOps<graph::CallOp>())) {
    if (call.getTarget() == "aten.scatter.value" && call.getArgument("value")) {
      if (std::optional<int64_t> most = tokensOfWhole(call, program.getTokens()))
        few.fill(call, call.getArgument("value"), *most,
                 callOf(beforeCasts(call.getTensor("index")), "topk").getLoc(),
                 "keeps the " + Twine(*most) + " tokens with the largest scores");
    } else if (call.getTarget() == "aten.eq.Tensor" && call.getNumOperands() == 2 &&
               llvm::all_of(call.getOperands(), isQuotient)) {
      if (!axes)
        axes.emplace(program);
      std::optional<int64_t> a = chunkOf(call.getOperand(0), *axes),
                             b = chunkOf(call.getOperands().back(), *axes);
      if (a && a == b)
        few.fill(call, BoolAttr::get(program.getContext(), true), *a, call.getLoc(),
                 "tokens see those of their chunk of " + Twine(*a));
    }
  }
  few.tell();
}
