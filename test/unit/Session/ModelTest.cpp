// The library as a program uses it: only through Model.
#include "ctxc/Session/Model.h"
#include "ctxc/Support/AtomicFile.h"
#include "dialects/XF/XF.h"
#include "test/unit/Session/Opened.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include <atomic>
#include <list>

using namespace ctxc;
using namespace ctxc::test;

namespace {

const std::vector<int64_t> tokens = {3, 50, 7, 91, 11, 2};

RunRequest requestOf(std::vector<int64_t> positions = {}) {
  RunRequest request;
  request.tokens = toInputs(tokens);
  request.positions = std::move(positions);
  return request;
}

TEST(Model, ChecksWithoutWeights) {
  LoadOptions options;
  options.needWeights = false;
  auto model = opened("test/goldens/gemma3", options);
  auto verdicts = model->check();
  ASSERT_TRUE(bool(verdicts)) << llvm::toString(verdicts.takeError());
  ASSERT_EQ(verdicts->size(), 1u);
  EXPECT_EQ(verdicts->front().verdict->kind, VerdictKind::Controllable);
  EXPECT_EQ(verdicts->front().layers.size(), 6u);
  EXPECT_TRUE(llvm::cantFail(model->updatesDiffer()));
  EXPECT_FALSE(llvm::cantFail(model->splitsMixtures()));
}

/// Plans are made on a copy: the imported module can still be checked.
TEST(Model, PlansLeaveTheModuleAlone) {
  auto model = opened("test/goldens/gemma3");
  std::string before, after;
  llvm::raw_string_ostream(before) << model->module();
  ASSERT_TRUE(bool(model->program()));
  llvm::raw_string_ostream(after) << model->module();
  EXPECT_EQ(before, after);
  EXPECT_EQ(llvm::cantFail(model->check()).size(), 1u);
}

TEST(Model, VerifiesPatchesOfItsOwnAndOthers) {
  for (Engine engine : {Engine::Compiled, Engine::Reference}) {
    LoadOptions options;
    options.engine = engine;
    auto model = opened("test/goldens/gemma3", options);
    int64_t seen = 0;
    auto result = model->verify(requestOf(), 3, [&](const VerifyStep &) { ++seen; });
    ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
    VerifySummary summary = summarize(result->steps);
    EXPECT_EQ(seen, 3);
    EXPECT_TRUE(summary.verified());
    EXPECT_LT(summary.worstLinf, 1e-4);
    EXPECT_GT(summary.leastControlLinf, 1e-3) << "the context changes nothing";

    auto step = model->patch(requestOf());
    ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
    auto again = model->verify(requestOf(), step->patch);
    ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
    EXPECT_TRUE(summarize(again->steps).verified());
    // Half of a patch is not exact.
    for (ParameterPatch &entry : step->patch.parameters)
      for (std::vector<double> *part : {&entry.u, &entry.delta})
        for (double &number : *part)
          number /= 2;
    auto wrong = model->verify(requestOf(), step->patch);
    ASSERT_TRUE(bool(wrong)) << llvm::toString(wrong.takeError());
    EXPECT_GT(summarize(wrong->steps).worstLinf, 1e-3);
  }
}

TEST(Model, PatchesOfPositionsAreThoseOfTheirPrefixes) {
  auto model = opened("test/goldens/llama");
  std::vector<Patch> each;
  ASSERT_FALSE(
      bool(model->positions(requestOf({2, 5}), [&](const TokenPatch &given) -> llvm::Error {
        auto patch = given.patch();
        if (!patch)
          return patch.takeError();
        each.push_back(std::move(*patch));
        return llvm::Error::success();
      })));
  ASSERT_EQ(each.size(), 2u);
  RunRequest prefix = requestOf();
  prefix.tokens.erase(prefix.tokens.begin() + 3, prefix.tokens.end());
  auto step = model->patch(prefix);
  ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
  EXPECT_EQ(each[0].parameters[0].parameter, step->patch.parameters[0].parameter);
  EXPECT_EQ(each[0].parameters[0].u, step->patch.parameters[0].u);
  PatchMetadata metadata = llvm::cantFail(model->metadata(requestOf({2, 5}), 2));
  EXPECT_EQ(metadata.tokens, std::vector<int64_t>(tokens.begin(), tokens.begin() + 3));
  EXPECT_EQ(metadata.modelHash, llvm::cantFail(model->hash()));
}

/// Tensors in the caller's memory give the same model as their files.
TEST(Model, LoadsFromMemory) {
  auto stored = opened("test/goldens/gpt2");
  std::vector<MemoryTensor> tensors;
  for (const TensorView &view : stored->checkpoint()->tensors())
    tensors.push_back({view.name, view.dtype, view.shape, view.data});
  std::string config;
  llvm::raw_string_ostream(config)
      << llvm::json::Value(llvm::json::Object(stored->checkpoint()->config()));
  auto model = Model::load("in memory", config, tensors);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_FALSE((*model)->hasTokenizer());
  EXPECT_EQ(llvm::cantFail((*model)->hash()).size(), 64u);
  auto expected = stored->patch(requestOf()), found = (*model)->patch(requestOf());
  ASSERT_TRUE(bool(expected) && bool(found));
  EXPECT_TRUE(found->fullLogits == expected->fullLogits);
  auto other = (*model)->reopen({});
  ASSERT_TRUE(bool(other)) << llvm::toString(other.takeError());
  EXPECT_EQ(llvm::cantFail((*other)->hash()), llvm::cantFail((*model)->hash()));

  tensors.push_back(tensors.front());
  tensors.push_back({"lost", DType::F32, {2, 3}, nullptr});
  auto refused = Model::load("in memory", config, tensors);
  std::string message = llvm::toString(refused.takeError());
  EXPECT_NE(message.find("is given twice"), std::string::npos) << message;
  EXPECT_NE(message.find("'lost' has no memory, expected 24 bytes"), std::string::npos) << message;
}

/// As in a GGUF file of bfloat16: the vectors are float32.
TEST(Model, WeightsOfSeveralTypesKeepTheirs) {
  auto stored = opened("test/goldens/llama");
  std::vector<MemoryTensor> tensors;
  std::list<std::vector<uint16_t>> narrow;
  for (const TensorView &view : stored->checkpoint()->tensors()) {
    tensors.push_back({view.name, view.dtype, view.shape, view.data});
    if (view.dtype != DType::F32 || view.shape.size() < 2)
      continue;
    auto *numbers = reinterpret_cast<const float *>(view.data);
    std::vector<uint16_t> &rounded = narrow.emplace_back();
    for (int64_t i = 0; i < view.elements(); ++i)
      rounded.push_back(floatToBf16(numbers[i]));
    tensors.back().dtype = DType::BF16;
    tensors.back().data = reinterpret_cast<const uint8_t *>(rounded.data());
  }
  std::string config;
  llvm::raw_string_ostream(config)
      << llvm::json::Value(llvm::json::Object(stored->checkpoint()->config()));
  LoadOptions wide;
  wide.storage = DType::F32;
  auto model = Model::load("in memory", config, tensors),
       widened = Model::load("in memory", config, tensors, wide);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  ASSERT_TRUE(bool(widened)) << llvm::toString(widened.takeError());
  EXPECT_EQ((*model)->storage(), "bf16");
  EXPECT_EQ((*widened)->storage(), "f32");
  (*model)->module().walk([](xf::ParamOp param) {
    auto type = llvm::cast<mlir::RankedTensorType>(param.getType());
    EXPECT_EQ(type.getElementType().isBF16(), type.getRank() > 1) << param.getName().str();
  });
  auto found = (*model)->patch(requestOf()), expected = (*widened)->patch(requestOf());
  ASSERT_TRUE(bool(found) && bool(expected));
  EXPECT_TRUE(found->fullLogits == expected->fullLogits);
}

TEST(Model, ReopenedModelsShareWeights) {
  auto model = opened("test/goldens/gemma3");
  LoadOptions options;
  options.storage = DType::BF16;
  auto narrow = model->reopen(options);
  ASSERT_TRUE(bool(narrow)) << llvm::toString(narrow.takeError());
  EXPECT_EQ(&llvm::cantFail(model->weights()), &llvm::cantFail((*narrow)->weights()));
  EXPECT_EQ(model->storage(), "f32");
  EXPECT_EQ((*narrow)->storage(), "bf16");
  // Norms outlive the model that first read them.
  auto norms = llvm::cantFail(model->norms()).squaredNorm("model.layers.0.mlp.down_proj.weight");
  ASSERT_TRUE(bool(norms));
  auto third = llvm::cantFail(model->reopen({}));
  model.reset();
  auto same = llvm::cantFail(third->norms()).squaredNorm("model.layers.0.mlp.down_proj.weight");
  ASSERT_TRUE(bool(same));
  EXPECT_EQ(*same, *norms);
}

TEST(Model, SaysWhichOptionIsWrong) {
  LoadOptions options;
  options.planning.startLayer = 6;
  auto model = opened("test/goldens/gemma3", options);
  llvm::Error error = model->program().takeError();
  EXPECT_TRUE(error.isA<OptionError>());
  EXPECT_EQ(llvm::toString(std::move(error)), "start layer: found 6, expected a layer from 0 to 5");
  options = {};
  options.planning.parameters = {"mlp.down_proj.weihgt"};
  model = opened("test/goldens/gemma3", options);
  EXPECT_EQ(llvm::toString(model->check().takeError()),
            "parameters to patch: no block of test/goldens/gemma3 has a parameter "
            "'mlp.down_proj.weihgt'; did you mean 'mlp.down_proj.weight'?");
}

/// Without a handler, an error contains the diagnostics' text and locations; with one, the handler
/// gets them.
TEST(Model, HandsDiagnosticsOver) {
  constexpr char path[] = "test/Rules/all-frozen.mlir";
  LoadOptions options;
  options.needWeights = false;
  llvm::Error error = opened(path, options)->program().takeError();
  EXPECT_TRUE(error.isA<VerdictAgainst>());
  std::string text = llvm::toString(std::move(error));
  EXPECT_TRUE(llvm::StringRef(text).starts_with(path)) << text;
  EXPECT_NE(text.find(": error: "), std::string::npos) << text;

  std::vector<ModelDiagnostic> seen;
  options.diagnostics = [&](const ModelDiagnostic &diagnostic) { seen.push_back(diagnostic); };
  EXPECT_EQ(llvm::toString(opened(path, options)->program().takeError()), "a block has no plan");
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front().severity, mlir::DiagnosticSeverity::Error);
  EXPECT_EQ(seen.front().place.file, path);
  EXPECT_GT(seen.front().place.line, 0u);
}

