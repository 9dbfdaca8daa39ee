//===- JointVerdict.h - can one change serve several tokens? ---------------===//
//
// A verdict is about one token: each has a patch of its own. Whether one change of a layer can be
// exact for several tokens at once is another question (docs/joint.md): a matrix can serve as many
// as it reads numbers, a vector one.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_EVIDENCE_JOINTVERDICT_H
#define CTXC_EVIDENCE_JOINTVERDICT_H

#include "ctxc/Planning/ModelCheck.h"

namespace ctxc {

/// Judges the group anew, if its verdict is a success: is there one change of each of its layers
/// that is exact for `tokens` tokens at once? Where a matrix has room for them, the verdict stays,
/// and its remark names the matrix. Where a vector is all that a patch may change, and the change
/// that one token needs is measured to be wrong for another, it becomes a rejection with these
/// numbers. Otherwise it becomes undecided.
void judgeJointly(VerdictGroup &group, int64_t tokens);

} // namespace ctxc

#endif // CTXC_EVIDENCE_JOINTVERDICT_H
