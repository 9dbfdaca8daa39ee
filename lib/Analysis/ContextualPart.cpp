// Where the contextual part of a block ends (Sites.h).
#include "ctxc/Analysis/ContextDependence.h"
#include "ctxc/Analysis/OutputControl.h"
#include "ctxc/Analysis/Sites.h"
#include "dialects/XF/Sizes.h"

using namespace mlir;
using namespace ctxc;
using xf::Solvability;

/// Whether `op` passes on the residual stream of its operand `index`: it can be
/// solved for it, as a whole, and multiplies it by nothing that depends on the context.
static bool handsOn(Operation *op, unsigned index, const ContextDependence &context) {
  auto solvable = dyn_cast<xf::SolvableOpInterface>(op);
  std::string reason;
  if (!solvable || xf::isSolvedInParts(op) || isa<xf::ContextualOpInterface>(op))
    return false;
  switch (solvable.getSolvability(index, reason)) {
  case Solvability::Exact:
    return true;
  case Solvability::Conditional:
    return llvm::all_of(llvm::enumerate(op->getOperands()), [&](auto operand) {
      return operand.index() == index || !context.depends(operand.value());
    });
  case Solvability::No:
    return false;
  }
  llvm_unreachable("a solvability of no known kind");
}

/// The inputs, `stream`, and what hands either on.
static BlockGraph::Set handedOn(const BlockGraph &graph, const ContextDependence &context,
                                BlockGraph::Set stream) {
  stream |= graph.inputs();
  for (Operation &op : graph.getBlock().getBody().front())
    for (auto [index, operand] : llvm::enumerate(op.getOperands()))
      if (stream.test(graph.vertex(operand)) && handsOn(&op, index, context))
        stream.set(graph.vertex(&op));
  return stream;
}

/// Vertices on the residual stream, or on a branch of it beside the contextual
/// ops: in x + (mlp(x) + attn(x)) the context enters at the inner sum. With `read`
/// the operands of the contextual ops are on the residual stream as well.
static BlockGraph::Set findStream(const BlockGraph &graph, const ContextDependence &context,
                                  const BlockGraph::Set &contextualOps, bool read) {
  BlockGraph::Set stream = graph.reach(graph.inputs(), graph.none());
  stream.reset(context.vertices());
  if (!read)
    stream.reset(graph.reach(contextualOps, graph.none(), /*backwards=*/true));
  return handedOn(graph, context, std::move(stream));
}

namespace {

/// Finds the vertices at which the contextual part has ended.
class PartEnds {
public:
  PartEnds(const BlockGraph &graph, const BlockGraph::Set &contextualOps)
      : graph(graph), context(graph, /*inputsAreSources=*/false), contextualOps(contextualOps),
        before(graph.reach(contextualOps, graph.none(), /*backwards=*/true)) {}

  BlockGraph::Set find();

private:
  void addSums();
  void addMeetings();
  void addNewStream();
  void addProjections();
  std::optional<unsigned> newStream(unsigned from) const;
  BlockGraph::Set lastContextualOps() const;
  BlockGraph::Set matrices() const;
  void addReaders(unsigned vertex) {
    for (unsigned reader : graph.successors(vertex))
      ends.set(reader);
  }

  const BlockGraph &graph;
  ContextDependence context;
  BlockGraph::Set contextualOps, before;
  BlockGraph::Set stream, ends;
  bool streamsAnew = false;
};

} // namespace

/// Sums in which the context joins the residual stream.
void PartEnds::addSums() {
  stream = findStream(graph, context, contextualOps, /*read=*/false);
  ends = stream;
  ends &= context.vertices();
  if (ends.any())
    return;
  // In n + attn(n), n = norm(x), the stream begins behind the norm (BLOOM's post-norm form).
  BlockGraph::Set read = findStream(graph, context, contextualOps, /*read=*/true);
  ends = read;
  ends &= context.vertices();
  if (ends.any())
    stream = read;
}

static bool hasMatrix(Operation *op) {
  auto site = dyn_cast_or_null<xf::AssignableOpInterface>(op);
  return site && site.getChangeForm() == xf::ChangeForm::Rank1;
}

BlockGraph::Set PartEnds::matrices() const {
  BlockGraph::Set set = graph.none();
  for (unsigned v = 0; v < graph.size(); ++v)
    if (hasMatrix(graph.op(v)))
      set.set(v);
  return set;
}

/// The first value behind `from` that all of its context passes, that several ops read, and behind
/// which there is a matrix: with it a stream begins anew.
std::optional<unsigned> PartEnds::newStream(unsigned from) const {
  BlockGraph::Set start = graph.none();
  start.set(from);
  BlockGraph::Set sources = graph.reach(start, graph.none(), /*backwards=*/true);
  sources &= contextualOps;
  BlockGraph::Set behind = graph.reach(start), matrix = matrices();
  SmallVector<Value> waists = findWaists(graph, sources, graph.none());
  for (Value waist : llvm::reverse(waists)) {
    unsigned v = graph.vertex(waist);
    llvm::SmallPtrSet<Operation *, 4> readers(waist.user_begin(), waist.user_end());
    BlockGraph::Set after = graph.reach(v);
    after.reset(v);
    if (behind.test(v) && readers.size() > 1 && after.anyCommon(matrix))
      return v;
  }
  return std::nullopt;
}

