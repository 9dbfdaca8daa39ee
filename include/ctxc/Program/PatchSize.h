//===- PatchSize.h - how large a patch may be -----------------------------===//
//
// Where something that should be zero is a rounding, a patch divides by it: the patch then repeats
// whatever error it was made with, and shows nothing. No such patch counts as one, whoever looks at
// it: a trial of a plan, the replay of a proof, `ctxc patch` and `ctxc verify`.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_PATCHSIZE_H
#define CTXC_PROGRAM_PATCHSIZE_H

namespace ctxc {

/// The largest ‖Δp‖ / ‖p‖ of a parameter (of one that is 0: ‖Δp‖): a larger patch leaves no digit
/// of its parameter in float32.
constexpr double largestRelativeNorm = 1e7;

/// Whether a patch of this relative norm is one; not if the norm is not finite.
constexpr bool isPatchOfSize(double relativeNorm) { return relativeNorm <= largestRelativeNorm; }

} // namespace ctxc

#endif // CTXC_PROGRAM_PATCHSIZE_H
