// Weights that come beside a program say nothing else of its own tensors than it does.
#include "lib/Session/CompletedWeights.h"
#include "llvm/Support/Error.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

/// A checkpoint of one tensor, whose numbers it keeps.
struct One {
  std::vector<float> numbers;
  std::unique_ptr<Checkpoint> checkpoint;

  One(std::vector<float> given, llvm::SmallVector<int64_t, 4> shape,
      const std::string &name = "mask")
      : numbers(std::move(given)) {
    MemoryTensor tensor{name, DType::F32, shape, numbers.data()};
    checkpoint = llvm::cantFail(Checkpoint::fromMemory("memory", "{}", {tensor}));
  }
};

std::string problemOf(const One &weights, const One &program) {
  llvm::Error error = checkConstants(*weights.checkpoint, *program.checkpoint, {"mask"});
  return llvm::toString(std::move(error));
}

} // namespace

TEST(Constants, OfWeightsAreThoseOfTheProgram) {
  One program({1, 0, -1, 2}, {4});
  EXPECT_EQ(problemOf(One({1, 0, -1, 2}, {4}), program), "");
  One number({1, 0.5, -1, 2}, {4}), shape({1, 0, -1, 2}, {2, 2}), size({1, 0}, {2});
  for (const One *other : {&number, &shape, &size})
    EXPECT_EQ(problemOf(*other, program),
              "memory: 'mask' has other numbers than in the program, of which it is a part, as no "
              "parameter is; expected the same: export the module with these weights");
  // Weights need not have it, and what is not of the program may be anything.
  EXPECT_EQ(problemOf(One({3}, {1}, "weight"), program), "");
  EXPECT_EQ(problemOf(One({3}, {1}), One({1}, {1}, "other")), "");
}

TEST(Constants, MayBeStoredInANarrowerType) {
  const uint16_t rounded[] = {0x3f80, 0x3e80, 0x3dcd}, other[] = {0x3f80, 0x3e80, 0x3dce};
  One program({1, 0.25, 0.1f}, {3}); // of which bfloat16 has no 0.1
  for (auto [numbers, isSame] : {std::pair(rounded, true), {other, false}}) {
    MemoryTensor tensor{"mask", DType::BF16, {3}, numbers};
    auto weights = llvm::cantFail(Checkpoint::fromMemory("memory", "{}", {tensor}));
    llvm::Error error = checkConstants(*weights, *program.checkpoint, {"mask"});
    EXPECT_EQ(llvm::toString(std::move(error)).empty(), isSame);
  }
}
