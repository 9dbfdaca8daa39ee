// The rules by which PyTorch's ops treat tokens: AtenOps.def gives each op its own. An op without a
// rule may join tokens.
#include "TokenRules.h"
#include "dialects/Graph/AtenOps.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace ctxc;
using graph::SymbolicType;

std::optional<int64_t> TokenCall::tokenAxis(StringRef name) const {
  graph::CallOp op = call;
  Value value = op.getTensor(name);
  if (!value || !axes.isData(value))
    return std::nullopt;
  if (std::optional<unsigned> axis = axes.axis(value))
    return *axis;
  return std::nullopt;
}

std::optional<int64_t> TokenCall::dim(StringRef name, int64_t rank, int64_t otherwise) const {
  graph::CallOp op = call;
  Attribute given = op.getArgument(name);
  auto number = dyn_cast_or_null<IntegerAttr>(given);
  if (given && !number)
    return std::nullopt;
  int64_t dim = number ? number.getInt() : otherwise;
  dim += dim < 0 ? rank : 0;
  return dim >= 0 && dim < rank ? std::optional(dim) : std::nullopt;
}

namespace {

using Rule = Mixing (*)(const TokenCall &);

Mixing joins(bool does) { return does ? Mixing::Tokens : Mixing::None; }

/// Entry by entry, with operands that are repeated where they are shorter. Whatever meets a result
/// with one axis of tokens has its own there, since any other would be a second one.
Mixing entries(const TokenCall &c) {
  for (Value operand : c.call.getOperands())
    if (std::optional<unsigned> axis = c.axes.axis(operand)) {
      // Aligned at the back.
      int64_t back = c.type(operand).getRank() - *axis;
      Value result = c.call.getResult(0);
      if (c.type(result).getRank() - int64_t(*c.axes.axis(result)) != back)
        return Mixing::Tokens;
    }
  return Mixing::None;
}

/// The numbers of `self` in the type of another tensor, which is not read otherwise.
Mixing copies(const TokenCall &c) {
  graph::CallOp call = c.call;
  return call.getTensor("self") && c.tokenAxis("self") ? Mixing::None : Mixing::Unknown;
}

/// The product of sizes, as numbers; none where one is an expression.
std::optional<int64_t> product(ArrayRef<Attribute> sizes) {
  int64_t result = 1;
  for (Attribute size : sizes) {
    auto number = dyn_cast<IntegerAttr>(size);
    if (!number || llvm::MulOverflow(result, number.getInt(), result))
      return std::nullopt;
  }
  return result;
}

/// The same numbers in the same order: a token's stay together where as many entries come before
/// its axis.
Mixing order(const TokenCall &c) {
  Value from = c.call.getOperands().front(), to = c.call.getResult(0);
  auto before = [&](Value v) { return product(c.type(v).getSizes().take_front(*c.axes.axis(v))); };
  std::optional<int64_t> a = before(from), b = before(to);
  return joins(!a || a != b);
}

/// A permutation of axes, or one that only adds or removes axes of one entry, or of a complex
/// number's two parts: the tokens' axis is the one of their number.
Mixing permutes(const TokenCall &) { return Mixing::None; }

/// What is computed along one axis, or along several; without the argument along all.
Mixing along(const TokenCall &c, StringRef tensor, StringRef name,
             std::optional<int64_t> otherwise) {
  graph::CallOp call = c.call;
  std::optional<int64_t> axis = c.tokenAxis(tensor);
  if (!axis)
    return Mixing::Unknown;
  int64_t rank = c.type(call.getTensor(tensor)).getRank();
  Attribute given = call.getArgument(name);
  SmallVector<int64_t> dims;
  if (auto list = dyn_cast_or_null<ArrayAttr>(given)) {
    for (Attribute dim : list) {
      auto number = dyn_cast<IntegerAttr>(dim);
      if (!number)
        return Mixing::Unknown;
      dims.push_back(number.getInt());
    }
  } else if (auto number = dyn_cast_or_null<IntegerAttr>(given)) {
    dims.push_back(number.getInt());
  } else if (otherwise) {
    dims.push_back(*otherwise);
  }
  if (dims.empty())
    return Mixing::Tokens;
  return joins(llvm::any_of(dims, [&](int64_t dim) { return (dim + rank) % rank == *axis; }));
}

Mixing reduces(const TokenCall &c) { return along(c, "self", "dim", std::nullopt); }
/// Of two tensors, entry by entry; or of one along an axis.
Mixing extremes(const TokenCall &c) {
  graph::CallOp call = c.call;
  return call.getTensor("other") ? entries(c) : reduces(c);
}
Mixing alongAxes(const TokenCall &c) {
  graph::CallOp call = c.call;
  bool isNamed = call.getArgument("dim") || call.getArgument("dims");
  return isNamed ? along(c, "self", call.getArgument("dim") ? "dim" : "dims", std::nullopt)
                 : Mixing::Unknown;
}
Mixing alongLast(const TokenCall &c) { return along(c, "self", "dim", -1); }

/// A part along an axis: the tokens' is whole where its length stays.
Mixing part(const TokenCall &c) {
  graph::CallOp call = c.call;
  std::optional<int64_t> axis = c.tokenAxis("self");
  if (!axis)
    return Mixing::Unknown;
  std::optional<int64_t> dim = c.dim("dim", c.type(call.getTensor("self")).getRank(), 0);
  if (!dim)
    return Mixing::Unknown;
  if (*dim != *axis)
    return Mixing::None;
  // The length alone says nothing of a step other than 1.
  auto step = dyn_cast_or_null<IntegerAttr>(call.getArgument("step"));
  bool isWhole = call.getBaseName() == "slice" && (!step || step.getInt() == 1) &&
                 call.getNumResults() == 1 &&
                 c.type(call.getResult(0)).getSizes() == c.type(call.getTensor("self")).getSizes();
  return joins(!isWhole);
}

/// Entries by index: the indices of a token lie in its own place, and are of one of its entries.
Mixing gathers(const TokenCall &c) {
  graph::CallOp call = c.call;
  Value index = call.getTensor("index");
  std::optional<int64_t> axis = c.tokenAxis("self");
  if (!axis || !index)
    return Mixing::Unknown;
  std::optional<unsigned> own = c.axes.axis(index);
  if (!own || int64_t(*own) != *axis ||
      c.type(index).getRank() != c.type(call.getTensor("self")).getRank())
    return Mixing::Unknown;
  return along(c, "self", "dim", std::nullopt);
}

/// One after the other, or one in place of a part of another, along an axis.
Mixing cat(const TokenCall &c) {
  Value first = c.call.getResult(0);
  std::optional<int64_t> dim = c.dim("dim", c.type(first).getRank(), 0);
  if (!dim || *dim == int64_t(*c.axes.axis(first)))
    return Mixing::Tokens;
  return entries(c);
}

/// Normalises the last axes.
Mixing normalises(const TokenCall &c) {
  graph::CallOp call = c.call;
  std::optional<int64_t> axis = c.tokenAxis("input");
  auto shape = dyn_cast_or_null<ArrayAttr>(call.getArgument("normalized_shape"));
  if (!axis || !shape)
    return Mixing::Unknown;
  return joins(*axis >= c.type(call.getTensor("input")).getRank() - int64_t(shape.size()));
}

/// W x along the last axis.
Mixing linear(const TokenCall &c) {
  graph::CallOp call = c.call;
  std::optional<int64_t> axis = c.tokenAxis("input");
  if (!axis || c.tokenAxis("weight") || c.tokenAxis("bias"))
    return Mixing::Unknown;
  return joins(*axis == c.type(call.getTensor("input")).getRank() - 1);
}

/// A product of matrices, of the two tensors `left` and `right`.
Mixing product(const TokenCall &c, StringRef left, StringRef right) {
  graph::CallOp call = c.call;
  Value a = call.getTensor(left), b = call.getTensor(right);
  if (!a || !b)
    return Mixing::Unknown;
  int64_t ranks[] = {c.type(a).getRank(), c.type(b).getRank()};
  std::optional<int64_t> l = c.tokenAxis(left), r = c.tokenAxis(right);
  if ((l && *l == ranks[0] - 1) || (r && *r == std::max<int64_t>(ranks[1] - 2, 0)))
    return Mixing::Tokens;
  // Two axes of tokens that do not meet would both be in the result.
  return Mixing::None;
}

Mixing matmul(const TokenCall &c) { return product(c, "self", "other"); }
Mixing mm(const TokenCall &c) { return product(c, "self", "mat2"); }
Mixing addmm(const TokenCall &c) {
  return c.tokenAxis("self") ? Mixing::Unknown : product(c, "mat1", "mat2");
}

/// Rows of a table by ids.
Mixing embedding(const TokenCall &c) {
  return c.tokenAxis("weight") ? Mixing::Unknown : Mixing::None;
}

/// Rows of a table by ids, or entries along other axes than the tokens' by indices that are the
/// same for every token.
Mixing indexes(const TokenCall &c) {
  graph::CallOp call = c.call;
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("indices"));
  if (!list)
    return Mixing::Unknown;
  std::optional<int64_t> own = c.tokenAxis("self"), common;
  for (auto [i, entry] : llvm::enumerate(list)) {
    auto operand = dyn_cast<graph::OperandAttr>(entry);
    if (!operand)
      continue;
    Value index = call.getOperand(operand.getIndex());
    if (own) {
      // Of other tokens' entries none is read; a single index stays in its axis' place.
      if (c.axes.isData(index) || c.axes.countAxes(index) || int64_t(i) == *own ||
          llvm::count_if(list, [](Attribute a) { return isa<graph::OperandAttr>(a); }) != 1)
        return Mixing::Unknown;
    } else if (c.axes.isData(index)) {
      int64_t back = c.type(index).getRank() - int64_t(*c.axes.axis(index));
      if (common && *common != back)
        return Mixing::Tokens;
      common = back;
    } else if (c.axes.countAxes(index)) {
      return Mixing::Unknown;
    }
  }
  return Mixing::None;
}

