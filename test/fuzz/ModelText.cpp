// A model as text, on the whole way of `ctxc check`.
#include "Reader.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Session/Model.h"

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

static LoadOptions structureAlone() {
  LoadOptions options;
  options.needWeights = false;
  options.diagnostics = [](const ModelDiagnostic &diagnostic) {
    require(!text(diagnostic).empty(), "a diagnostic has a text");
  };
  return options;
}

static std::string printed(const Model &model) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printModel(model.module(), os);
  return text;
}

void fuzz::readModelText(StringRef bytes) {
  auto model = Model::load(scratch("model.mlir", bytes), structureAlone());
  if (!heard(model))
    return;
  std::string text = printed(**model);
  auto again = Model::load(scratch("again.mlir", text), structureAlone());
  if (!again)
    llvm::errs() << text;
  require(bool(again), "the text of a module can be read");
  require(printed(**again) == text, "the text of a module gives the module");

  auto groups = (*model)->check();
  if (!heard(groups))
    return;
  for (const VerdictGroup &group : *groups) {
    (void)findWarnings(group);
    (void)emitVerdict(group);
  }
  hear((*model)->judge(*groups).takeError());
  hear((*model)->program().takeError());
}
