// Models and their proofs, for tests of the proof checker.
#ifndef CTXC_TEST_UNIT_PROOF_FIXTURE_H
#define CTXC_TEST_UNIT_PROOF_FIXTURE_H

#include "../Goldens.h"
#include "ctxc/Evidence/MakeProof.h"
#include "ctxc/Evidence/Witness.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Proof/CheckProof.h"
#include "dialects/Patch/Patch.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"

namespace ctxc::test {

/// A model, with the options of a check.
class Model {
public:
  explicit Model(llvm::StringRef path, ModelOptions options = {}) {
    context.loadDialect<xf::XFDialect, patch::PatchDialect>();
    ImportOptions import;
    import.needWeights = false;
    auto found = importModel(path, context, import);
    if (found)
      model = std::move(*found);
    else
      ADD_FAILURE() << llvm::toString(found.takeError());
    options.refute = refuteByWitness;
    this->options = std::move(options);
  }

  mlir::ModuleOp module() { return *model.module; }
  std::vector<VerdictGroup> groups() { return groupVerdicts(checkModel(module(), options)); }

  proof::Proof prove() {
    auto made = makeProof(module(), groups(), options);
    if (made)
      return *made;
    ADD_FAILURE() << llvm::toString(made.takeError());
    return {};
  }
  std::vector<std::string> problems(const proof::Proof &proof, bool replay = true) {
    proof::CheckOptions checking;
    if (!replay)
      checking.numbers = 0;
    return proof::checkProof(module(), proof, checking).problems;
  }

private:
  mlir::MLIRContext context;
  ImportedModel model;
  ModelOptions options;
};

inline std::string ruleFile(llvm::StringRef name) {
  return (CTXC_SOURCE_DIR "/test/Rules/" + name + ".mlir").str();
}

/// Every block under test/Rules by its name, sorted.
inline std::vector<std::string> allRuleFiles() {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(CTXC_SOURCE_DIR "/test/Rules", error), end;
       it != end && !error; it.increment(error))
    if (llvm::StringRef(it->path()).ends_with(".mlir"))
      names.push_back(llvm::sys::path::stem(it->path()).str());
  llvm::sort(names);
  return names;
}

/// The options on the file's RUN line.
inline ModelOptions ruleOptions(llvm::StringRef name) {
  ModelOptions options;
  auto buffer = llvm::MemoryBuffer::getFile(ruleFile(name));
  llvm::StringRef text = buffer ? (*buffer)->getBuffer() : "";
  llvm::StringRef line = text.split("RUN:").second.split('\n').first;
  if (line.contains("--sites=all"))
    options.scope = SiteScope::All;
  if (line.contains("--objective=paper"))
    options.objective = Objective::Paper;
  if (line.contains("--update naive"))
    options.update = patch::UpdateKind::naive;
  if (line.contains("--start-layer 1"))
    options.startLayer = 1;
  return options;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PROOF_FIXTURE_H