/// Entries along an axis by the same indices for every token.
Mixing selects(const TokenCall &c) {
  graph::CallOp call = c.call;
  Value index = call.getTensor("index");
  if (!index || c.axes.isData(index))
    return Mixing::Unknown;
  return along(c, "self", "dim", std::nullopt);
}

/// Writes entries along an axis that is not the tokens'.
Mixing scatters(const TokenCall &c) {
  graph::CallOp call = c.call;
  std::optional<int64_t> rank, axis;
  for (StringRef name : {"self", "index", "src"})
    if (Value value = call.getTensor(name)) {
      int64_t own = c.type(value).getRank();
      std::optional<unsigned> at = c.axes.axis(value);
      if (!at || (rank && (*rank != own || *axis != int64_t(*at))))
        return Mixing::Unknown;
      rank = own;
      axis = *at;
    }
  std::optional<int64_t> dim = rank ? c.dim("dim", *rank, 0) : std::nullopt;
  return dim ? joins(*dim == *axis) : Mixing::Unknown;
}

/// Each entry by what training has left of its channel, the axis behind the first.
Mixing byChannels(const TokenCall &c) {
  graph::CallOp call = c.call;
  std::optional<int64_t> axis = c.tokenAxis("input");
  auto training = dyn_cast_or_null<IntegerAttr>(call.getArgument("training"));
  return axis && axis != 1 && !(training && training.getInt()) ? Mixing::None : Mixing::Unknown;
}

