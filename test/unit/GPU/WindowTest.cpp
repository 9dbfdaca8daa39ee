// What a run keeps on a device of layers with a window: the numbers are, bit for bit, those of a
// run that keeps all.
#include "Device.h"
#include "lib/Runtime/GPU/GpuRun.h"
#include "test/unit/ExecutorContract.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

constexpr int64_t length = 1300, chunk = 128;

struct GpuWindow : testing::Test {
  GpuWindow() : model("gemma3", patch::UpdateKind::least, {}, /*compile=*/false) {
    for (int64_t i = 0; i < length; ++i)
      tokens.push_back((i * i * 5 + i * 3) % model.program.vocabulary);
  }
  void start(std::unique_ptr<Device> device) {
    GpuOptions options;
    options.chunk = chunk;
    options.movedTogether = 1;
    gpu = onDevice(model.program, *model.weights, std::move(device), options);
    ASSERT_NE(gpu, nullptr);
    all = gpu->start(length);
    seen = gpu->start(length, Keeps::Seen);
  }
  std::vector<float> forward(ctxc::Run &run, int64_t from, int64_t count, bool append) {
    ForwardOptions options;
    options.append = append;
    auto positions = upTo(length);
    auto logits = gpu->forward(run, llvm::ArrayRef(tokens).slice(from, count),
                               llvm::ArrayRef(positions).slice(from, count), options);
    EXPECT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
    return logits ? std::vector<float>(logits->begin(), logits->end()) : std::vector<float>();
  }
  /// Both runs take the same tokens.
  void both(int64_t from, int64_t count, bool append = true) {
    EXPECT_EQ(forward(*seen, from, count, append), forward(*all, from, count, append))
        << count << " tokens from " << from << " on";
  }
  std::vector<double> patchOf(ctxc::Run &run, int64_t position) {
    auto reduced = gpu->start(1);
    auto step = gpu->patch(run, *reduced, tokens[position], position, {});
    EXPECT_TRUE(bool(step)) << llvm::toString(step.takeError());
    return step ? *numbersOf(step->patch) : std::vector<double>();
  }
  /// The first tokens that the run keeps, by window.
  static std::vector<int64_t> firstOf(const ctxc::Run &run) {
    std::vector<int64_t> first;
    for (const auto &[window, slots] : static_cast<const GpuRun &>(run).slots)
      first.push_back(slots.first);
    return first;
  }

  Model model;
  std::vector<int64_t> tokens;
  std::unique_ptr<Executor> gpu;
  std::unique_ptr<ctxc::Run> all, seen;
};

TEST_F(GpuWindow, NumbersAreThoseOfARunThatKeepsAll) {
  CTXC_OPEN_DEVICE(device);
  start(std::move(device));
  both(0, 1000);
  // A call that leaves nothing gives back what it moved.
  both(1000, 200, /*append=*/false);
  EXPECT_EQ(firstOf(*seen), (std::vector<int64_t>{0, 0}));
  both(1000, 200);
  EXPECT_EQ(firstOf(*all), std::vector<int64_t>{0});
  EXPECT_EQ(firstOf(*seen), (std::vector<int64_t>{0, 1024}));
  EXPECT_EQ(patchOf(*seen, 1200), patchOf(*all, 1200));
  for (ctxc::Run *run : {all.get(), seen.get()})
    run->truncate(1200); // as a context does after each patch
  both(1200, 1, /*append=*/false);
  auto copy = gpu->copy(*seen, length), whole = gpu->copy(*all, length);
  ASSERT_TRUE(copy && whole);
  EXPECT_EQ(forward(**copy, 1200, 9, true), forward(**whole, 1200, 9, true));
  for (ctxc::Run *run : {all.get(), seen.get()})
    run->truncate(0);
  both(0, 9);
}

TEST_F(GpuWindow, WhatIsNoLongerKeptIsAnError) {
  CTXC_OPEN_DEVICE(device);
  start(std::move(device));
  forward(*seen, 0, 1200, true);
  seen->truncate(700);
  auto positions = upTo(length);
  auto logits = gpu->forward(*seen, tokens[700], 700, {});
  ASSERT_FALSE(bool(logits));
  std::string message = llvm::toString(logits.takeError());
  EXPECT_NE(message.find("truncated to 700 tokens"), std::string::npos) << message;
  EXPECT_NE(message.find("keeps those from 1024 on"), std::string::npos) << message;
}

} // namespace
