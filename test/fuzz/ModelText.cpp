// A model as text, on the way of `ctxc check`: parsed, verified, judged; and, where there is a
// plan, its blocks built.
#include "Reader.h"
#include "ctxc/Evidence/Trial.h"
#include "ctxc/Evidence/Witness.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Planning/ModelVerdict.h"
#include "ctxc/Transforms/BuildPatch.h"

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

static std::string printed(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printModel(module, os);
  return text;
}

static void requireRoundTrip(mlir::ModuleOp module) {
  mlir::MLIRContext &shared = *module.getContext();
  std::string text = printed(module);
  auto again = importModel(scratch("again.mlir", text), shared);
  if (!again)
    llvm::errs() << text;
  require(bool(again), "the text of a module can be read");
  require(printed(*again->module) == text, "the text of a module gives the module");
}

void fuzz::readModelText(StringRef bytes) {
  auto imported = importModel(scratch("model.mlir", bytes), context());
  if (!heard(imported))
    return;
  mlir::ModuleOp module = *imported->module;
  requireRoundTrip(module);
  ModelOptions options;
  options.refute = refuteByWitness;
  options.confirm = confirmByTrial;
  std::vector<VerdictGroup> groups = groupVerdicts(checkModel(module, options));
  bool hasPlan = !groups.empty();
  for (const VerdictGroup &group : groups) {
    (void)findWarnings(group);
    hasPlan &= mlir::succeeded(emitVerdict(group));
  }
  if (auto verdict = judgeModel(module, groups, options.startLayer))
    hasPlan &= mlir::succeeded(emitVerdict(*verdict));
  if (hasPlan)
    (void)buildPatchBlocks(module, options);
}
