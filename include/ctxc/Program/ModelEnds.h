//===- ModelEnds.h - what a model takes and what it gives --------------------===//
#ifndef CTXC_PROGRAM_MODELENDS_H
#define CTXC_PROGRAM_MODELENDS_H

#include "ctxc/Program/Program.h"

namespace ctxc {

/// The attribute of an xf.model that gives no logits of tokens, but a vector for each token: its
/// last hidden state.
constexpr llvm::StringLiteral headlessName = "headless";

inline bool isHeadless(xf::ModelOp model) { return model->hasAttr(headlessName); }
bool isHeadless(const Program &program);

/// Ids of tokens are below it: the rows of the tables that the model reads tokens from. Without a
/// table, as many as it gives numbers.
int64_t idsOf(const Program &program);

} // namespace ctxc

#endif // CTXC_PROGRAM_MODELENDS_H
