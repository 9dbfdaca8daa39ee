#include "PatchOutput.h"
#include "ctxc/Export/Adapter.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::StringRef;

std::vector<OptionSpec> driver::patchOutputOptions() {
  return {
      writesInto({"-o",
                  "PATH",
                  "what to write: a file; a new directory for --format=peft and for --positions",
                  {},
                  true}),
      {"--format",
       "FORMAT",
       "patch (default), ctxc's own file; peft, a LoRA adapter for transformers;\n"
       "or gguf-lora, one for llama.cpp (docs/adapters.md)",
       {"patch", "peft", "gguf-lora"}}};
}

static Error withOption(Error error) {
  return error ? makeError("-o: " + llvm::toString(std::move(error))) : Error::success();
}

Error driver::checkPatchOutput(const Arguments &arguments) {
  StringRef path = arguments.get("-o", "");
  StringRef format = arguments.get("--format", "patch");
  bool several = arguments.has("--positions");
  if (several && format != "patch")
    return makeError("--positions: does not go with --format=" + format +
                     ", which is an adapter for the patch of one token");
  if (!several && format != "peft")
    return withOption(checkWritable(path));
  if (llvm::sys::fs::exists(path))
    return makeError("-o: " + path + " already exists; name a directory that does not");
  return withOption(checkWritable(path));
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

/// The names for --plan with which all patches of every block are patches of matrices; empty where
/// there are none.
static llvm::Expected<std::string> planOfMatrices(Model &model) {
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
    std::vector<PlanCandidate> candidates = enumeratePlans(group.block, *group.options);
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
  return common.empty() ? "" : llvm::join(common.front(), ",");
}

/// The error, with the reason why an adapter cannot hold the patch, and a plan whose patch it could
/// hold.
static Error withAdvice(Model &model, Error why) {
  std::string text = llvm::toString(std::move(why)) + "; ";
  llvm::Expected<std::string> plan = planOfMatrices(model);
  if (!plan)
    return plan.takeError();
  if (plan->empty())
    return makeError(text + "no plan of this model patches matrices alone: leave --format out, and "
                            "use the file with ctxc apply");
  return makeError(text + "expected --plan " + *plan);
}

/// The stored matrices of the patched layers that are stored as (in, out).
static llvm::Expected<AdapterModel> adapterModel(Model &model) {
  llvm::Expected<const Program &> program = model.program();
  if (!program)
    return program.takeError();
  AdapterModel adapter;
  const Checkpoint &checkpoint = *model.checkpoint();
  adapter.directory = checkpoint.directory().str();
  adapter.modelType = checkpoint.config().getString("model_type").value_or("").str();
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

Error driver::writePatchOutput(const Arguments &arguments, Model &model, const Patch &patch,
                               const PatchMetadata &metadata) {
  StringRef path = arguments.get("-o", ""), format = arguments.get("--format", "patch");
  if (format == "patch")
    return writePatchFile(path, patch, metadata);
  if (Error why = checkLora(patch))
    return withAdvice(model, std::move(why));
  llvm::Expected<AdapterModel> adapter = adapterModel(model);
  if (!adapter)
    return adapter.takeError();
  return format == "peft" ? writePeftAdapter(path, patch, metadata, *adapter)
                          : writeGgufLora(path, patch, metadata, *adapter);
}
