// What the analyses find, as remarks at the ops: for tests, and for the curious.
#include "ctxc/Analysis/ContextDependence.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace ctxc {

#define GEN_PASS_DEF_REPORTCONTEXT
#define GEN_PASS_DEF_REPORTCONTROL
#define GEN_PASS_DEF_REPORTFACTS
#define GEN_PASS_DEF_REPORTSITES
#include "ctxc/Transforms/Passes.h.inc"

namespace {

struct ReportContext : impl::ReportContextBase<ReportContext> {
  using ReportContextBase::ReportContextBase;
  void runOnOperation() override {
    BlockGraph graph(getOperation());
    ContextDependence context(graph, inputs);
    ZeroRange zeros(getOperation());
    Bindings none;
    Sites sites(graph, zeros, none);
    for (Operation &op : getOperation().getBody().front().without_terminator()) {
      if (context.depends(&op))
        op.emitRemark("depends on the context")
            << (sites.inContextualPart(&op) ? ", in the contextual part" : "");
      else if (sites.inContextualPart(&op))
        op.emitRemark("in the contextual part");
    }
    markAllAnalysesPreserved();
  }
};

StringRef stringify(xf::Zeros zeros) {
  switch (zeros) {
  case xf::Zeros::Never:
    return "never";
  case xf::Zeros::NullSet:
    return "on a null set";
  case xf::Zeros::OpenSet:
    return "on an open set";
  }
  llvm_unreachable("zeros of no known kind");
}

struct ReportFacts : impl::ReportFactsBase<ReportFacts> {
  void runOnOperation() override {
    ZeroRange zeros(getOperation());
    for (Operation &op : getOperation().getBody().front().without_terminator())
      for (Value result : op.getResults()) {
        const xf::Facts &facts = zeros.facts(result);
        InFlightDiagnostic diag = op.emitRemark("an entry is zero ")
                                  << stringify(facts.elements) << ", the vector "
                                  << stringify(facts.vector);
        if (facts.bound)
          diag << "; bounded by " << llvm::formatv("{0:F2}", *facts.bound).str();
      }
    markAllAnalysesPreserved();
  }
};

struct ReportSites : impl::ReportSitesBase<ReportSites> {
  void runOnOperation() override {
    BlockGraph graph(getOperation());
    ZeroRange zeros(getOperation());
    Bindings none;
    for (const Site &site : Sites(graph, zeros, none).all())
      site.op->emitRemark("'") << Sites::name(site.op) << "' "
                               << (site.why.empty() ? "may be patched" : "may not be patched: ")
                               << site.why;
    markAllAnalysesPreserved();
  }
};

struct ReportControl : impl::ReportControlBase<ReportControl> {
  using ReportControlBase::ReportControlBase;
  void runOnOperation() override {
    ModelOptions options;
    options.startLayer = startLayer;
    options.update = naive ? patch::UpdateKind::naive : patch::UpdateKind::least;
    for (const std::string &name : frozen)
      options.frozen.push_back(name);
    for (const VerdictGroup &group : groupVerdicts(checkModel(getOperation(), options)))
      if (failed(emitVerdict(group)) || failed(report(group)))
        signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult report(const VerdictGroup &group) {
    const Verdict &verdict = *group.verdict;
    const BlockPlan &plan = verdict.plan;
    xf::BlockOp block = group.block;
    if (failed(checkPlan(block, plan, *group.options, verdict.kind == VerdictKind::OutputOnly)))
      return failure();
    mlir::emitRemark(block.getLoc())
        << stringify(verdict.kind)
        << (group.ops.empty() ? "" : " in layers " + formatRanges(group.layers))
        << (verdict.advice.empty() ? "" : ": " + verdict.advice);
    auto remark = [&](Operation *op, StringRef text) {
      if (op)
        op->emitRemark(text) << " '" << Sites::name(op) << "'";
    };
    for (Operation *op : plan.inputSites)
      remark(op, "input site");
    remark(plan.normMatrix, "output site before the norm");
    remark(plan.outputSite, "output site");
    if (plan.waist)
      plan.waist.getDefiningOp()->emitRemark("brought to its full run's value");
    for (const PlanObligation &o : plan.obligations)
      if (o.kind != xf::Obligation::None)
        o.site->emitRemark(o.kind == xf::Obligation::NonzeroVector
                               ? "the vector it reads must not be zero"
                               : "no entry of the vector it reads may be zero")
            << ", which fails " << stringify(o.likelihood);
    return success();
  }
};

} // namespace
} // namespace ctxc
