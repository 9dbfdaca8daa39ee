// Every golden through import and the reference, against transformers' logits:
// what the dialects mean is what the models mean.
#include "Fixture.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstring>

namespace ctxc::reference {
namespace {

constexpr const char *directory = CTXC_SOURCE_DIR "/test/goldens";

std::vector<std::string> allGoldens() {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(directory, error), end; it != end && !error;
       it.increment(error))
    if (llvm::sys::fs::exists(it->path() + "/golden.safetensors"))
      names.push_back(llvm::sys::path::filename(it->path()).str());
  llvm::sort(names);
  return names;
}

class GoldensTest : public ReferenceTest, public testing::WithParamInterface<std::string> {};

TEST_P(GoldensTest, LogitsAreThoseOfTransformers) {
  std::string path = std::string(directory) + "/" + GetParam();
  auto file = llvm::cantFail(SafetensorsFile::open(path + "/golden.safetensors"));
  const TensorView &ids = *file->find("tokens"), &logits = *file->find("logits");
  std::vector<int64_t> tokens(ids.elements()), positions(ids.elements());
  std::memcpy(tokens.data(), ids.data, ids.bytes);
  for (size_t t = 0; t < positions.size(); ++t)
    positions[t] = t;
  std::vector<double> expected(logits.elements());
  readDoubles(logits.dtype, logits.data, expected);

  ImportedModel model = llvm::cantFail(importModel(path, context));
  auto weights = checkpointWeights(*model.checkpoint);
  auto noPlan = [](xf::LayerOp, xf::BlockOp, int64_t) { return std::nullopt; };
  auto program = buildProgram(*model.module, noPlan, patch::UpdateKind::least);
  ASSERT_TRUE(succeeded(program));
  auto executor = createReferenceExecutor(*program, *weights);
  EXPECT_EQ(executor->vocabulary(), logits.shape[1]);
  auto run = executor->start(tokens.size());
  ForwardOptions options;
  options.allLogits = true;
  std::vector<double> found = llvm::cantFail(executor->forward(*run, tokens, positions, options));
  ASSERT_EQ(found.size(), expected.size());
  double worst = 0, largest = 0;
  for (auto [a, b] : llvm::zip(found, expected)) {
    worst = std::max(worst, std::abs(a - b));
    largest = std::max(largest, std::abs(b));
  }
  RecordProperty("linf", std::to_string(worst));
  EXPECT_LE(worst, 1e-4) << "of logits up to " << largest;
  EXPECT_GE(largest, 1e-1) << "logits that are all small show nothing";
}

INSTANTIATE_TEST_SUITE_P(Goldens, GoldensTest, testing::ValuesIn(allGoldens()),
                         [](const testing::TestParamInfo<std::string> &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
} // namespace ctxc::reference
