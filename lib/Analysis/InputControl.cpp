#include "ctxc/Analysis/InputControl.h"
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

using namespace mlir;
using namespace ctxc;

unsigned ctxc::cutCost(xf::AssignableOpInterface op) {
  switch (op.getObligation()) {
  case xf::Obligation::None:
    return 1;
  case xf::Obligation::NonzeroVector:
  case xf::Obligation::NonzeroSum:
  case xf::Obligation::FiniteElements:
  case xf::Obligation::SameSelection:
    return 2;
  case xf::Obligation::NonzeroElements:
    return 3;
  }
  llvm_unreachable("an obligation of no known kind");
}

/// A path of the problem that `blocked` does not interrupt.
static SmallVector<unsigned> findPath(const BlockGraph &graph, const InputProblem &problem,
                                      BlockGraph::Set blocked) {
  blocked |= problem.settled;
  SmallVector<unsigned> best;
  for (unsigned sink : problem.sinks.set_bits()) {
    SmallVector<unsigned> path = graph.path(problem.sources, sink, blocked);
    if (!path.empty() && (best.empty() || path.size() < best.size()))
      best = path;
  }
  return best;
}

static BlockGraph::Set setOf(const BlockGraph &graph, ArrayRef<Operation *> ops) {
  BlockGraph::Set set = graph.none();
  for (Operation *op : ops)
    set.set(graph.vertex(op));
  return set;
}

bool ctxc::isCut(const BlockGraph &graph, const InputProblem &problem, ArrayRef<Operation *> ops) {
  return findPath(graph, problem, setOf(graph, ops)).empty();
}

/// The cut with the vertices in `cut`, or the witness of its failure.
static InputCut makeCut(const BlockGraph &graph, const InputProblem &problem,
                        const BlockGraph::Set &cut) {
  InputCut result;
  result.witness = findPath(graph, problem, cut);
  result.exists = result.witness.empty();
  if (result.exists)
    for (unsigned v : cut.set_bits())
      result.ops.push_back(graph.op(v));
  return result;
}

/// Vertices that may be in F.
static BlockGraph::Set candidates(const BlockGraph &graph, const Sites &sites,
                                  const BlockGraph::Set &excluded) {
  BlockGraph::Set set = graph.none();
  for (const Site &site : sites.all())
    if (site.status == SiteStatus::Assignable && !sites.inContextualPart(site.op))
      set.set(graph.vertex(site.op));
  set.reset(excluded);
  return set;
}

InputCut ctxc::findFirstMatrices(const BlockGraph &graph, const Sites &sites,
                                 const InputProblem &problem, const BlockGraph::Set &excluded) {
  BlockGraph::Set matrices = candidates(graph, sites, excluded);
  for (unsigned v : matrices.set_bits())
    if (cast<xf::AssignableOpInterface>(graph.op(v)).getChangeForm() != xf::ChangeForm::Rank1)
      matrices.reset(v);

  // The first matrices read values that a source reaches without a matrix on the way.
  BlockGraph::Set blocked = matrices;
  blocked |= problem.settled;
  BlockGraph::Set before = graph.reach(problem.sources, blocked);
  BlockGraph::Set towards = graph.reach(problem.sinks, problem.settled, /*backwards=*/true);
  BlockGraph::Set cut = graph.none();
  for (unsigned v : matrices.set_bits())
    for (unsigned from : graph.predecessors(v))
      if (before.test(from) && towards.test(v))
        cut.set(v);
  return makeCut(graph, problem, cut);
}

//===----------------------------------------------------------------------===//
// All minimal cuts
//===----------------------------------------------------------------------===//

namespace {
/// Takes a path that is not yet cut and branches on which of its ops to cut.
class CutSearch {
public:
  CutSearch(const BlockGraph &graph, const InputProblem &problem, unsigned limit)
      : graph(graph), problem(problem), limit(limit) {}

  void extend(const BlockGraph::Set &cut, BlockGraph::Set allowed) {
    // Each step adds an op, and plans have few ops: the bound is for unusual graphs.
    if (found.size() >= limit || ++steps > 64 * limit)
      return;
    SmallVector<unsigned> path = findPath(graph, problem, cut);
    if (path.empty()) {
      if (isMinimal(cut))
        found.push_back(cut);
      return;
    }
    for (unsigned v : path)
      if (allowed.test(v)) {
        BlockGraph::Set next = cut;
        next.set(v);
        allowed.reset(v); // the other branches are the cuts without it
        extend(next, allowed);
      }
  }

