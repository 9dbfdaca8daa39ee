// Reports the analyses' results as remarks at the ops, for tests and for users.
#include "BuildFromPlans.h"
#include "ctxc/Analysis/ContextDependence.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Planning/ModelVerdict.h"
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
    ContextDependence context(graph, InputSources(inputs.getValue()));
    ZeroRange zeros(getOperation());
    Bindings none;
    Sites sites(graph, zeros, none);
    for (Operation &op : getOperation().getBody().front().without_terminator()) {
      if (context.depends(&op))
        mlir::emitRemark(op.getLoc(), "depends on the context")
            << (sites.inContextualPart(&op) ? ", in the contextual part" : "");
      else if (sites.inContextualPart(&op))
        mlir::emitRemark(op.getLoc(), "in the contextual part");
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
        InFlightDiagnostic diag = mlir::emitRemark(op.getLoc(), "an entry is zero ")
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
    Sites sites(graph, zeros, none);
    for (const Site &site : sites.all())
      mlir::emitRemark(site.op->getLoc(), "'")
          << Sites::name(site.op) << "' "
          << (site.why.empty() ? "may be patched" : "may not be patched: ") << site.why;
    markAllAnalysesPreserved();
  }
};

bool isChainLink(const BlockPlan &plan, Operation *op) {
  return llvm::any_of(plan.outputs, [&](const OutputPatch &output) {
    return llvm::any_of(output.links, [&](ChainLink link) { return link.op == op; });
  });
}

struct ReportControl : impl::ReportControlBase<ReportControl> {
  using ReportControlBase::ReportControlBase;
  void runOnOperation() override {
    ModelOptions options;
    options.startLayer = startLayer;
    options.update = naive ? patch::UpdateKind::naive : patch::UpdateKind::least;
    for (const std::string &name : frozen)
      options.frozen.push_back(name);
    if (failed(checkOneModel(getOperation())))
      return signalPassFailure();
    std::vector<VerdictGroup> groups = groupVerdicts(checkModel(getOperation(), options));
    for (const VerdictGroup &group : groups)
      if (failed(emitVerdict(group)) || failed(report(group)))
        signalPassFailure();
    if (auto verdict = judgeModel(getOperation(), groups, startLayer);
        verdict && failed(emitVerdict(*verdict)))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult report(const VerdictGroup &group) {
    const Verdict &verdict = *group.verdict;
    const BlockPlan &plan = verdict.plan;
    xf::BlockOp block = group.block;
    if (failed(checkPlan(block, plan, *group.options, verdict.kind == VerdictKind::OutputOnly)))
      return failure();
    auto names = [](ArrayRef<Operation *> ops) {
      std::string text;
      for (Operation *op : ops)
        text += (text.empty() ? "" : ", ") + Sites::name(op);
      return "{" + text + "}";
    };
    SmallVector<Operation *> output;
    for (Operation *op : plan.patchedOps())
      if (plan.outputOf(op))
        output.push_back(op);
    mlir::emitRemark(block.getLoc())
        << stringify(verdict.kind)
        << (group.ops.empty() ? "" : " in layers " + formatRanges(group.layers)) << ": input "
        << names(plan.inputSites) << ", output " << names(output)
        << (verdict.remark.empty() ? "" : "; " + verdict.remark);
    for (const OutputPatch &o : plan.outputs)
      if (!llvm::is_contained(block.getBody().front().getTerminator()->getOperands(), o.goal))
        mlir::emitRemark(o.goal.getLoc()) << "brought to what it is in the full run";
    for (const PlanObligation &o : plan.obligations)
      if (o.kind != xf::Obligation::None)
        mlir::emitRemark(o.site->getLoc())
            << (o.kind == xf::Obligation::NonzeroVector ? "its data must not be zero"
                : o.kind == xf::Obligation::NonzeroSum  ? "its weights must not sum to zero"
                : o.kind == xf::Obligation::FiniteElements
                    ? "no entry of its divisor may be infinite"
                : o.kind == xf::Obligation::SameSelection ? "both runs must select the same"
                : isChainLink(plan, o.site) ? "no entry of its known factor may be zero"
                                            : "no entry of its data may be zero")
            << (o.likelihood == xf::Zeros::Never
                    ? ", which always holds"
                    : ", which fails " + stringify(o.likelihood).str());
    return success();
  }
};

} // namespace
} // namespace ctxc
