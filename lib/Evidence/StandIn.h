// Blocks that the float64 reference can run, in the place of blocks that it cannot.
#ifndef CTXC_LIB_EVIDENCE_STANDIN_H
#define CTXC_LIB_EVIDENCE_STANDIN_H

#include "dialects/XF/XF.h"

namespace ctxc {

/// Puts an attention over all that it reads in the place of each contextual op without a meaning in
/// the reference: its result then varies with its token and with the tokens before, as a contextual
/// op's does in general. What cannot be replaced is left. The reference's models must be
/// registered.
void replaceUnknownContext(xf::BlockOp block);

} // namespace ctxc

#endif // CTXC_LIB_EVIDENCE_STANDIN_H