  std::vector<BlockGraph::Set> found;

private:
  bool isMinimal(const BlockGraph::Set &cut) const {
    for (unsigned v : cut.set_bits()) {
      BlockGraph::Set without = cut;
      without.reset(v);
      if (findPath(graph, problem, without).empty())
        return false;
    }
    return true;
  }

  const BlockGraph &graph;
  const InputProblem &problem;
  unsigned limit, steps = 0;
};
} // namespace

std::vector<SmallVector<Operation *>>
ctxc::findMinimalCuts(const BlockGraph &graph, const Sites &sites, const InputProblem &problem,
                      const BlockGraph::Set &excluded, unsigned limit) {
  CutSearch search(graph, problem, limit);
  search.extend(graph.none(), candidates(graph, sites, excluded));
  std::vector<SmallVector<Operation *>> cuts;
  for (unsigned size = 0; cuts.size() < search.found.size(); ++size)
    for (const BlockGraph::Set &set : search.found)
      if (set.count() == size) {
        cuts.emplace_back();
        for (unsigned v : set.set_bits())
          cuts.back().push_back(graph.op(v));
      }
  return cuts;
}

//===----------------------------------------------------------------------===//
// Minimum cut
//===----------------------------------------------------------------------===//

namespace {
using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Network = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, long,
        boost::property<boost::edge_residual_capacity_t, long,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

/// Every vertex v of the block is split into 2v, where edges enter, and 2v + 1,
/// where edges leave; cutting v is cutting the edge between the two.
struct SplitNetwork {
  static constexpr long infinite = 1 << 20;
  Network network;
  unsigned source, sink;

  explicit SplitNetwork(unsigned vertices)
      : network(2 * vertices + 2), source(2 * vertices), sink(2 * vertices + 1) {}

  void connect(unsigned from, unsigned to, long capacity) {
    auto edge = boost::add_edge(from, to, network).first;
    auto back = boost::add_edge(to, from, network).first;
    boost::put(boost::edge_capacity, network, edge, capacity);
    boost::put(boost::edge_capacity, network, back, 0);
    boost::put(boost::edge_reverse, network, edge, back);
    boost::put(boost::edge_reverse, network, back, edge);
  }

  /// Which network vertices the source still reaches after a maximum flow.
  llvm::BitVector saturate() {
    boost::push_relabel_max_flow(network, source, sink);
    llvm::BitVector seen(boost::num_vertices(network));
    SmallVector<unsigned> work{source};
    seen.set(source);
    while (!work.empty())
      for (auto [e, end] = boost::out_edges(work.pop_back_val(), network); e != end; ++e) {
        unsigned to = boost::target(*e, network);
        if (boost::get(boost::edge_residual_capacity, network, *e) > 0 && !seen.test(to)) {
          seen.set(to);
          work.push_back(to);
        }
      }
    return seen;
  }
};
} // namespace

InputCut ctxc::findMinimumCut(const BlockGraph &graph, const Sites &sites,
                              const InputProblem &problem, const BlockGraph::Set &excluded) {
  BlockGraph::Set sitesAllowed = candidates(graph, sites, excluded);
  if (SmallVector<unsigned> path = findPath(graph, problem, sitesAllowed); !path.empty())
    return {false, {}, path};

  SplitNetwork net(graph.size());
  for (unsigned v = 0; v < graph.size(); ++v) {
    if (problem.settled.test(v))
      continue;
    net.connect(2 * v, 2 * v + 1,
                sitesAllowed.test(v) ? cutCost(cast<xf::AssignableOpInterface>(graph.op(v)))
                                     : SplitNetwork::infinite);
    for (unsigned to : graph.successors(v))
      if (!problem.settled.test(to))
        net.connect(2 * v + 1, 2 * to, SplitNetwork::infinite);
    if (problem.sources.test(v))
      net.connect(net.source, 2 * v, SplitNetwork::infinite);
    if (problem.sinks.test(v))
      net.connect(2 * v + 1, net.sink, SplitNetwork::infinite);
  }
  llvm::BitVector seen = net.saturate();
  BlockGraph::Set cut = graph.none();
  for (unsigned v : sitesAllowed.set_bits())
    if (seen.test(2 * v) && !seen.test(2 * v + 1))
      cut.set(v);
  return makeCut(graph, problem, cut);
}
