// Checks after every test: no wrong call, no error of a kernel, nothing left alive.
#include "test/fake-gpu/FakeGpu.h"
#include <gtest/gtest.h>

namespace {

class Checked : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo &) override { fake_gpu::reset(); }
  void OnTestEnd(const testing::TestInfo &) override {
    for (const std::string &each : fake_gpu::problems())
      ADD_FAILURE() << each;
    for (const std::string &each : fake_gpu::alive())
      ADD_FAILURE() << "left alive: " << each;
  }
};

[[maybe_unused]] const bool isAdded = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Checked);
  return true;
}();

} // namespace
