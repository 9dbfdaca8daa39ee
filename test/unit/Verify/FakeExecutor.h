// A model small enough to follow by hand: its state is the sum of the tokens that a run has seen,
// and its two layers pass that sum on. The largest logit is the one whose index is the sum modulo
// the vocabulary. A patch is the vector that brings a reduced run's sum to the full run's.
#ifndef CTXC_TEST_VERIFY_FAKEEXECUTOR_H
#define CTXC_TEST_VERIFY_FAKEEXECUTOR_H

#include "ctxc/Support/Error.h"
#include "ctxc/Verify/Verify.h"
#include <cmath>

namespace ctxc::testing {

struct FakeRun : Run {
  std::vector<int64_t> tokens, positions;
  int64_t size() const override { return tokens.size(); }
  void truncate(int64_t count) override {
    tokens.resize(std::min<size_t>(count, tokens.size()));
    positions.resize(tokens.size());
  }
};

class FakeExecutor : public Executor {
public:
  double error = 0;    ///< added to every patch
  bool broken = false; ///< patched runs give NaN
  bool bidirectional = false;
  std::vector<std::vector<int64_t>> prefills; ///< the positions of each forward that appends
  int64_t patchedRuns = 0, controls = 0;

  bool isBidirectional() const override { return bidirectional; }
  int64_t vocabulary() const override { return 7; }
  int64_t layers() const override { return 2; }

protected:
  std::unique_ptr<Run> makeRun(int64_t) override { return std::make_unique<FakeRun>(); }
  llvm::Error copyState(const Run &from, Run &to) override {
    auto &copy = static_cast<FakeRun &>(to);
    copy.tokens = static_cast<const FakeRun &>(from).tokens;
    copy.positions = static_cast<const FakeRun &>(from).positions;
    return llvm::Error::success();
  }

  llvm::Expected<Logits> computeLogits(Run &run, llvm::ArrayRef<Input> inputs,
                                       llvm::ArrayRef<int64_t> positions,
                                       const ForwardOptions &options) override {
    const std::vector<int64_t> tokens = tokensOf(inputs);
    auto &state = static_cast<FakeRun &>(run);
    if (tokens.size() != positions.size())
      return makeError("forward: tokens and positions differ in number");
    double sum = sumOf(state);
    for (int64_t token : tokens)
      sum += token;
    if (options.patch)
      sum += options.patch->parameters.at(0).delta.at(0);
    if (options.append) {
      prefills.push_back(positions.vec());
      append(state, tokens, positions);
    } else {
      ++(options.patch ? patchedRuns : controls);
    }
    observe(options.observer, sum);
    return Logits(numbersOf(options.patch && broken ? NAN : sum));
  }

  llvm::Expected<Logits> computeHead(llvm::ArrayRef<double>, int64_t) override {
    return makeError("the model has no head");
  }

  llvm::Expected<PatchStep> computePatch(Run &full, Run &reduced, const Input &input,
                                         int64_t position, const PatchOptions &options) override {
    int64_t token = input.token();
    auto &state = static_cast<FakeRun &>(full);
    double fullSum = sumOf(state) + token;
    double delta = fullSum - (sumOf(static_cast<FakeRun &>(reduced)) + token) + error;
    append(state, token, position);
    observe(options.fullObserver, fullSum);
    PatchStep step;
    step.patch.parameters.push_back(
        {"layers.1.bias", ParameterPatch::Kind::Delta, {1}, {}, {}, {delta}});
    step.fullLogits = numbersOf(fullSum);
    step.reducedLogits = numbersOf(fullSum + error);
    step.obligations = {{0, 0}, {2, 1}};
    step.replayError = {0, 1e-6};
    return step;
  }

  llvm::Error computePatchEach(Run &full, Run &reduced, llvm::ArrayRef<Input> tokens,
                               llvm::ArrayRef<int64_t> positions, const PatchEachOptions &,
                               PatchSink sink) override {
    for (auto [input, position] : llvm::zip(tokens, positions)) {
      int64_t token = input.token();
      FakeRun kept = static_cast<FakeRun &>(reduced);
      kept.truncate(llvm::lower_bound(kept.positions, position) - kept.positions.begin());
      auto step = computePatch(full, kept, token, position, {});
      if (!step)
        return step.takeError();
      TokenPatch given{token,
                       position,
                       step->fullLogits,
                       step->reducedLogits,
                       step->obligations,
                       step->replayError,
                       {}};
      auto makePatch = [&]() -> llvm::Expected<Patch> { return step->patch; };
      given.patch = makePatch;
      if (llvm::Error error = sink(given))
        return error;
    }
    return llvm::Error::success();
  }

private:
  static double sumOf(const FakeRun &run) {
    double sum = 0;
    for (int64_t token : run.tokens)
      sum += token;
    return sum;
  }
  static void append(FakeRun &run, llvm::ArrayRef<int64_t> tokens,
                     llvm::ArrayRef<int64_t> positions) {
    run.tokens.insert(run.tokens.end(), tokens.begin(), tokens.end());
    run.positions.insert(run.positions.end(), positions.begin(), positions.end());
  }
  static void observe(const LayerObserver &observer, double sum) {
    for (int64_t layer = -1; observer && layer < 2; ++layer)
      observer(layer, {layer < 0 ? 1.0 : sum}, 1);
  }
  static std::vector<double> numbersOf(double sum) {
    std::vector<double> values(7);
    for (int i = 0; i < 7; ++i)
      values[i] = std::cos(2 * M_PI * (i - sum) / 7);
    return values;
  }
};

struct FakeNorms : PatchNorms {
  int64_t reads = 0;
  int64_t layerOf(llvm::StringRef parameter) const override {
    return parameter.starts_with("layers.1.") ? 1 : -1;
  }
  llvm::Expected<double> computeSquaredNorm(llvm::StringRef) override {
    ++reads;
    return 4.0;
  }
};

} // namespace ctxc::testing

#endif // CTXC_TEST_VERIFY_FAKEEXECUTOR_H
