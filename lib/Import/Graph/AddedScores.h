// What an attention adds to its scores: masks, and what grows with the column.
#ifndef CTXC_IMPORT_ADDEDSCORES_H
#define CTXC_IMPORT_ADDEDSCORES_H

#include "AttentionPattern.h"
#include <cmath>

namespace ctxc::pt2 {

/// Collects it into a pattern, which is matched from the softmax inwards: its scale and its cap are
/// those of what is outside of the addition.
class AddedScores {
public:
  AddedScores(const TokenAxes &axes, const Numbers &numbers, AttentionPattern &found,
              std::string &obstacle)
      : axes(axes), numbers(numbers), found(found), obstacle(obstacle) {}

  /// Takes what is added to scores with `heads` as their axes before the last two, times `factor`:
  /// a mask, or what grows with the column (ALiBi), or both.
  bool add(mlir::Value added, double factor, llvm::ArrayRef<int64_t> heads);
  /// Takes the flags of a call of where or masked_fill, which leaves its operand where they do not
  /// hide it.
  bool masked(graph::CallOp call, double factor = 1);
  /// Puts the slopes before the scale, once it is known. Rounding goes through a factor that is a
  /// power of two alone.
  bool placeSlopes();
  /// The number by which `value` multiplies all scores that a token sees.
  std::optional<double> factorOfSeen(mlir::Value value) const;

private:
  bool hide(const Steps &added);
  bool addOfKeys(mlir::Value added, double factor);
  bool addSlopes(Slopes slopes, double factor);
  bool stop(graph::CallOp call) {
    if (obstacle.empty())
      obstacle = call ? call.getTarget().str() : "a value that is read";
    return false;
  }

  const TokenAxes &axes;
  const Numbers &numbers;
  AttentionPattern &found;
  std::string &obstacle;
  unsigned parts = 0;          ///< of what is added
  double greatest = -INFINITY; ///< of what hides a score
};

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_ADDEDSCORES_H
