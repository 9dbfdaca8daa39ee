//===- Mask.h - which tokens a mask of scores lets a token see --------------===//
//
// A mask is a value of (…, tokens, tokens) that depends on positions alone. Its entry at row i and
// column j is followed through the ops that make it, as one of two things:
//
//   line       r i + c j + k      what counts positions
//   steps      f(i − j)           piecewise constant: what comparisons of lines give
//
// so that what is found holds of any number of tokens. The tokens of a run are those of one
// sequence, with consecutive positions.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_MASK_H
#define CTXC_IMPORT_MASK_H

#include "GraphValues.h"
#include "Steps.h"
#include "ctxc/Analysis/TokenAxes.h"

namespace ctxc::pt2 {

/// What a mask adds to scores, or a flag of it, for each i − j; none where it is another function,
/// or of an op that is not known here, which `obstacle` then names.
std::optional<Steps> stepsOf(mlir::Value mask, const TokenAxes &axes, const Numbers &numbers,
                             std::string &obstacle);

/// What is added to scores by the column (ALiBi): m j for each head, but for what is the same for
/// all columns.
struct Slopes {
  llvm::SmallVector<double> ofHeads;
  /// Where it is not 0: this times the products of m and j, where j and the products are rounded to
  /// bfloat16.
  double rounded = 0;
};
/// Of what is added to scores whose axes before the last two are `heads`; none as above.
std::optional<Slopes> slopesOf(mlir::Value added, llvm::ArrayRef<int64_t> heads,
                               const TokenAxes &axes, const Numbers &numbers,
                               std::string &obstacle);

/// The number that each entry of `value` is, for any token; none where they differ, or depend on
/// what is read.
std::optional<double> numberIn(mlir::Value value, const TokenAxes &axes);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_MASK_H
