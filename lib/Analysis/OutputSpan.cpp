#include "ctxc/Analysis/OutputSpan.h"
#include "dialects/XF/Sizes.h"
#include <map>

using namespace mlir;
using namespace ctxc;

static int64_t entries(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

namespace {
/// Walks back from outputs, through sums and multiples.
class SpanWalk {
public:
  SpanWalk(const Moved &moved, OutputSpan &span) : moved(moved), span(span) {}

  void visit(Operation *reader, Value value) {
    if (!moved.moves(reader, value)) {
      if (!llvm::is_contained(span.fixed, value))
        span.fixed.push_back(value);
      return;
    }
    if (!seen.insert(value).second)
      return;
    Operation *op = value.getDefiningOp();
    if (std::optional<unsigned> vector = xf::multipliedOperand(op))
      return visit(op, op->getOperand(*vector));
    auto speaker = dyn_cast<xf::FactsOpInterface>(op);
    SmallVector<xf::SumTerm> terms = speaker ? speaker.getSumTerms() : SmallVector<xf::SumTerm>();
    if (terms.empty())
      span.moving.push_back(value);
    for (xf::SumTerm term : terms)
      visit(op, op->getOperand(term.operand));
  }

private:
  const Moved &moved;
  OutputSpan &span;
  llvm::DenseSet<Value> seen;
};
} // namespace

std::vector<OutputSpan> ctxc::findOutputSpans(const BlockGraph &graph, const Moved &moved) {
  std::map<int64_t, OutputSpan> bySize;
  Operation *yield = graph.yield();
  llvm::DenseSet<Value> known;
  for (auto [i, output] : llvm::enumerate(yield->getOperands()))
    if (known.insert(output).second)
      bySize[entries(output)].outputs.push_back(i);
  std::vector<OutputSpan> found;
  for (auto &[size, span] : bySize) {
    SpanWalk walk(moved, span);
    for (unsigned i : span.outputs)
      walk.visit(yield, yield->getOperand(i));
    for (auto *values : {&span.fixed, &span.moving})
      llvm::sort(*values, [&](Value a, Value b) { return graph.vertex(a) < graph.vertex(b); });
    if (!span.moving.empty() && span.moving.size() < span.outputs.size() &&
        int64_t(span.fixed.size() + span.moving.size()) < size)
      found.push_back(std::move(span));
  }
  return found;
}
