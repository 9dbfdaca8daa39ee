//===- Facts.h - the vocabulary in which ops speak to the analyses --------===//
#ifndef CTXC_DIALECTS_XF_FACTS_H
#define CTXC_DIALECTS_XF_FACTS_H

#include <optional>
#include <string>
#include <vector>

namespace ctxc::xf {

/// What must hold of an op's data operand for its parameter to reach every
/// target.
enum class Obligation {
  None,            ///< a bias: nothing
  NonzeroVector,   ///< a matrix: u ≠ 0, each vector's along the last dimension
  NonzeroElements, ///< a scale: u_i ≠ 0 wherever the target differs
  NonzeroSum,      ///< a mixture: S = Σ u_i ≠ 0
  SameSelection    ///< a router: both runs select the same entries
};

/// What an assignment is for: F gets back the full run's values inside a block
/// (input controllability), G the full run's output (output controllability).
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

/// A condition of a link that can be solved: what must hold of one of its other operands.
struct LinkCondition {
  unsigned operand;
  Obligation kind;
  const char *lemma; ///< what it belongs to
};

/// How a change is split over the parts of a mixture (Lemma "output controllability of
/// mixture of experts").
enum class Split {
  Even,     ///< each part gets δ/S, S = Σ w_j, as in the paper
  LeastNorm ///< part j gets δ w_j l_j / Σ_i w_i² l_i: the smallest change of parameters
};

/// Where an entry (or a whole vector) can be zero, over all activations and
/// weights of the architecture.
///
///   Never  ⊂  NullSet  ⊂  OpenSet        (OpenSet is also "unknown")
enum class Zeros { Never, NullSet, OpenSet };

/// Facts of one value.
///   vector: where all entries are zero at once; elements: where single ones are and
///   the vector is not. (W relu(u) has no zero entries but where relu(u) = 0.)
///   bound: the value lies in a bounded set whatever its inputs: |entry| ≤ bound.
///   length: so does its L2 norm: ‖value‖ ≤ length (√d for an RMS norm's image).
///   floor: no entry is below it whatever the inputs (0 for a relu); ceiling: none is above.
///   Where the two are one number, that is what every entry is.
///   bothSigns: each entry is positive for some weights and activations (an open set of them)
///   and negative for others. False is also "unknown".
///   zeroSomewhere: each entry is surely zero on an open set, where OpenSet says that it may be.
///   free: each entry is moved by a number of its own in a stored parameter, so that sums of
///   entries vanish on a null set at most.
///   piecewise: not analytic in what it reads (a relu, a clamp, a choice). What is analytic is zero
///   everywhere or on a null set; what is not can be a constant on an open set.
///   levels: where known, the constants that entries of a piecewise value take on open sets; read
///   of the op that makes them, and not handed on.
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

  /// Every entry is `number`.
  static Facts constant(double number, std::string why = "");
  /// The number that every entry is; none where that is not known.
  std::optional<double> getConstant() const {
    return floor && ceiling && *floor == *ceiling ? floor : std::nullopt;
  }
  bool isZero() const { return bound && *bound == 0; }
  /// Whether no entry can be `number`.
  bool excludes(double number) const {
    return (floor && *floor > number) || (ceiling && *ceiling < number);
  }
};

/// A term of an op that is a sum: its operand `operand` times `factor`.
struct SumTerm {
  unsigned operand;
  double factor;
};

} // namespace ctxc::xf

#endif // CTXC_DIALECTS_XF_FACTS_H
