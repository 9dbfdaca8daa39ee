// The contextual part A(C, x) of a block, by the checker's own walk over values.
#include "Flow.h"
#include "dialects/XF/Sizes.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;
using xf::Solvability;

/// Whether `op` passes the residual stream of its operand `index` on: solvable for it as a whole,
/// and not multiplied with a value of `mixing`.
static bool passesStream(Operation *op, unsigned index, const Values &mixing) {
  if (xf::isSolvedInParts(op) || isa<xf::ContextualOpInterface>(op))
    return false;
  auto link = dyn_cast<xf::SolvableOpInterface>(op);
  std::string reason;
  Solvability how = link ? link.getSolvability(index, reason) : Solvability::No;
  if (how != Solvability::Conditional)
    return how == Solvability::Exact;
  for (OpOperand &other : op->getOpOperands())
    if (other.getOperandNumber() != index && mixing.contains(other.get()))
      return false;
  return true;
}

static bool isMatrix(Operation *op) {
  auto site = dyn_cast<xf::AssignableOpInterface>(op);
  return site && site.getChangeForm() == xf::ChangeForm::Rank1;
}

static bool anyIn(ValueRange values, const Values &set) {
  return llvm::any_of(values, [&](Value v) { return set.contains(v); });
}

namespace ctxc::proof {
/// Collects the values at which the contextual part has ended.
class PartWalk {
public:
  explicit PartWalk(const Flow &flow)
      : flow(flow), ofContext(flow.forward(flow.starts)),
        inputs(flow.body().args_begin(), flow.body().args_end()) {}

  Values run();

private:
  Values streamOf(Values from) const;
  bool enterBySums(bool read);
  void meet();
  void beginAnew();
  void project();
  Value newStream(Value from) const;
  Values lastSources() const;
  void takeUsersOf(Value value) {
    for (Operation *user : value.getUsers())
      entered.insert(user->result_begin(), user->result_end());
  }

  const Flow &flow;
  Values ofContext, inputs, stream, entered;
  bool isAnew = false;
};
} // namespace ctxc::proof

/// `from`, the inputs, and what ops make of them that pass a stream on.
Values PartWalk::streamOf(Values from) const {
  from.insert(inputs.begin(), inputs.end());
  for (Operation &op : flow.body())
    for (OpOperand &operand : op.getOpOperands())
      if (from.contains(operand.get()) && passesStream(&op, operand.getOperandNumber(), ofContext))
        from.insert(op.result_begin(), op.result_end());
  return from;
}

/// The residual stream: inputs, branches beside the contextual ops (with `read`, also what these
/// read), and what passes either on. True where the context joins it.
bool PartWalk::enterBySums(bool read) {
  Values ofInputs = flow.forward(inputs), branches;
  for (Operation &op : flow.body())
    for (Value result : op.getResults())
      if (ofInputs.contains(result) && !ofContext.contains(result) &&
          (read || !flow.upstream.contains(&op)))
        branches.insert(result);
  Values found = streamOf(branches);
  for (Value value : found)
    if (ofContext.contains(value))
      entered.insert(value);
  if (!read || !entered.empty())
    stream = found;
  return !entered.empty();
}

/// The nearest value behind `from` that all of the context in it passes on the way to the outputs,
/// that several ops read, and behind which there is a matrix; null where there is none.
Value PartWalk::newStream(Value from) const {
  Values sources;
  for (Value start : flow.starts)
    if (flow.forward({start}).contains(from))
      sources.insert(start);
  Values behind = flow.forward({from}), within = flow.forward(sources);
  for (Operation &op : flow.body()) {
    if (op.getNumResults() != 1 || !behind.contains(op.getResult(0)) ||
        !within.contains(op.getResult(0)))
      continue;
    Value value = op.getResult(0);
    llvm::SmallPtrSet<Operation *, 4> users(value.user_begin(), value.user_end());
    if (users.size() < 2 || anyIn(flow.outputs(), flow.forward(sources, {value})))
      continue;
    Values after = flow.forward({value});
    for (Operation &later : flow.body())
      if (&later != &op && isMatrix(&later) && after.contains(later.getResult(0)))
        return value;
  }
  return {};
}