TEST(Model, ShowsTheLineThatDoesNotParse) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("wrong", "mlir", path));
  llvm::FileRemover remover(path);
  ASSERT_FALSE(bool(writeFileAtomically(path, [](llvm::raw_pwrite_stream &os) {
    os << "xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = nonsense\n}\n";
    return llvm::Error::success();
  })));
  LoadOptions options;
  options.needWeights = false;
  auto model = Model::load(path, options);
  std::string text = llvm::toString(model.takeError());
  EXPECT_NE(text.find(":2:"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  %y = nonsense\n"), std::string::npos) << text;
  EXPECT_NE(text.find("^"), std::string::npos) << text;
}

TEST(Model, ReadsText) {
  auto model = opened("examples/models/gemma3-kjv-1m");
  auto ids = model->tokenize("And Joshua the son of Nun");
  ASSERT_TRUE(bool(ids)) << llvm::toString(ids.takeError());
  EXPECT_EQ(llvm::cantFail(llvm::cantFail(model->tokenizer()).decode(*ids)),
            "And Joshua the son of Nun");
  EXPECT_EQ(model->tokenName()(-1), "(embedding)");
  EXPECT_EQ(
      llvm::toString(opened("test/goldens/llama")->tokenize("a").takeError()).find("(embedding)"),
      std::string::npos);
}

TEST(Model, IsInspected) {
  auto model = opened("test/goldens/llama");
  InspectRequest request;
  request.run = requestOf();
  auto inspection = model->inspect(request);
  ASSERT_TRUE(bool(inspection)) << llvm::toString(inspection.takeError());
  EXPECT_EQ(inspection->patches.size(), tokens.size() - 1);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// Two models that share weights give the same results in two threads as one of them alone.
TEST(ModelThreads, TwoModels) {
  auto first = opened("test/goldens/gemma3");
  auto expected = llvm::cantFail(first->patch(requestOf())).fullLogits;
  auto second = llvm::cantFail(first->reopen({}));
  Logits found[2];
  std::thread threads[2];
  for (int i : {0, 1})
    threads[i] = std::thread([&, i] {
      Model &model = i ? *second : *first;
      for (int round = 0; round < 3; ++round)
        found[i] = llvm::cantFail(model.patch(requestOf())).fullLogits;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(found[0] == expected);
  EXPECT_TRUE(found[1] == expected);
}

/// A call during another thread's call is refused; afterwards it works.
TEST(ModelThreads, OneModel) {
  Model *shared = nullptr;
  std::string refusal;
  LoadOptions options;
  options.interrupt = [&] {
    if (refusal.empty())
      std::thread([&] { refusal = llvm::toString(shared->check().takeError()); }).join();
    return false;
  };
  auto model = opened("test/goldens/llama", options);
  shared = model.get();
  ASSERT_TRUE(bool(model->patch(requestOf())));
  EXPECT_NE(refusal.find("is in use by another thread"), std::string::npos) << refusal;
  std::thread([&] { EXPECT_TRUE(bool(shared->check())); }).join();
}

/// A call of one chunk tells nothing; of several patches, each.
TEST(ModelProgress, IsToldOfPatches) {
  std::vector<std::pair<int64_t, int64_t>> told;
  LoadOptions options;
  options.progress = [&](int64_t done, int64_t all) { told.emplace_back(done, all); };
  auto model = opened("test/goldens/llama", options);
  llvm::cantFail(model->patch(requestOf()));
  EXPECT_TRUE(told.empty());
  Executor &executor = llvm::cantFail(model->executor());
  auto full = executor.start(4), reduced = executor.start(1);
  const std::vector<int64_t> tokens = {3, 5, 7}, positions = {0, 1, 2};
  llvm::cantFail(executor.patchEach(*full, *reduced, tokens, positions, {},
                                    [](const TokenPatch &) { return llvm::Error::success(); }));
  std::vector<std::pair<int64_t, int64_t>> expected = {{0, 3}, {1, 3}, {2, 3}, {3, 3}};
  EXPECT_EQ(told, expected);
}

TEST(ModelThreads, IsCancelled) {
  std::atomic<bool> wanted = false;
  LoadOptions options;
  options.interrupt = [&] { return wanted.load(); };
  auto model = opened("test/goldens/llama", options);
  auto before = llvm::cantFail(model->patch(requestOf())).fullLogits;
  wanted = true;
  llvm::Error error = model->patch(requestOf()).takeError();
  EXPECT_TRUE(error.isA<Cancelled>());
  llvm::consumeError(std::move(error));
  wanted = false;
  EXPECT_TRUE(llvm::cantFail(model->patch(requestOf())).fullLogits == before);
}

} // namespace
