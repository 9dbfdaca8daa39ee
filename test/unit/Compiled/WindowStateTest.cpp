// What a run keeps of layers with a window: less than of others, and the numbers are, bit for bit,
// those of a run that keeps all.
#include "Fixture.h"
#include "dialects/Kernel/Kernel.h"
#include "lib/Runtime/CompiledRun.h"
#include "test/unit/ExecutorContract.h"

using namespace ctxc;
using namespace ctxc::test;

namespace {

constexpr int64_t length = 700;

std::vector<int64_t> prompt(const Program &program, int64_t count = length) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back((i * i * 5 + i * 3) % program.vocabulary);
  return tokens;
}

/// What StepState keeps of two groups: token `first` + s of group g is 1000 g + first + s.
struct TwoGroups {
  StepState state;

  int32_t *numbers() {
    return reinterpret_cast<int32_t *>(state.memory(0, 2 * sizeof(int32_t), /*groups=*/2));
  }
  void write(int64_t from, int64_t to) {
    int32_t *all = numbers();
    for (int64_t group : {0, 1})
      for (int64_t token = from; token < to; ++token)
        all[group * state.room + token - state.first] = 1000 * group + token;
  }
  void expect(int64_t to) {
    int32_t *all = numbers();
    for (int64_t group : {0, 1})
      for (int64_t token = state.first; token < to; ++token)
        ASSERT_EQ(all[group * state.room + token - state.first], 1000 * group + token);
  }
};

TEST(StepState, EachGroupKeepsItsTokens) {
  TwoGroups groups;
  groups.state.makeRoom(0, 3, /*capacity=*/3);
  EXPECT_EQ(groups.state.room, 3);
  groups.write(0, 3);
  groups.state.makeRoom(3, 400, /*capacity=*/403); // more room: the second group moves
  EXPECT_EQ(groups.state.room, 403);
  groups.expect(3);
  groups.write(3, 403);
  groups.state.window = 100;
  groups.state.makeRoom(403, 50, /*capacity=*/500); // those before the window go
  EXPECT_EQ(groups.state.first, 256);
  groups.expect(403);
  TwoGroups copy{groups.state.copy(400, /*capacity=*/1000)};
  EXPECT_NE(copy.state.room, groups.state.room);
  copy.expect(400);
}

/// The bytes that a run holds, and the steps that have dropped tokens.
std::pair<size_t, int> held(const ctxc::Run &run) {
  std::pair<size_t, int> all = {0, 0};
  for (const StepState &step : static_cast<const CompiledRun &>(run).steps) {
    all.second += step.first > 0;
    for (const SlotMemory &memory : step.memories)
      all.first += memory.bytes.size();
  }
  return all;
}

struct Family {
  const char *name;
  bool rounded = false; ///< keys and values are kept in bfloat16
};

class WindowState : public testing::TestWithParam<Family> {
protected:
  WindowState() : model(GetParam().name, patch::UpdateKind::least, {}, /*compile=*/false) {
    if (GetParam().rounded)
      kernel::markRoundedStates(*model.imported.module);
    CompiledOptions options;
    options.promptChunk = 150;
    options.threads = 1;
    auto made = createCompiledExecutor(model.program, *model.weights, options);
    if (!made) {
      ADD_FAILURE() << llvm::toString(made.takeError());
      return;
    }
    executor = std::move(*made);
    all = executor->start(length);
    seen = executor->start(length, Keeps::Seen);
    tokens = prompt(model.program);
  }

  Numbers forward(ctxc::Run &run, int64_t from, int64_t count, bool append = true,
                  bool allLogits = false) {
    ForwardOptions options;
    options.append = append;
    options.allLogits = allLogits;
    auto positions = upTo(length);
    auto logits = executor->forward(run, llvm::ArrayRef(tokens).slice(from, count),
                                    llvm::ArrayRef(positions).slice(from, count), options);
    EXPECT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
    return logits ? *logits : Numbers();
  }
  /// Both runs take the same tokens.
  void both(int64_t from, int64_t count, bool append = true, bool allLogits = false) {
    EXPECT_EQ(forward(*seen, from, count, append, allLogits),
              forward(*all, from, count, append, allLogits))
        << count << " tokens from " << from << " on";
  }
  Numbers patchOf(ctxc::Run &run, int64_t position) {
    auto reduced = executor->start(1);
    auto step = executor->patch(run, *reduced, tokens[position], position, {});
    EXPECT_TRUE(bool(step)) << llvm::toString(step.takeError());
    return step ? *numbersOf(step->patch) : Numbers();
  }

  Model model;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<ctxc::Run> all, seen;
  std::vector<int64_t> tokens;
};

TEST_P(WindowState, PromptsAndTokensAreThoseOfARunThatKeepsAll) {
  both(0, 333, true, /*allLogits=*/true);
  for (int64_t at = 333; at < 640; ++at)
    both(at, 1);
  both(640, 60);
  EXPECT_EQ(held(*all).second, 0);
  EXPECT_GT(held(*seen).second, 0);
  EXPECT_LT(held(*seen).first, held(*all).first);
}

