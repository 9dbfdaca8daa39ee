//===- JoinExperts.h - experts that a program computes one by one ----------===//
//
//   s = gate(x)     y = Σ_e s_e f(x; θ_e)     of which s_e is 0 but for the selected e
//
// is computed for the selected ones alone: with the banks θ_*, each parameter of which stands for
// those of all experts. A selected expert can be patched, while a term of the sum over all is
// divided by a gate that is 0 for most tokens.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_JOINEXPERTS_H
#define CTXC_IMPORT_JOINEXPERTS_H

#include "dialects/XF/XF.h"

namespace ctxc::pt2 {

/// Joins the experts of each sum of `block` that has a term for every entry of a gate, where they
/// differ in nothing but the number in their parameters' names. `mayJoin` says whether a parameter
/// can be a part of a bank.
void joinExperts(xf::BlockOp block, llvm::function_ref<bool(xf::ParamOp)> mayJoin);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_JOINEXPERTS_H