/// Ops that read the stream itself and the context beside it, whatever they make of them: a
/// concatenation, a gate. The part ends with the stream that begins anew behind them, else there.
/// It ends with a concatenation of the context and a branch beside it, too: the matrix that reads
/// both, [W_o W_down], is the branch's own.
void PartEnds::addMeetings() {
  BlockGraph::Set itself = handedOn(graph, context, graph.none());
  for (Operation &op : graph.getBlock().getBody().front().without_terminator()) {
    unsigned v = graph.vertex(&op);
    if (stream.test(v) || before.test(v) || graph.reach(ends, contextualOps).test(v))
      continue;
    bool readsStream = false, readsBranch = false, readsContext = false;
    auto parts = dyn_cast<xf::PartsOpInterface>(op);
    for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
      unsigned from = graph.vertex(operand);
      readsStream |= itself.test(from);
      readsBranch |= parts && parts.isPartOfResult(index) && stream.test(from);
      readsContext |= context.depends(operand) && !stream.test(from);
    }
    if (!(readsStream || readsBranch) || !readsContext)
      continue;
    std::optional<unsigned> anew = readsStream ? newStream(v) : std::nullopt;
    streamsAnew |= anew.has_value();
    if (anew)
      addReaders(*anew);
    else
      ends.set(v);
  }
}

/// Contextual ops that no other follows.
BlockGraph::Set PartEnds::lastContextualOps() const {
  BlockGraph::Set last = contextualOps;
  for (unsigned v : contextualOps.set_bits()) {
    BlockGraph::Set behind = graph.reach(v);
    behind.reset(v);
    if (behind.anyCommon(contextualOps))
      last.reset(v);
  }
  return last;
}

/// Without a stream that goes past the contextual ops, one may begin behind them.
void PartEnds::addNewStream() {
  const BlockGraph::Set last = lastContextualOps();
  for (unsigned v : last.set_bits())
    if (std::optional<unsigned> anew = newStream(v)) {
      streamsAnew = true;
      addReaders(*anew);
    }
}

/// The output projection is one matrix: where another follows, the part ends behind the first.
void PartEnds::addProjections() {
  BlockGraph::Set matrix = matrices(), blocked = ends;
  blocked |= matrix;
  BlockGraph::Set reached = graph.reach(lastContextualOps(), blocked), first = graph.none();
  for (unsigned v : matrix.set_bits())
    for (unsigned from : graph.predecessors(v))
      if (reached.test(from) && !ends.test(v))
        first.set(v);
  BlockGraph::Set open = ends;
  for (unsigned v : first.set_bits()) {
    BlockGraph::Set start = graph.none();
    start.set(v);
    BlockGraph::Set behind = graph.reach(start, open);
    behind.reset(v);
    if (behind.anyCommon(matrix))
      addReaders(v);
  }
}

BlockGraph::Set PartEnds::find() {
  // Where the context enters the residual stream depends on structure alone: it is the
  // same whether or not the layers below are patched.
  addSums();
  addMeetings();
  if (ends.none())
    addNewStream();
  if (!streamsAnew)
    addProjections();
  return ends;
}

/// Contextual ops that may stand behind the MLP: they can be solved for their own token's operand,
/// and no matrix reads what they make.
static BlockGraph::Set lastTaps(const BlockGraph &graph) {
  BlockGraph::Set taps = graph.none(), contextualOps = graph.contextualOps();
  for (unsigned v : contextualOps.set_bits())
    if (xf::isTap(graph.op(v)) && llvm::none_of(graph.reach(v).set_bits(),
                                                [&](unsigned u) { return hasMatrix(graph.op(u)); }))
      taps.set(v);
  return taps;
}

void Sites::findContextualPart() {
  // A tap belongs to the contextual part unless the context has entered the stream before it.
  BlockGraph::Set contextualOps = graph.contextualOps(), taps = lastTaps(graph), joined;
  for (bool isSettled = false; !isSettled;) {
    BlockGraph::Set mixers = contextualOps;
    mixers.reset(taps);
    joined = PartEnds(graph, mixers).find();
    BlockGraph::Set behind = taps;
    behind &= graph.reach(joined);
    isSettled = behind == taps;
    taps = behind;
  }
  contextualOps.reset(taps);
  after = graph.reach(joined);
  contextual = graph.reach(contextualOps);
  contextual.reset(graph.reach(joined, contextualOps));
  before = graph.reach(contextualOps, graph.none(), /*backwards=*/true);
  contextual |= before;
}
