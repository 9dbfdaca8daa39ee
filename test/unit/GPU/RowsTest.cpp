// Whole blocks of many rows on a device, compared with the processor's kernels: plain, with a given
// patch, and dual blocks, which form the patch.
#include "RowsCase.h"
#include "ctxc/Program/TokenKernels.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

struct Family {
  const char *name;
  DType dtype;
  int64_t rows;
  RowsCase::Blocks blocks = RowsCase::Blocks::All;
};

struct GpuRows : testing::TestWithParam<Family> {};

TEST_P(GpuRows, AreTheProcessors) {
  CTXC_OPEN_DEVICE(device);
  Model model(GetParam().name, patch::UpdateKind::least, GetParam().dtype, false);
  addDualHead(model.program);
  RowsCase(model.program, *model.weights, GetParam().rows, /*before=*/6, /*kept=*/3)
      .expectAgreement(*device, 2e-4, GetParam().blocks);
}

constexpr auto given = RowsCase::Blocks::Applied;

// They cover grouped heads, a window, post-norms and their solvers; attention parallel to the MLP;
// transposed matrices; slopes; sinks; and experts stored one by one, together, and patched. Of the
// families of GpuPrompt and GpuPatches, which hold the plain and the dual blocks, those with a
// given patch are left.
INSTANTIATE_TEST_SUITE_P(
    Families, GpuRows,
    testing::Values(Family{"llama", DType::F32, 16, given}, Family{"falcon", DType::BF16, 5, given},
                    Family{"gemma3", DType::F32, 9, given}, Family{"gpt2", DType::F32, 7},
                    Family{"falcon-alibi", DType::F32, 6}, Family{"gpt-oss", DType::BF16, 5},
                    Family{"mixtral", DType::BF16, 11, given},
                    Family{"qwen3-moe-fused", DType::F32, 6},
                    Family{"olmo2", DType::BF16, 33, given}, Family{"deepseek-v3", DType::F32, 5}),
    [](const auto &info) {
      std::string name = info.param.name;
      llvm::replace(name, '-', '_');
      return name;
    });

} // namespace
