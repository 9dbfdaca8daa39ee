// Why a block has no plan: shown to be impossible, or not shown either way (Undecided.cpp).
#include "Explanation.h"
#include "ctxc/Analysis/OutputSpan.h"
#include "dialects/XF/Sizes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ctxc;

/// The value, on the solvable way to `output`, that the context certainly changes and that no
/// patch moves: other values must absorb its change. Null if there is none.
Operation *Explanation::findUnabsorbed(Value output) const {
  SmallVector<Value> work{output};
  BlockGraph::Set seen = facts.graph.none();
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    unsigned v = facts.graph.vertex(value);
    if (seen.test(v) || !facts.context.depends(value))
      continue;
    seen.set(v);
    if (reach.reach(value).kind == Reach::Fixed) {
      if (change.extent(value) != Extent::Unknown)
        return op ? op : facts.graph.yield();
      continue;
    }
    auto solvable = dyn_cast<xf::SolvableOpInterface>(op);
    if (xf::isSolvedInParts(op) || isa_and_nonnull<xf::ContextualOpInterface>(op))
      continue; // not analysed
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      std::string reason;
      xf::Solvability how = solvable ? solvable.getSolvability(i, reason) : xf::Solvability::No;
      bool othersStay = true;
      for (auto [j, other] : llvm::enumerate(op->getOperands()))
        othersStay &= j == i || (reach.reach(other).kind == Reach::Fixed &&
                                 facts.zeros.facts(other).elements != xf::Zeros::OpenSet);
      if (how == xf::Solvability::Exact || (how == xf::Solvability::Conditional && othersStay))
        work.push_back(operand);
    }
  }
  return nullptr;
}

/// Whether the change of `unabsorbed` is independent of the subspace that patches are
/// limited to: the two share no parameter, which could keep the change inside.
bool Explanation::standsAlone(Operation *unabsorbed, const Reach &r) const {
  llvm::StringSet<> binding;
  for (Operation *op : r.origins)
    for (Value operand : op->getOperands())
      if (auto param = operand.getDefiningOp<xf::ParamOp>())
        binding.insert(facts.sites.identity(param));
  BlockGraph::Set from = facts.graph.none();
  from.set(facts.graph.vertex(unabsorbed));
  BlockGraph::Set upstream = facts.graph.reach(from, facts.graph.none(), /*backwards=*/true);
  for (unsigned v : upstream.set_bits())
    if (auto param = dyn_cast_or_null<xf::ParamOp>(facts.graph.op(v)))
      if (binding.contains(facts.sites.identity(param)))
        return false;
  return true;
}

/// The parameters that a plan patches which may touch the contextual part too: "'a', 'b'". Empty
/// where there is no such plan, or none that was not allowed anyway.
std::string Explanation::planOfContextualPart() const {
  std::string names;
  if (options.scope == SiteScope::All || !options.parameters.empty())
    return names;
  PlanOptions wider = options;
  wider.scope = SiteScope::All;
  wider.refute = nullptr;
  Verdict found = planBlock(facts.graph.getBlock(), wider);
  if (found.isSuccess())
    for (Operation *op : found.plan.patchedOps())
      names += (names.empty() ? "'" : ", '") + Sites::name(op) + "'";
  return names;
}

/// "patch 'o_proj.weight' of the contextual part instead"
std::string Explanation::wayRound() {
  if (way)
    return *way;
  for (Value output : facts.graph.yield()->getOperands())
    for (const ChainBreak &b :
         findOutputChains(facts.graph, facts.sites, facts.zeros, output).breaks)
      if (const Site *site = facts.sites.lookup(b.op);
          site && site->status == SiteStatus::ContextualPart)
        return *(way = "patch '" + Sites::name(b.op) + "' of the contextual part instead");
  std::string names = planOfContextualPart();
  return *(way = names.empty() ? "patch a parameter of the contextual part instead"
                               : "patch " + names + " instead (sites 'all')");
}

void Explanation::noteOrigins(const Reach &r) {
  for (Operation *op : ArrayRef(r.origins).drop_front())
    note(op, "and likewise past this " + op->getName().getStringRef());
}

