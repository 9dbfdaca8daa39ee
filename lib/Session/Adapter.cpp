#include "ctxc/Session/Adapter.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Session/Model.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;

llvm::Expected<AdapterModel> ctxc::adapterModel(Model &model) {
  const Checkpoint *checkpoint = model.checkpoint();
  if (!checkpoint)
    return makeError(model.name() + ": has no checkpoint, to which an adapter could belong");
  llvm::Expected<const Program &> program = model.program();
  if (!program)
    return program.takeError();
  AdapterModel adapter;
  adapter.directory = checkpoint->directory().str();
  adapter.modelType = checkpoint->config().getString("model_type").value_or("").str();
  for (ProgramStep step : program->steps) {
    if (!step.applied)
      continue;
    for (xf::ParamOp param : step.block.getBody().getOps<xf::ParamOp>()) {
      auto parameter = findPatched(step.block, step.layer, param.getName());
      if (!parameter)
        return parameter.takeError();
      if (parameter->form.transposed)
        adapter.inFirst.insert(parameter->stored);
    }
  }
  return adapter;
}

/// The names of a plan's patched parameters; empty where one of the patches is not a rank-1 patch
/// of a whole matrix.
static std::vector<std::string> matricesOf(const BlockPlan &plan) {
  std::vector<std::string> names;
  for (mlir::Operation *op : plan.patchedOps()) {
    auto patchable = llvm::dyn_cast<patch::PatchableOpInterface>(op);
    auto assignable = llvm::cast<xf::AssignableOpInterface>(op);
    auto param = assignable.getParameterOperand().get().getDefiningOp<xf::ParamOp>();
    if (!patchable || !param || isBankName(param.getName()) ||
        patchable.getPatchForm().kind != patch::PatchForm::Rank1)
      return {};
    names.push_back(param.getName().str());
  }
  return names;
}

llvm::Expected<std::vector<std::string>> ctxc::planOfMatrices(Model &model) {
  LoadOptions options = model.options();
  options.planning.parameters.clear();
  options.diagnostics = [](const ModelDiagnostic &) {}; // the model has already reported them
  auto other = model.reopen(std::move(options));
  if (!other)
    return other.takeError();
  auto groups = (*other)->check();
  if (!groups)
    return groups.takeError();
  std::vector<std::vector<std::string>> common;
  bool first = true;
  for (const VerdictGroup &group : *groups) {
    std::vector<std::vector<std::string>> plans;
    std::vector<PlanCandidate> candidates = enumeratePlans(group);
    for (bool outputOnly : {false, true}) // first those that keep the MLP's inside
      for (const PlanCandidate &candidate : candidates)
        if (std::vector<std::string> names = matricesOf(candidate.plan);
            candidate.outputOnly == outputOnly && !names.empty())
          plans.push_back(std::move(names));
    if (first)
      common = plans;
    llvm::erase_if(common, [&](const auto &plan) { return !llvm::is_contained(plans, plan); });
    first = false;
  }
  return common.empty() ? std::vector<std::string>() : common.front();
}
