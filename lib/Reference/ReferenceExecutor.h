// The executor in float64: a program's steps one after the other, and Algorithm 1 through the dual
// blocks.
#ifndef CTXC_LIB_REFERENCE_REFERENCEEXECUTOR_H
#define CTXC_LIB_REFERENCE_REFERENCEEXECUTOR_H

#include "PatchEntries.h"
#include "ctxc/Program/ModelEnds.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Reference/Reference.h"

namespace ctxc::reference {

class ReferenceRun : public Run {
public:
  ReferenceRun(int64_t capacity, size_t steps) : capacity(capacity), blocks(steps) {}
  int64_t size() const override { return positions.size(); }
  void truncate(int64_t count) override {
    positions.resize(std::min<int64_t>(count, size()));
    for (BlockState &block : blocks)
      block.truncate(size());
  }

  int64_t capacity;
  std::vector<int64_t> positions;
  std::vector<Input> sequence;    ///< of a bidirectional model: the tokens of its first call
  std::vector<BlockState> blocks; ///< one for each step of the program
};

/// Undoes a step of a run when it goes out of scope, unless it is kept:
/// the step failed, or was not to be appended.
class Rollback {
public:
  explicit Rollback(ReferenceRun &run) : run(run) {}
  ~Rollback() { run.truncate(run.size()); }
  void keep(llvm::ArrayRef<int64_t> positions) {
    run.positions.insert(run.positions.end(), positions.begin(), positions.end());
  }

private:
  ReferenceRun &run;
};

/// The model's values in one run.
using Values = llvm::DenseMap<mlir::Value, Matrix>;

llvm::SmallVector<Matrix> inputsOf(xf::LayerOp layer, const Values &values);
void setOutputs(xf::LayerOp layer, llvm::ArrayRef<Matrix> outputs, Values &values);
/// Shows a step's outputs: several residual streams side by side.
void observe(const LayerObserver &observer, const ProgramStep &step, bool isFirst,
             llvm::ArrayRef<Matrix> outputs);

class ReferenceExecutor : public Executor {
public:
  ReferenceExecutor(const Program &program, Weights &weights)
      : program(program), weights(weights), bidirectional(ctxc::isBidirectional(program)) {
    tryFunctions();
  }

  bool isBidirectional() const override { return bidirectional; }
  int64_t vocabulary() const override { return idsOf(program); }
  int64_t layers() const override { return program.layers; }
  std::optional<int64_t> embeddingWidth() const override { return ctxc::embeddingWidth(program); }

protected:
  std::unique_ptr<Run> makeRun(int64_t capacity) override {
    return std::make_unique<ReferenceRun>(capacity, program.steps.size());
  }
  llvm::Error copyState(const Run &given, Run &made) override {
    const auto &from = static_cast<const ReferenceRun &>(given);
    auto &to = static_cast<ReferenceRun &>(made);
    to.positions = from.positions;
    to.sequence = from.sequence;
    to.blocks = from.blocks;
    return llvm::Error::success();
  }
  llvm::Expected<Logits> computeLogits(Run &run, llvm::ArrayRef<Input> tokens,
                                       llvm::ArrayRef<int64_t> positions,
                                       const ForwardOptions &options) override;
  llvm::Expected<PatchStep> computePatch(Run &full, Run &reduced, const Input &token,
                                         int64_t position, const PatchOptions &options) override;
  llvm::Error computePatchEach(Run &full, Run &reduced, llvm::ArrayRef<Input> tokens,
                               llvm::ArrayRef<int64_t> positions, const PatchEachOptions &options,
                               PatchSink sink) override;
  llvm::Expected<Logits> computeHead(llvm::ArrayRef<double> vectors, int64_t count) override;

private:
  /// One token in both runs.
  struct Pair {
    ReferenceRun &full, &reduced;
    const Input &token;
    int64_t position;
    Values fullValues, reducedValues;
  };

  /// Finds by trials whether a part of a PyTorch program lets a token see those behind it, or
  /// depends on how many they are.
  void tryFunctions();
  llvm::Error checkStep(const ReferenceRun &run, llvm::ArrayRef<Input> tokens,
                        llvm::ArrayRef<int64_t> positions) const;
  llvm::Expected<std::vector<BlockPatch>> loadsOf(const ProgramStep &step,
                                                  const Patch &patch) const;
  llvm::Expected<std::vector<double>> logits(const Values &values,
                                             llvm::ArrayRef<int64_t> positions) const;
  llvm::Expected<llvm::SmallVector<Matrix>> embed(const ProgramStep &step,
                                                  llvm::ArrayRef<Input> inputs,
                                                  llvm::ArrayRef<int64_t> positions, Weights &from);
  llvm::Error runPlain(size_t step, ReferenceRun &run, Values &values, const Input &token,
                       int64_t position, Weights &from);
  llvm::Error runDual(size_t step, Pair &pair, bool materialize, PatchStep &result);

  Program program;
  Weights &weights;
  bool bidirectional;
  std::string obstacle; ///< what keeps all runs from being right; empty where nothing does
  const std::function<llvm::Error()> mayGoOn = [this] { return checkInterrupt(); };
};

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_REFERENCEEXECUTOR_H
