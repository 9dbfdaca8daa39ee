#include "ctxc/Planning/ModelVerdict.h"
#include "ctxc/Analysis/ModelFlow.h"

using namespace mlir;
using namespace ctxc;

/// "'xf.conv'", or "layer 0, which runs unpatched,"
static std::string nameOf(Operation *op, const ModelFlow &flow) {
  if (auto layer = dyn_cast<xf::LayerOp>(op))
    return "layer " + std::to_string(flow.numberOf(layer)) + ", which runs unpatched,";
  return "'" + op->getName().getStringRef().str() + "'";
}

static Finding describe(Operation *source, const ModelFlow &flow, xf::ModelOp model) {
  bool isLayer = isa<xf::LayerOp>(source);
  Finding finding{source,
                  nameOf(source, flow) + " reads the context, which reaches the logits of model '" +
                      model.getSymName().str() + "' past its patched layers",
                  rules::ContextPastLayers};
  SmallVector<Value> path = flow.path(source);
  // A long way is told by its ends.
  constexpr size_t most = 8;
  for (auto [i, value] : llvm::enumerate(path)) {
    Operation *op = value.getDefiningOp();
    if (op == source || (path.size() > most && i >= most / 2 && i + most / 2 < path.size()))
      continue;
    finding.notes.push_back({op, nameOf(op, flow) + " passes it on" +
                                     (value == flow.logits() ? ", as the logits" : "")});
  }
  finding.advice =
      isLayer
          ? "patch this layer too (start layer " +
                std::to_string(flow.numberOf(cast<xf::LayerOp>(source))) +
                " or less), or pass what it makes through a layer that is patched"
          : "put it into the block of a layer, whose patch then takes the context that it reads";
  return finding;
}

std::optional<ModelVerdict> ctxc::judgeModel(ModuleOp module, ArrayRef<VerdictGroup> groups,
                                             unsigned startLayer) {
  auto models = module.getOps<xf::ModelOp>();
  if (models.empty())
    return std::nullopt;
  ModelVerdict verdict;
  verdict.model = *models.begin();
  ModelFlow flow(verdict.model, startLayer);
  for (Operation *source : flow.sourcesOfLogits())
    verdict.causes.push_back(describe(source, flow, verdict.model));
  auto every = [&](auto holds) {
    return llvm::all_of(groups, [&](const VerdictGroup &group) { return holds(*group.verdict); });
  };
  if (!verdict.causes.empty() || !every([](const Verdict &v) { return v.isSuccess(); }))
    return verdict;
  bool controllable = every([](const Verdict &v) { return v.kind == VerdictKind::Controllable; });
  verdict.kind = controllable ? VerdictKind::Controllable : VerdictKind::OutputOnly;
  return verdict;
}

LogicalResult ctxc::emitVerdict(const ModelVerdict &verdict) {
  for (const Finding &cause : verdict.causes) {
    xf::ModelOp model = verdict.model;
    emitFinding(model, cause, DiagnosticSeverity::Error);
  }
  return success(verdict.causes.empty());
}
