// What ctxc wrote before, and reads again: patches, adapters, proofs, witnesses, records.
#include "Reader.h"
#include "ctxc/Evidence/Witness.h"
#include "ctxc/Experiments/Records.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Export/PatchSet.h"
#include "ctxc/Proof/CheckProof.h"
#include "ctxc/Session/Model.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

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

void fuzz::readPatchSet(StringRef bytes) {
  auto set = PatchSet::open(scratch("patches.safetensors", bytes));
  if (!heard(set))
    return;
  auto missing = set->read(set->positions().back() + 1);
  require(!heard(missing), "a position that the file does not have is an error");
  std::vector<std::pair<Patch, PatchMetadata>> found;
  for (int64_t position : set->positions()) {
    auto patch = set->read(position);
    if (!heard(patch))
      return;
    require(patch->second.position == position, "a patch is that of its position");
    found.push_back(std::move(*patch));
  }
  std::string again = scratchPath("patches-again.safetensors");
  auto written = writePatchSet(again, set->positions(), found.back().second,
                               [&](PatchWriter write) -> llvm::Error {
                                 for (const auto &[patch, metadata] : found)
                                   if (llvm::Error error = write(patch, metadata))
                                     return error;
                                 return llvm::Error::success();
                               });
  if (!heard(written)) // patches of different parameters, in files of one
    return;
  auto second = PatchSet::open(again);
  require(bool(second) && second->positions() == set->positions() &&
              second->last().tokens == set->last().tokens,
          "patches that were written are read as they were");
  for (const auto &[patch, metadata] : found) {
    auto reread = second->read(metadata.position);
    require(bool(reread) && reread->first.parameters.size() == patch.parameters.size(),
            "each patch that was written is read");
  }
}

/// The model that adapters are for: a matrix of 3 × 4 numbers and a norm's scale, all zero.
/// `config` says of which type it is; of none, it is an exported program.
static std::shared_ptr<Checkpoint> adaptedModel(StringRef config) {
  std::string header = R"({"model.layers.0.mlp.down_proj.weight":{"dtype":"F32","shape":[3,4],)"
                       R"("data_offsets":[0,48]},"model.norm.weight":{"dtype":"F32","shape":[4],)"
                       R"("data_offsets":[48,64]}})";
  std::string length(8, '\0');
  llvm::support::endian::write64le(length.data(), header.size());
  scratch("adapted/config.json", config);
  scratch("adapted/model.safetensors", length + header + std::string(64, '\0'));
  auto opened = Checkpoint::open(scratchPath("adapted"));
  require(bool(opened), "the model of the adapters can be read");
  return std::shared_ptr<Checkpoint>(std::move(*opened));
}

void fuzz::readAdapter(StringRef bytes) {
  auto [config, tensors] = bytes.split('\0');
  static const std::shared_ptr<Checkpoint> program = adaptedModel("{}"),
                                           llama = adaptedModel(R"({"model_type":"llama"})");
  const Checkpoint &model = config.empty() ? *program : *llama;
  (void)llvm::sys::fs::remove(scratchPath("adapter/adapter_config.json"));
  if (!config.empty())
    scratch("adapter/adapter_config.json", config);
  scratch("adapter/adapter_model.safetensors", tensors);
  auto adapter = readLastingAdapter(scratchPath("adapter"), model, {1});
  if (!heard(adapter))
    return;
  auto isFinite = [](llvm::ArrayRef<float> numbers) {
    return llvm::all_of(numbers, [](float x) { return std::isfinite(x); });
  };
  for (const MatrixChange &change : adapter->matrices) {
    require(int64_t(change.left.size()) == change.rows * change.rank &&
                int64_t(change.right.size()) == change.rank * change.columns,
            "factors have all of their numbers");
    require(isFinite(change.left) && isFinite(change.right), "factors are finite");
    require(change.rows * change.columns == model.find(change.parameter)->elements(),
            "a change is of its matrix's size");
  }
  for (const VectorChange &change : adapter->vectors)
    require(isFinite(change.delta), "a vector's change is finite");
  if (adapter->matrices.empty())
    return;
  std::string again = scratchPath("adapter-again");
  require(!writeLastingAdapter(again, *adapter, model, {}), "an adapter that was read is written");
  auto second = readLastingAdapter(again, model, {1});
  require(bool(second) && second->prefix == adapter->prefix &&
              second->vectors.size() == adapter->vectors.size() &&
              llvm::equal(second->matrices, adapter->matrices,
                          [](const MatrixChange &a, const MatrixChange &b) {
                            return a.parameter == b.parameter && a.left == b.left &&
                                   a.right == b.right;
                          }),
          "an adapter that was written is read as it was");
  (void)llvm::sys::fs::remove_directories(again);
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