/// The op with a parameter that reads `op`'s result as its data, if there is one.
static xf::AssignableOpInterface parameterAfter(Operation *op) {
  for (OpOperand &use : op->getUses())
    if (auto site = dyn_cast<xf::AssignableOpInterface>(use.getOwner());
        site && &site.getDataOperand() == &use)
      return site;
  return nullptr;
}

void Explanation::rejectBounded(const Reach &r) {
  Operation *op = r.origins.front();
  if (!verdict.bound)
    verdict.bound = r.distance;
  std::string number =
      r.distance ? " = " + llvm::formatv("{0:F1}", *r.distance).str() + r.factors : "";
  cause(rules::BoundedOutput, op,
        subject + " cannot take the context into its parameters: past this " +
            op->getName().getStringRef() + " no patch moves the output by more than " +
            r.distanceText + r.factors + number);
  std::string reason;
  if (auto solvable = dyn_cast<xf::SolvableOpInterface>(op);
      solvable && solvable.getSolvability(0, reason) == xf::Solvability::No)
    note(op, reason + "; what the context changes has no such bound (Theorem 4)");
  xf::AssignableOpInterface after = parameterAfter(op);
  const Site *site = after ? facts.sites.lookup(after) : nullptr;
  if (site && !site->why.empty()) {
    note(after, "the " + after->getName().stripDialect() + " after it is of no help: " + site->why);
    advise(site->status == SiteStatus::Frozen
               ? "unfreeze '" + Sites::name(after) + "', or " + wayRound()
               : wayRound());
  } else if (facts.zeros.facts(op->getResult(0)).length) {
    advise("add a trainable scale after this norm, or " + wayRound());
  } else {
    advise("drop this " + op->getName().getStringRef().str() +
           " or put it before the outer matrix, or " + wayRound());
  }
}

void Explanation::rejectThin(const Reach &r, int64_t dimensions) {
  Operation *op = r.origins.front();
  std::string past = subject + " cannot take the context into its parameters: past this " +
                     op->getName().getStringRef().str();
  if (!r.where.empty())
    cause(rules::ThinOutput, op,
          past +
              " patches leave the entries of the output that it makes zero as they are, and "
              "these are some on an open set of activations: " +
              r.where);
  else
    cause(rules::ThinOutput, op,
          past + " patches move the output " + (r.near ? "without bound " : "") + "in at most " +
              Twine(r.dimensions) + " of " + Twine(dimensions) +
              " dimensions, and what the context changes lies in all of them");
  const Site *site = facts.sites.lookup(op);
  advise("add a trainable bias or matrix after it, or " + wayRound());
  if (site && site->status == SiteStatus::Frozen)
    advise("make '" + Sites::name(op) + "' trainable, or " + wayRound());
  else if (site && site->status == SiteStatus::Narrow)
    advise("give each vector a parameter of its own in place of '" + Sites::name(op) + "', or " +
           wayRound());
  else if (!site && r.where.empty())
    advise("add a trainable bias or scale after it, or " + wayRound());
}

void Explanation::rejectOneSided(const Reach &r) {
  Operation *op = r.origins.front();
  cause(rules::OneSidedOutput, op,
        subject + " cannot take the context into its parameters: past this " +
            op->getName().getStringRef() +
            (r.sign ? " each entry of the output has a side that no patch can bring it to, and "
                      "what the context changes has either sign"
                    : " the output has a side that no patch can bring it to, and what the "
                      "context changes may lie on either"));
  advise("put a trainable matrix, scale or bias after it, or " + wayRound());
}

void Explanation::rejectFixed(Operation *unabsorbed, unsigned output) {
  cause(rules::NothingReachesOutput, unabsorbed,
        subject +
            " cannot take the context into its parameters: none that may be "
            "patched reaches output " +
            Twine(output));
  for (const Site &site : facts.sites.all())
    if (!site.why.empty())
      note(site.op, site.why);
  advise(facts.sites.all().empty() ? "" : wayRound());
}

