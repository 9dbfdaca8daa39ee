// What ctxc wrote before, and reads again: patches, proofs, witnesses, records.
#include "Reader.h"
#include "ctxc/Evidence/Witness.h"
#include "ctxc/Experiments/Records.h"
#include "ctxc/Export/PatchFile.h"
#include "ctxc/Proof/CheckProof.h"
#include "ctxc/Session/Model.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

void fuzz::readPatch(StringRef bytes) {
  auto found = readPatchFile(scratch("patch.safetensors", bytes));
  if (!heard(found))
    return;
  std::string again = scratchPath("again.safetensors");
  llvm::Error error = writePatchFile(again, found->first, found->second);
  require(!error, "a patch that was read can be written");
  auto second = readPatchFile(again);
  require(bool(second) && second->first.parameters.size() == found->first.parameters.size() &&
              second->second.tokens == found->second.tokens,
          "a patch that was written is read as it was");
}

/// The model that proofs are judged against: a block that can be controlled, and one that cannot.
static mlir::ModuleOp provedModule() {
  static const std::unique_ptr<Model> model = [] {
    LoadOptions options;
    options.needWeights = false;
    auto loaded = Model::load(CTXC_FUZZ_PROVED, options);
    require(bool(loaded), "the model of the proofs can be read");
    return std::move(*loaded);
  }();
  return model->module();
}

void fuzz::readProof(StringRef bytes) {
  auto found = proof::parseProof(bytes, "proof.json");
  if (!heard(found))
    return;
  std::string text, again;
  llvm::raw_string_ostream os(text), second(again);
  proof::writeProof(*found, os);
  auto reread = proof::parseProof(text, "proof.json");
  require(bool(reread), "a proof that was written can be read");
  proof::writeProof(*reread, second);
  require(text == again, "a proof that was written is read as it was");
  proof::CheckOptions options;
  options.numbers = 20000;
  proof::Judgement judgement = proof::checkProof(provedModule(), *found, options);
  require(judgement.replays.size() == found->claims.size(), "each claim has a replay");
}

void fuzz::readWitness(StringRef bytes) {
  auto [text, tensors] = bytes.split('\0');
  scratch("witness.safetensors", tensors);
  auto witnesses = readWitnesses(scratch("witness.json", text));
  if (!heard(witnesses))
    return;
  mlir::MLIRContext &shared = context();
  SearchOptions search;
  search.restarts = 2;
  search.budget = 100000;
  for (const Witness &witness : *witnesses) {
    auto replay = replayWitness(witness, shared, search);
    if (heard(replay))
      (void)replay->confirms(witness);
  }
}

void fuzz::readRecords(StringRef bytes) {
  std::string file = scratch("records/records.jsonl", bytes);
  auto open = [] {
    return experiments::Records::open(scratchPath("records"), llvm::json::Object{{"model", "m"}},
                                      llvm::json::Object{{"about", 1}});
  };
  size_t size = 0;
  {
    auto records = open();
    if (!heard(records))
      return;
    hear((*records)->add("a key of its own", llvm::json::Object{{"x", 1}}));
    size = (*records)->size();
  }
  auto again = open();
  require(bool(again), "records that were written can be read");
  require((*again)->has("a key of its own") && (*again)->found() == size,
          "records that were written are found");
}
