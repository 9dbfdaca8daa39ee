// Runs one block in numbers: float64, op by op through the reference, on random weights.
#ifndef CTXC_LIB_PROOF_NUMBERS_H
#define CTXC_LIB_PROOF_NUMBERS_H

#include "Flow.h"
#include "ctxc/Reference/Evaluation.h"

namespace ctxc::proof {

using reference::Evaluation;
using reference::Matrix;
using Vector = Eigen::VectorXd;

/// SplitMix64 and Box and Muller's method: the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 1) {}
  double uniform();
  double normal();
  Matrix normal(int64_t rows, int64_t columns);

private:
  uint64_t state;
};

/// The activations of a replay: a context and one token after it, a matrix for each input.
struct Activations {
  llvm::SmallVector<Matrix> context, full, reduced;
};

/// One token of a run with all its values.
class BlockRun {
public:
  BlockRun(Weights &weights, xf::LayerOp layer, int64_t first, int64_t count,
           reference::BlockState &state,
           const llvm::StringMap<reference::StoredTensor> &parameters);
  BlockRun(const BlockRun &) = delete;

  std::vector<int64_t> tokens, positions;
  reference::Environment environment;
  Evaluation values;
};

/// The runs of a block: full, reduced, and reduced with other parameters.
class Numbers {
public:
  static constexpr int64_t contextSize = 3;

  Numbers(const Structure &structure, const Flow &flow, int64_t seed);

  /// Multiplies a parameter, or the context, by `factor` in all runs.
  llvm::Error scale(llvm::StringRef what, double factor);
  llvm::Expected<std::unique_ptr<BlockRun>> full();
  llvm::Expected<std::unique_ptr<BlockRun>> reduced();

  /// A parameter's present numbers; what is written to them is used in later runs.
  llvm::Expected<std::vector<double> *> parameter(xf::ParamOp param);

  Weights &weights() { return *random; }
  /// The block's outputs, those of `which`, one after the other.
  Vector outputs(const BlockRun &run, llvm::ArrayRef<int64_t> which) const;
  /// The largest number of the outputs, and of all values.
  double largest(const BlockRun &run) const;

private:
  llvm::Error evaluate(BlockRun &run, llvm::ArrayRef<Matrix> inputs, reference::BlockState &state,
                       uint64_t stream);

  const Structure &structure;
  const Flow &flow;
  int64_t seed;
  std::unique_ptr<Weights> random;
  Activations sample;
  std::map<std::string, std::vector<double>> changed;
  llvm::StringMap<reference::StoredTensor> stored; ///< views of `changed`
  std::vector<std::unique_ptr<reference::BlockState>> states;
};

/// How many numbers the block's parameters have.
int64_t countNumbers(xf::BlockOp block);

/// Registers the ops' meanings, if that has not been done.
void needReference(xf::BlockOp block);

} // namespace ctxc::proof

#endif // CTXC_LIB_PROOF_NUMBERS_H