/// Puts tensors side by side along a new axis.
Mixing stacks(const TokenCall &c) {
  Value result = c.call.getResult(0);
  std::optional<int64_t> dim = c.dim("dim", c.type(result).getRank(), 0);
  if (!dim)
    return Mixing::Unknown;
  int64_t axis = *c.axes.axis(result) - (*dim < int64_t(*c.axes.axis(result)));
  for (Value operand : c.call.getOperands())
    if (std::optional<unsigned> own = c.axes.axis(operand); own && int64_t(*own) != axis)
      return Mixing::Tokens;
  return Mixing::None;
}

/// A new last axis.
Mixing appends(const TokenCall &c) {
  return joins(c.axes.axis(c.call.getOperand(0)) != c.axes.axis(c.call.getResult(0)));
}

/// Writes more entries before and behind: pairs of numbers from the last axis on.
Mixing pads(const TokenCall &c) {
  graph::CallOp call = c.call;
  std::optional<int64_t> axis = c.tokenAxis("self");
  auto pad = dyn_cast_or_null<ArrayAttr>(call.getArgument("pad"));
  if (!axis || !pad)
    return Mixing::Unknown;
  size_t pair = 2 * (c.type(call.getTensor("self")).getRank() - 1 - *axis);
  for (size_t i = pair; i < pair + 2 && i < pad.size(); ++i)
    if (auto number = dyn_cast<IntegerAttr>(pad[i]); !number || number.getInt() != 0)
      return Mixing::Tokens;
  return Mixing::None;
}