TEST_P(WindowState, TokensThatAreNotAppendedLeaveNothing) {
  both(0, 300);
  both(300, 390, /*append=*/false);
  both(300, 1, /*append=*/false);
  both(300, 300);
  seen->truncate(0);
  all->truncate(0);
  both(0, 200);
}

TEST_P(WindowState, PatchesAreThoseOfARunThatKeepsAll) {
  both(0, 500);
  EXPECT_EQ(patchOf(*seen, 500), patchOf(*all, 500));
  for (ctxc::Run *run : {all.get(), seen.get()})
    run->truncate(500); // as a context does after each patch
  EXPECT_EQ(patchOf(*seen, 500), patchOf(*all, 500));
  Numbers found[2];
  for (int i : {0, 1}) {
    auto reduced = executor->start(1);
    auto positions = upTo(length);
    PatchEachOptions options;
    options.chunk = 70;
    auto error =
        executor->patchEach(*(i ? seen : all), *reduced, llvm::ArrayRef(tokens).slice(501, 199),
                            llvm::ArrayRef(positions).slice(501, 199), options,
                            [&](const TokenPatch &token) -> llvm::Error {
                              auto patch = token.patch();
                              if (!patch)
                                return patch.takeError();
                              llvm::append_range(found[i], *numbersOf(*patch));
                              return llvm::Error::success();
                            });
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST_P(WindowState, CopiesGoTheirOwnWay) {
  both(0, 450);
  auto copy = executor->copy(*seen, 600);
  ASSERT_TRUE(bool(copy)) << llvm::toString(copy.takeError());
  EXPECT_EQ((*copy)->keeps(), Keeps::Seen);
  both(450, 200);
  all->truncate(450);
  EXPECT_EQ(forward(**copy, 450, 150), forward(*all, 450, 150));
}

/// Whether as a reduced run of later tokens.
TEST_P(WindowState, AReducedRunMayKeepWhatIsSeen) {
  both(0, 400);
  Numbers found[2];
  for (int i : {0, 1}) {
    auto full = executor->start(length);
    forward(*full, 0, 500);
    auto step = executor->patch(*full, *(i ? seen : all), tokens[500], 500, {});
    ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
    found[i] = *numbersOf(step->patch);
    found[i].push_back(step->reducedLogits.doubles()[0]);
  }
  EXPECT_EQ(found[0], found[1]);
}

/// Cancelled at one kernel after the other, until the prompt is read.
TEST_P(WindowState, ACancelledPromptLeavesTheRunAsItWas) {
  both(0, 200);
  auto positions = upTo(length);
  for (int kernels = 3; seen->size() == 200; kernels += 4) {
    executor->setInterrupt([left = kernels]() mutable { return left-- == 0; });
    auto logits = executor->forward(*seen, llvm::ArrayRef(tokens).slice(200, 480),
                                    llvm::ArrayRef(positions).slice(200, 480), {});
    executor->setInterrupt({});
    if (logits) {
      EXPECT_EQ(*logits, forward(*all, 200, 480));
      EXPECT_GT(kernels, 10);
      return;
    }
    llvm::consumeError(logits.takeError());
    both(200, 30, /*append=*/false);
  }
  FAIL() << "a cancelled prompt has left " << seen->size() << " tokens";
}

TEST_P(WindowState, WhatIsGoneIsAnError) {
  forward(*seen, 0, 680);
  seen->truncate(300);
  std::string message = messageOf(executor->forward(*seen, tokens[300], 300, {}));
  EXPECT_EQ(message.substr(0, 46), "the run was truncated to 300 tokens, and a lay") << message;
  // As a reduced run, of tokens before its own.
  auto kept = executor->start(length, Keeps::Seen), full = executor->start(length);
  forward(*kept, 0, 680);
  auto error = executor->patchEach(*full, *kept, tokens[0], 0, {},
                                   [](const TokenPatch &) { return llvm::Error::success(); });
  EXPECT_EQ(llvm::toString(std::move(error)),
            "the reduced run holds tokens at positions up to 679 and no longer all of those that "
            "position 0 sees; start it so that it keeps all");
}

INSTANTIATE_TEST_SUITE_P(Families, WindowState,
                         testing::Values(Family{"gemma3"}, Family{"mistral"}, Family{"gpt-oss"},
                                         Family{"mixtral"}, Family{"gpt-oss", true}),
                         [](const auto &info) {
                           std::string name = info.param.name;
                           name += info.param.rounded ? "_rounded" : "";
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// A layer without a window keeps all, whatever the run keeps.
TEST(WindowStates, AreOfLayersWithAWindowAlone) {
  Model model("llama");
  auto run = model.compiled->start(length, Keeps::Seen);
  auto logits = model.compiled->forward(*run, prompt(model.program), upTo(length), {});
  ASSERT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  EXPECT_EQ(held(*run).second, 0);
  run->truncate(10);
  EXPECT_TRUE(bool(model.compiled->forward(*run, int64_t(3), 10, {})));
}

} // namespace