/// Rejects if patches cannot bring `output` to its full-run value.
bool Explanation::reject(Value output, unsigned number) {
  if (!facts.context.depends(output))
    return false;
  Operation *unabsorbed = findUnabsorbed(output);
  const Reach &r = reach.reach(output);
  int64_t dimensions = cast<RankedTensorType>(output.getType()).getNumElements();
  if (!unabsorbed || r.kind == Reach::Free || (r.kind == Reach::Thin && r.dimensions >= dimensions))
    return false;
  if (r.kind == Reach::Thin && !standsAlone(unabsorbed, r))
    return false;
  verdict.kind = VerdictKind::Rejected;
  switch (r.kind) {
  case Reach::Fixed:
    rejectFixed(unabsorbed, number);
    return true;
  case Reach::Bounded:
    rejectBounded(r);
    break;
  case Reach::Thin:
    rejectThin(r, dimensions);
    break;
  case Reach::OneSided:
    rejectOneSided(r);
    break;
  case Reach::Free:
    llvm_unreachable("a free reach rejects nothing");
  }
  noteOrigins(r);
  note(unabsorbed, "the context reaches output " + Twine(number) +
                       " from here without passing a parameter that may be patched");
  return true;
}

/// Rejects if outputs mix fewer vectors that patches move than there are outputs, in proportions
/// that patches may change as well. Whether the context changes more is for numbers to show.
bool Explanation::rejectFewVectors() {
  Moved moved(facts.graph, facts.sites);
  for (const OutputSpan &span : findOutputSpans(facts.graph, moved)) {
    ValueRange outputs = facts.graph.yield()->getOperands();
    if (!llvm::all_of(span.outputs, [&](unsigned i) { return facts.context.depends(outputs[i]); }))
      continue;
    verdict.kind = VerdictKind::Rejected;
    Operation *op = span.moving.front().getDefiningOp();
    cause(rules::FewVectors, op,
          subject + " cannot take the context into its parameters: patches move " +
              Twine(span.outputs.size()) + " outputs by multiples of " + Twine(span.moving.size()) +
              " vector" + (span.moving.size() > 1 ? "s" : "") + ", that of this " +
              op->getName().getStringRef() + (span.moving.size() > 1 ? " and others" : "") +
              ", and what the context changes in them is of more dimensions");
    for (Value value : ArrayRef(span.moving).drop_front())
      note(value.getDefiningOp(), "and of this " + value.getDefiningOp()->getName().getStringRef());
    advise("give each output a matrix or bias of its own, or " + wayRound());
    return true;
  }
  return false;
}

/// A cause that several outputs share is reported once, with the notes of each.
static void mergeCauses(std::vector<Finding> &causes) {
  std::vector<Finding> merged;
  for (Finding &cause : causes) {
    auto same = llvm::find_if(merged, [&](const Finding &known) {
      return known.op == cause.op && known.message == cause.message;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(cause));
      continue;
    }
    for (Remark &note : cause.notes)
      if (llvm::none_of(same->notes, [&](const Remark &known) {
            return known.op == note.op && known.message == note.message;
          }))
        same->notes.push_back(std::move(note));
  }
  causes = std::move(merged);
}

void Explanation::explain() {
  bool rejected = false;
  llvm::SmallPtrSet<Value, 4> seen;
  for (auto [i, output] : llvm::enumerate(facts.graph.yield()->getOperands()))
    if (seen.insert(output).second)
      rejected |= reject(output, i);
  bool isOfNumbers = !rejected && options.refute && rejectFewVectors();
  rejected |= isOfNumbers;
  if (!rejected)
    undecided();
  xf::ParamOp constant = xf::findUnknownConstant(facts.graph.getBlock());
  if (constant && rejected)
    unconfirmed("the numbers of '" + constant.getName().str() + "' are not in the file");
  // Numbers are of a program that does not round: what rounding leaves of a value is zero in it.
  auto body = facts.graph.getBlock().getBody().getOps<xf::RoundOp>();
  bool rounds = body.begin() != body.end();
  if (options.refute && !constant) {
    StringRef rule = rejected ? verdict.causes.front().rule : StringRef();
    Refuted found = options.refute(facts.graph.getBlock(), options, rule);
    if (isOfNumbers && !found.leastError) {
      verdict.causes.clear();
      undecided();
    } else if (rejected && !found.leastError)
      unconfirmed(found.words);
    else if (rejected && !found.words.empty())
      note(verdict.causes.back().op, found.words);
    else if (!rejected && found.leastError && !rounds)
      refuted(*found.leastError);
  }
  mergeCauses(verdict.causes);
}

void ctxc::explainFailure(const BlockFacts &facts, const PlanOptions &options, Verdict &verdict) {
  Explanation(facts, options, verdict).explain();
}
