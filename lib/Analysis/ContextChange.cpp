#include "ctxc/Analysis/ContextChange.h"
#include "dialects/XF/Sizes.h"
#include "lib/Analysis/Entries.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ctxc;
using xf::Solvability;
using xf::Zeros;

static bool mayBeZero(const xf::Facts &facts) {
  return facts.elements == Zeros::OpenSet || facts.vector == Zeros::OpenSet;
}

static bool isAdditive(Operation *op, unsigned index) {
  auto solvable = dyn_cast<xf::SolvableOpInterface>(op);
  std::string reason;
  return solvable && !xf::isSolvedInParts(op) &&
         solvable.getSolvability(index, reason) == Solvability::Exact;
}

static xf::ParamOp parameterOf(Operation *op) {
  auto site = dyn_cast_or_null<xf::AssignableOpInterface>(op);
  bool isIt = site && xf::isGeneric(site.getParameterOperand().get());
  return isIt ? site.getParameterOperand().get().getDefiningOp<xf::ParamOp>() : xf::ParamOp();
}

static bool isMatrix(Operation *op) {
  return parameterOf(op) &&
         cast<xf::AssignableOpInterface>(op).getChangeForm() == xf::ChangeForm::Rank1;
}

/// The ops that can be silenced without changing the values `kept`: a factor whose parameter
/// they do not read makes its result constant where the parameter is near zero.
BlockGraph::Set ContextChange::silenced(ArrayRef<Value> kept) const {
  BlockGraph::Set from = graph.none(), result = graph.none();
  for (Value value : kept)
    from.set(graph.vertex(value));
  BlockGraph::Set upstream = graph.reach(from, graph.none(), /*backwards=*/true);
  llvm::StringSet<> read;
  for (unsigned v : upstream.set_bits())
    if (auto param = dyn_cast_or_null<xf::ParamOp>(graph.op(v)))
      read.insert(zeros.identities()[param.getName()]);
  for (unsigned v = 0; v < graph.size(); ++v)
    if (xf::ParamOp param = parameterOf(graph.op(v));
        param && !read.contains(zeros.identities()[param.getName()]) &&
        cast<xf::AssignableOpInterface>(graph.op(v)).getObligation() != xf::Obligation::None)
      result.set(v);
  return result;
}

/// The extent of the result where only `operand` changes.
Extent ContextChange::throughOne(OpOperand &operand, Extent extent) const {
  Operation *op = operand.getOwner();
  Value result = op->getResult(0);
  if (!isAdditive(op, operand.getOperandNumber()))
    for (OpOperand &other : op->getOpOperands())
      if (&other != &operand && !other.get().getDefiningOp<xf::ParamOp>() &&
          mayBeZero(zeros.facts(other.get())))
        return Extent::Unknown; // a factor that may be zero where the operand changes
  if (isMatrix(op))
    return extent == Extent::Unknown ? extent : Extent::Every;
  if (isa<xf::LinearOp>(op)) // of known numbers: it may keep a change, and in other entries
    return isAdditive(op, operand.getOperandNumber()) ? std::min(extent, Extent::Some)
                                                      : Extent::Unknown;
  bool loses = mayBeZero(zeros.facts(result)) && !mayBeZero(zeros.facts(operand.get()));
  if (loses)
    return Extent::Unknown;
  if (entries(result) < entries(operand.get()))
    return extent == Extent::Every ? extent : Extent::Unknown;
  return entries(result) > entries(operand.get()) ? std::min(extent, Extent::Some) : extent;
}

Extent ContextChange::transfer(Operation *op, const Extents &extents,
                               const BlockGraph::Set &sources,
                               const BlockGraph::Set &dependent) const {
  const xf::Facts &facts = zeros.facts(op->getResult(0));
  if (op->getNumResults() != 1 || facts.getConstant())
    return Extent::Unknown;
  SmallVector<OpOperand *> changing;
  for (OpOperand &operand : op->getOpOperands())
    if (dependent.test(graph.vertex(operand.get())))
      changing.push_back(&operand);
  auto extentOf = [&](Value value) { return extents[graph.vertex(value)]; };
  if (changing.size() == 1)
    return throughOne(*changing.front(), extentOf(changing.front()->get()));
  // Other matrices may be selected, and those are generic too.
  if (isMatrix(op))
    return extentOf(cast<xf::AssignableOpInterface>(op).getDataOperand().get()) == Extent::Unknown
               ? Extent::Unknown
               : Extent::Every;
  auto stay = [&](ArrayRef<Value> kept, llvm::function_ref<bool(Value)> isHarmless) {
    BlockGraph::Set reached = graph.reach(sources, silenced(kept));
    return llvm::all_of(changing, [&](OpOperand *other) {
      return llvm::is_contained(kept, other->get()) ||
             (!reached.test(graph.vertex(other->get())) && isHarmless(other->get()));
    });
  };
  if (auto contextual = dyn_cast<xf::ContextualOpInterface>(op)) {
    SmallVector<Value> state = contextual.getStateOperands();
    Extent least = Extent::Every;
    for (Value value : state)
      least = std::min(least, extentOf(value));
    return stay(state, [](Value) { return true; }) ? least : Extent::Unknown;
  }
  Extent best = Extent::Unknown;
  for (OpOperand *operand : changing) {
    bool isSum = isAdditive(op, operand->getOperandNumber());
    Extent extent = throughOne(*operand, extentOf(operand->get()));
    if (extent <= best || llvm::count_if(changing, [&](OpOperand *other) {
                            return other->get() == operand->get();
                          }) > 1)
      continue;
    // A silenced value is a constant, which may be zero.
    if (stay(operand->get(), [&](Value other) {
          const xf::Facts &f = zeros.facts(other);
          return isSum || (f.elements == Zeros::Never && f.vector == Zeros::Never);
        }))
      best = extent;
  }
  return best;
}

/// The values that a contextual op reads from the context are those of other tokens: where they
/// vary with the token, its result varies with the context.
Extent ContextChange::ofSource(xf::ContextualOpInterface op, const Extents &varying) const {
  Extent extent = Extent::Every;
  for (Value value : op.getStateOperands())
    extent = std::min(extent, varying[graph.vertex(value)]);
  return zeros.readsContext(op) ? extent : Extent::Unknown;
}

ContextChange::Extents ContextChange::follow(Extents extents,
                                             const BlockGraph::Set &sources) const {
  BlockGraph::Set dependent = graph.reach(sources);
  for (unsigned v = 0; v < graph.size(); ++v)
    if (Operation *op = graph.op(v);
        op && op->getNumResults() > 0 && dependent.test(v) && extents[v] == Extent::Unknown)
      extents[v] = transfer(op, extents, sources, dependent);
  return extents;
}

ContextChange::ContextChange(const BlockGraph &graph, const ZeroRange &zeros,
                             const InputSources &inputsAreSources)
    : graph(graph), zeros(zeros) {
  BlockGraph::Set inputs = graph.inputs(), starts = graph.contextualOps();
  Extents varying(graph.size(), Extent::Unknown), sources = varying;
  for (unsigned v : inputs.set_bits())
    varying[v] = Extent::Every;
  varying = follow(std::move(varying), inputs);
  for (unsigned v : starts.set_bits())
    sources[v] = ofSource(cast<xf::ContextualOpInterface>(graph.op(v)), varying);
  for (unsigned v : inputs.set_bits())
    if (inputsAreSources.contains(v)) {
      sources[v] = Extent::Every;
      starts.set(v);
    }
  changed = follow(std::move(sources), starts);
}
