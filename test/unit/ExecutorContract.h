// The contract of Executor.h for every executor: which runs it accepts, that it can be cancelled,
// and that it takes one call at a time.
#ifndef CTXC_TEST_UNIT_EXECUTORCONTRACT_H
#define CTXC_TEST_UNIT_EXECUTORCONTRACT_H

#include "ctxc/Program/Executor.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Program/StepChecks.h"
#include "gtest/gtest.h"

namespace ctxc::test {

using Numbers = std::vector<double>;

/// A call that continues `full`, which holds the first two tokens, by some of the others; and its
/// result.
struct ContractCall {
  const char *name;
  std::function<llvm::Expected<Numbers>(Executor &, Run &full, Run &reduced)> make;
};

inline llvm::Expected<Numbers> numbersOf(const Patch &patch) {
  Numbers all;
  for (const ParameterPatch &entry : patch.parameters)
    for (const Numbers *part : {&entry.u, &entry.v, &entry.delta})
      all.insert(all.end(), part->begin(), part->end());
  return all;
}

inline std::vector<ContractCall> contractCalls(std::vector<int64_t> all) {
  std::vector<int64_t> tokens(all.begin() + 2, all.end()), positions;
  for (size_t i = 2; i < all.size(); ++i)
    positions.push_back(i);
  return {
      {"forward",
       [=](Executor &executor, Run &full, Run &) {
         return executor.forward(full, tokens, positions, ForwardOptions());
       }},
      {"next",
       [=](Executor &executor, Run &full, Run &) -> llvm::Expected<Numbers> {
         auto next = executor.next(full, tokens[0], 2, ForwardOptions());
         if (!next)
           return next.takeError();
         return Numbers{double(*next)};
       }},
      {"patch",
       [=](Executor &executor, Run &full, Run &reduced) -> llvm::Expected<Numbers> {
         auto step = executor.patch(full, reduced, tokens[0], 2, PatchOptions());
         return step ? numbersOf(step->patch) : step.takeError();
       }},
      {"patchEach", [=](Executor &executor, Run &full, Run &reduced) -> llvm::Expected<Numbers> {
         Numbers numbers;
         PatchEachOptions options;
         options.logits = true;
         if (llvm::Error error =
                 executor.patchEach(full, reduced, tokens, positions, options,
                                    [&](const TokenPatch &token) -> llvm::Error {
                                      Numbers logits = token.fullLogits.doubles();
                                      numbers.insert(numbers.end(), logits.begin(), logits.end());
                                      auto patch = token.patch();
                                      if (!patch)
                                        return patch.takeError();
                                      Numbers more = *numbersOf(*patch);
                                      numbers.insert(numbers.end(), more.begin(), more.end());
                                      return llvm::Error::success();
                                    }))
           return std::move(error);
         return numbers;
       }}};
}

/// A run of the first two tokens.
inline std::unique_ptr<Run> contractRun(Executor &executor, llvm::ArrayRef<int64_t> tokens) {
  auto run = executor.start(tokens.size());
  const int64_t positions[] = {0, 1};
  auto logits = executor.forward(*run, tokens.take_front(2), positions, {});
  EXPECT_TRUE(bool(logits)) << llvm::toString(logits.takeError());
  return run;
}

inline std::string messageOf(llvm::Expected<Numbers> made) {
  return made ? "no error" : llvm::toString(made.takeError());
}

inline void expectRefusesForeignRuns(Executor &executor, Executor &other,
                                     llvm::ArrayRef<int64_t> tokens) {
  const std::string refusal = "the run belongs to another executor; only the one that started it "
                              "can continue it";
  auto foreign = other.start(tokens.size()), foreignReduced = other.start(1);
  EXPECT_EQ(llvm::toString(executor.copy(*foreign, 4).takeError()), refusal);
  for (const ContractCall &call : contractCalls(tokens.vec())) {
    SCOPED_TRACE(call.name);
    auto full = contractRun(executor, tokens), reduced = executor.start(1);
    EXPECT_EQ(messageOf(call.make(executor, *foreign, *foreignReduced)), refusal);
    EXPECT_EQ(messageOf(call.make(executor, *foreign, *reduced)), refusal);
    EXPECT_EQ(foreign->size(), 0);
    if (llvm::StringRef(call.name).starts_with("patch")) {
      EXPECT_EQ(messageOf(call.make(executor, *full, *foreignReduced)), refusal);
      EXPECT_EQ(full->size(), 2);
      EXPECT_EQ(messageOf(call.make(executor, *full, *full)),
                "the full and the reduced run are one; they need a run each");
    }
    // A run may be moved; it still belongs to its executor.
    std::unique_ptr<Run> moved = std::move(full);
    EXPECT_EQ(messageOf(call.make(executor, *moved, *reduced)), "no error");
    EXPECT_GT(moved->size(), 2);
  }
}

/// Each call is cancelled before it begins, in its middle, and at the last time that it asks;
/// afterwards the same runs give the same result as an undisturbed call.
inline void expectCancels(Executor &executor, llvm::ArrayRef<int64_t> tokens,
                          int64_t fewestQuestions) {
  for (const ContractCall &call : contractCalls(tokens.vec())) {
    auto full = contractRun(executor, tokens), reduced = executor.start(1);
    int64_t asked = 0, endAt = 0;
    executor.setInterrupt([&] { return ++asked == endAt; });
    auto expected = call.make(executor, *full, *reduced);
    ASSERT_TRUE(bool(expected)) << call.name << ": " << llvm::toString(expected.takeError());
    full->truncate(2);
    const int64_t questions = asked;
    EXPECT_GE(questions, fewestQuestions) << call.name;
    for (int64_t at : {int64_t(1), questions / 2 + 1, questions}) {
      SCOPED_TRACE(std::string(call.name) + ", cancelled at question " + std::to_string(at));
      asked = 0;
      endAt = at;
      auto cancelled = call.make(executor, *full, *reduced);
      ASSERT_FALSE(bool(cancelled));
      llvm::Error error = cancelled.takeError();
      EXPECT_TRUE(error.isA<Cancelled>());
      EXPECT_EQ(llvm::toString(std::move(error)), "the call was cancelled");
      EXPECT_EQ(asked, at) << "asked after it was cancelled";
      EXPECT_EQ(full->size(), 2);
      EXPECT_EQ(reduced->size(), 0);
      endAt = 0;
      auto found = call.make(executor, *full, *reduced);
      ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
      EXPECT_EQ(*found, *expected);
      full->truncate(2);
    }
    executor.setInterrupt(nullptr);
  }
}

/// While a call is in progress, calls from another thread and from its own thread are refused, and
/// do not disturb it.
inline void expectOneCallAtATime(Executor &executor, llvm::ArrayRef<int64_t> tokens) {
  for (const ContractCall &outer : contractCalls(tokens.vec())) {
    auto full = contractRun(executor, tokens), reduced = executor.start(1);
    auto other = contractRun(executor, tokens), otherReduced = executor.start(1);
    auto expected = outer.make(executor, *full, *reduced);
    ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
    full->truncate(2);
    bool isAsked = false;
    executor.setInterrupt([&] {
      if (std::exchange(isAsked, true))
        return false;
      for (const ContractCall &inner : contractCalls(tokens.vec())) {
        SCOPED_TRACE(std::string(inner.name) + " within " + outer.name);
        std::thread([&] {
          EXPECT_EQ(messageOf(inner.make(executor, *other, *otherReduced)),
                    "the executor is in use by another thread; it takes one call at a time");
          EXPECT_EQ(executor.start(1)->size(), 0);
        }).join();
        EXPECT_EQ(messageOf(inner.make(executor, *other, *otherReduced)),
                  "the executor is called by an observer of its own call; call it after that has "
                  "returned");
        EXPECT_EQ(other->size(), 2);
      }
      return false;
    });
    auto found = outer.make(executor, *full, *reduced);
    ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
    EXPECT_TRUE(isAsked);
    EXPECT_EQ(*found, *expected);
    executor.setInterrupt(nullptr);
    // After the call, another thread may call.
    std::thread([&] {
      EXPECT_EQ(messageOf(outer.make(executor, *other, *otherReduced)), "no error");
    }).join();
  }
}

/// Runs `count` tokens through all steps of `program`, one at a time, behind those that `run` has.
/// Returns the logits of each.
inline llvm::Expected<std::vector<float>> logitsByStep(Executor &executor, const Program &program,
                                                       Run &run, llvm::ArrayRef<int64_t> tokens) {
  const int64_t held = run.size();
  std::vector<int32_t> ids(tokens.begin(), tokens.end()), positions;
  for (size_t i = 0; i < tokens.size(); ++i)
    positions.push_back(held + i);
  llvm::DenseMap<mlir::Value, std::vector<float>> values;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    StepRows rows{i, ids, positions, {}};
    for (mlir::Value input : xf::LayerOp(step.layer).getInputs())
      rows.inputs.push_back(&values.find(input)->second);
    const bool isContextual = readsContext(step.block);
    if (isContextual)
      run.truncate(held);
    std::vector<std::vector<float>> outputs;
    if (llvm::Error error = executor.runStep(rows, isContextual ? &run : nullptr, outputs))
      return std::move(error);
    for (auto [output, numbers] : llvm::zip(xf::LayerOp(step.layer).getOutputs(), outputs))
      values[output] = std::move(numbers);
  }
  return std::move(values[program.logits()]);
}