/// Sums of products by an equation of letters: the tokens have one letter, which the result keeps.
Mixing einsum(const TokenCall &c) {
  graph::CallOp call = c.call;
  auto text = dyn_cast_or_null<StringAttr>(call.getArgument("equation"));
  auto list = dyn_cast_or_null<ArrayAttr>(call.getArgument("tensors"));
  if (!text || !list || text.getValue().contains('.'))
    return Mixing::Unknown;
  std::string equation;
  llvm::copy_if(text.getValue(), std::back_inserter(equation), [](char c) { return c != ' '; });
  auto [from, to] = StringRef(equation).split("->");
  SmallVector<StringRef> terms;
  from.split(terms, ',');
  Value result = call.getResult(0);
  if (terms.size() != list.size() || int64_t(to.size()) != c.type(result).getRank())
    return Mixing::Unknown;
  char letter = to[*c.axes.axis(result)];
  for (auto [term, entry] : llvm::zip(terms, list)) {
    auto operand = dyn_cast<graph::OperandAttr>(entry);
    Value value = operand ? call.getOperand(operand.getIndex()) : Value();
    if (!value || int64_t(term.size()) != c.type(value).getRank())
      return Mixing::Unknown;
    std::optional<unsigned> axis = c.axes.axis(value);
    if (!c.axes.isData(value) && !c.axes.countAxes(value))
      continue;
    if (!axis || term[*axis] != letter || term.count(letter) != 1)
      return Mixing::Tokens;
  }
  return joins(to.count(letter) != 1);
}

constexpr Rule none = nullptr;

const llvm::StringMap<Rule> &table() {
  static const llvm::StringMap<Rule> byName = [] {
    llvm::StringMap<Rule> made;
#define ATEN(name, kind, tokens, meaning, raised, followed, generic) made[name] = tokens;
#include "dialects/Graph/AtenOps.def"
    return made;
  }();
  return byName;
}

} // namespace

Mixing ctxc::ruleFor(const TokenCall &call) {
  graph::CallOp op = call.call;
  StringRef name = op.getBaseName();
  Rule rule = table().lookup(name);
  // Ops of other namespaces may have the same names. ctxc's are the recurrences of
  // python/ctxc/_recurrences.py.
  if (!op.getTarget().starts_with("aten.") || !rule)
    return op.getTarget().starts_with("ctxc.") ? Mixing::Tokens : Mixing::Unknown;
  return rule(call);
}

bool TokenAxes::ignoresNumbers(graph::CallOp call) {
  const graph::AtenOp *op = graph::atenOp(call);
  return op && op->kind == graph::AtenKind::Makes &&
         (op->name.ends_with("_like") || op->name.starts_with("new_"));
}
