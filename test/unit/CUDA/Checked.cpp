// After every test: nothing was called wrongly, no kernel did wrong, nothing is left alive.
#include "test/unit/CUDA/Fake/FakeCuda.h"
#include <gtest/gtest.h>

namespace {

class Checked : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo &) override { fake_cuda::reset(); }
  void OnTestEnd(const testing::TestInfo &) override {
    for (const std::string &each : fake_cuda::problems())
      ADD_FAILURE() << each;
    for (const std::string &each : fake_cuda::alive())
      ADD_FAILURE() << "left alive: " << each;
  }
};

[[maybe_unused]] const bool isAdded = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Checked);
  return true;
}();

} // namespace