/// Steps one by one give what a whole pass gives, also for tokens behind others, and in a copy of
/// the run. `apart`: by how much logits may differ.
inline void expectSingleSteps(Executor &executor, const Program &program,
                              llvm::ArrayRef<int64_t> tokens, double apart) {
  auto whole = executor.start(tokens.size()), run = executor.start(tokens.size());
  std::vector<int64_t> positions;
  for (size_t i = 0; i < tokens.size(); ++i)
    positions.push_back(i);
  ForwardOptions options;
  options.allLogits = true;
  auto expected = executor.forward(*whole, tokens, positions, options);
  ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
  const size_t first = tokens.size() / 2 + 1, width = program.vocabulary;
  auto begin = logitsByStep(executor, program, *run, tokens.take_front(first));
  ASSERT_TRUE(bool(begin)) << llvm::toString(begin.takeError());
  EXPECT_EQ(run->size(), int64_t(first));
  auto copy = executor.copy(*run, tokens.size());
  ASSERT_TRUE(bool(copy)) << llvm::toString(copy.takeError());
  for (Run *each : {run.get(), copy->get()}) {
    auto end = logitsByStep(executor, program, *each, tokens.drop_front(first));
    ASSERT_TRUE(bool(end)) << llvm::toString(end.takeError());
    std::vector<float> found = *begin;
    llvm::append_range(found, *end);
    ASSERT_EQ(found.size(), expected->size());
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_LE(std::abs(found[i] - (*expected)[i]), apart)
          << "logit " << i % width << " of token " << i / width;
  }
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_EXECUTORCONTRACT_H