/// Ops that read the stream itself and the context beside it, and concatenations of the context
/// and a branch beside it.
void PartWalk::meet() {
  Values itself = streamOf({});
  for (Operation &op : flow.body().without_terminator()) {
    if (flow.upstream.contains(&op) || anyIn(op.getResults(), stream) ||
        anyIn(op.getResults(), flow.forward(entered, flow.starts)))
      continue;
    bool readsContext = llvm::any_of(
        op.getOperands(), [&](Value v) { return ofContext.contains(v) && !stream.contains(v); });
    bool readsStream = anyIn(op.getOperands(), itself);
    auto parts = dyn_cast<xf::PartsOpInterface>(op);
    bool readsBranch =
        parts && llvm::any_of(op.getOpOperands(), [&](OpOperand &part) {
          return parts.isPartOfResult(part.getOperandNumber()) && stream.contains(part.get());
        });
    if (!readsContext || !(readsStream || readsBranch))
      continue;
    if (Value anew = readsStream ? newStream(op.getResult(0)) : Value()) {
      isAnew = true;
      takeUsersOf(anew);
    } else {
      entered.insert(op.result_begin(), op.result_end());
    }
  }
}

/// The results of contextual ops that no other follows.
Values PartWalk::lastSources() const {
  Values last;
  for (Value start : flow.starts) {
    Values behind = flow.forward({start});
    behind.erase(start);
    if (llvm::none_of(flow.starts, [&](Value other) { return behind.contains(other); }))
      last.insert(start);
  }
  return last;
}

void PartWalk::beginAnew() {
  for (Value start : lastSources())
    if (Value anew = newStream(start)) {
      isAnew = true;
      takeUsersOf(anew);
    }
}

/// The output projection is one matrix: where another follows, the part ends behind the first.
void PartWalk::project() {
  Values walls = entered;
  for (Operation &op : flow.body())
    if (isMatrix(&op))
      walls.insert(op.getResult(0));
  Values reached = flow.forward(lastSources(), walls), ends = entered;
  for (Operation &op : flow.body()) {
    if (!isMatrix(&op) || !anyIn(op.getOperands(), reached) || ends.contains(op.getResult(0)))
      continue;
    Values behind = flow.forward({op.getResult(0)}, ends);
    for (Operation &later : flow.body())
      if (&later != &op && isMatrix(&later) && behind.contains(later.getResult(0)))
        takeUsersOf(op.getResult(0));
  }
}

Values PartWalk::run() {
  // Where the context joins no stream, the operands of the contextual ops are one too: n + attn(n).
  if (!enterBySums(/*read=*/false))
    enterBySums(/*read=*/true);
  meet();
  if (entered.empty())
    beginAnew();
  if (!isAnew)
    project();
  return std::move(entered);
}

/// The contextual ops that no matrix follows, and that can be solved for what their own token
/// gives.
Values Flow::trailingTaps() const {
  Values taps;
  for (Value start : starts) {
    Values behind = forward({start});
    bool isLast = llvm::none_of(body(), [&](Operation &later) {
      return isMatrix(&later) && anyIn(later.getOperands(), behind);
    });
    if (isLast && xf::isTap(start.getDefiningOp()))
      taps.insert(start);
  }
  return taps;
}

/// Finds the ops that a contextual op reads, directly or not.
void Flow::findUpstream() {
  upstream.clear();
  for (Operation &op : llvm::reverse(body()))
    if (anyIn(op.getResults(), starts) ||
        llvm::any_of(op.getUsers(), [&](Operation *user) { return upstream.contains(user); }))
      upstream.insert(&op);
}

void Flow::findContextualPart() {
  // A tap is behind the part where the context has entered the stream before it.
  const Values all = starts;
  Values taps = trailingTaps(), entered, after;
  for (bool isSettled = false; !isSettled;) {
    starts = all;
    for (Value tap : taps)
      starts.erase(tap);
    findUpstream();
    entered = PartWalk(*this).run();
    after = forward(entered);
    Values behind;
    for (Value tap : taps)
      if (after.contains(tap))
        behind.insert(tap);
    isSettled = behind.size() == taps.size();
    taps = std::move(behind);
  }
  Values ofContext = forward(starts), nearby = forward(entered, starts);
  for (Operation &op : body()) {
    if (upstream.contains(&op) ||
        (anyIn(op.getResults(), ofContext) && !anyIn(op.getResults(), nearby)))
      contextual.insert(&op);
    if (anyIn(op.getResults(), after))
      following.insert(&op);
  }
  starts = all;
}
