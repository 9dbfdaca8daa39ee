//===- Facts.h - how ops describe themselves to the analyses --------------===//
#ifndef CTXC_DIALECTS_XF_FACTS_H
#define CTXC_DIALECTS_XF_FACTS_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ctxc::xf {

/// The condition on an op's data operand under which its parameter can reach every target.
enum class Obligation {
  None,            ///< a bias: nothing
  NonzeroVector,   ///< a matrix: u ≠ 0, each vector's along the last dimension
  NonzeroElements, ///< a scale: u_i ≠ 0 wherever the target differs
  NonzeroSum,      ///< a mixture: S = Σ u_i ≠ 0
  FiniteElements,  ///< a divisor: u_i < ∞, where any data gives zero
  SameSelection    ///< a router: both runs select the same entries
};

/// The purpose of an assignment: F restores the full run's values inside a block (input
/// controllability), G the full run's output (output controllability).
enum class ControlRole { Input, Output };

/// The form of a parameter's change.
enum class ChangeForm {
  Rank1, ///< ΔW = u vᵀ
  Delta  ///< of the parameter's own shape
};

/// How an op can be solved for one operand.
enum class Solvability {
  Exact,       ///< always
  Conditional, ///< under the op's conditions on its other operands
  No           ///< its image is not the whole space
};

/// A condition under which a link can be solved, on one of its other operands.
struct LinkCondition {
  unsigned operand;
  Obligation kind;
  const char *lemma; ///< the paper's lemma
};

/// How a change is split over the parts of a mixture (Lemma "output controllability of
/// mixture of experts").
enum class Split {
  Even,     ///< each part gets δ/S, S = Σ w_j, as in the paper
  LeastNorm ///< part j gets δ w_j l_j / Σ_i w_i² l_i: the smallest change of parameters
};

/// Where an entry (or a whole vector) can be zero, over all activations and all weights of the
/// architecture.
///
///   Never  ⊂  NullSet  ⊂  OpenSet        (OpenSet is also "unknown")
enum class Zeros { Never, NullSet, OpenSet };

/// Facts of one value.
///   vector: where all entries are zero at once; elements: where single entries are zero and
///     the vector is not. (W relu(u) has zero entries only where relu(u) = 0.)
///   bound: the value is bounded for all inputs: |entry| ≤ bound.
///   length: so is its L2 norm: ‖value‖ ≤ length (√d for the image of an RMS norm).
///   floor: no entry is below it, for all inputs (0 for a relu); ceiling: no entry is above it.
///     If the two are equal, every entry is that number.
///   bothSigns: each entry is positive for some weights and activations (an open set of them)
///     and negative for others. False also means "unknown".
///   zeroSomewhere: each entry is certainly zero on an open set; OpenSet only says that it may be.
///   free: each entry depends on its own number in a stored parameter, so that sums of entries
///     vanish at most on a null set.
///   piecewise: not analytic in its inputs (a relu, a clamp, a choice). An analytic value is zero
///     everywhere or on a null set; any other can be constant on an open set.
///   levels: if known, the constants that entries of a piecewise value take on open sets. Only the
///     op that computes the value states them; they are not propagated.
///   limits: numbers that entries are rounded to on open sets, although hardly any is equal to
///   them:
///     0 where they underflow (an exponential, the lower tail of a gelu), ±1 for tanh; NaN is a
///     number that is not known. The facts of operands come without these, and what most ops make
///     of them is found for all (Saturation.h).
///   zeroedBy: so many numbers, when they underflow at once, take all entries of a vector to zero:
///     one where it is a factor of all, and else as many as there are entries; 0 where entries are
///     not rounded to zero.
///   growth: entries grow as this power of the block's inputs at most, or as an exponential.
///   numbers: the entries of a setting whose value is known.
///   total: the entries of a vector add up to this, whatever the op reads. Only the op that
///   computes
///     the value states it; it is not propagated.
///   why: the op's words for the fact, for diagnostics.
struct Facts {
  Zeros elements = Zeros::OpenSet;
  Zeros vector = Zeros::OpenSet;
  std::optional<double> bound = std::nullopt;
  std::string why = "";
  std::optional<double> length = std::nullopt;
  std::optional<double> floor = std::nullopt;
  bool bothSigns = false;
  bool zeroSomewhere = false;
  std::optional<double> ceiling = std::nullopt;
  bool free = false;
  bool piecewise = false;
  std::optional<std::vector<double>> levels = std::nullopt;
  std::vector<double> limits = {};
  int64_t zeroedBy = 0;
  double growth = 1;
  std::shared_ptr<const std::vector<double>> numbers = nullptr;
  std::optional<double> total = std::nullopt;

  /// Facts of a value whose entries are all `number`.
  static Facts constant(double number, std::string why = "");
  /// The number that all entries equal; none if it is not known.
  std::optional<double> getConstant() const {
    return floor && ceiling && *floor == *ceiling ? floor : std::nullopt;
  }
  bool isZero() const { return bound && *bound == 0; }
  /// Whether entries are rounded to zero on an open set.
  bool underflows() const;
  /// Whether entries, to the power `power`, are infinite for inputs of a few hundred.
  bool overflows(int power = 1) const { return growth * power >= 16; }
  /// Whether all entries of a vector are rounded to zero at once, by few numbers (BlockFacts.h).
  bool vanishes() const;
  /// Whether no entry can be `number`.
  bool excludes(double number) const {
    return (floor && *floor > number) || (ceiling && *ceiling < number);
  }
};

/// One term of a sum: the operand `operand` times `factor`.
struct SumTerm {
  unsigned operand;
  double factor;
};

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_FACTS_H
