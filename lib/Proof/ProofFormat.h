// A proof's file: JSON, one line for each instance, in the order of the theorem's proof.
#ifndef CTXC_LIB_PROOF_PROOFFORMAT_H
#define CTXC_LIB_PROOF_PROOFFORMAT_H

#include "llvm/ADT/StringRef.h"

namespace ctxc::proof {

inline constexpr llvm::StringLiteral proofFormat = "ctxc-proof";
inline constexpr int64_t proofVersion = 1;

} // namespace ctxc::proof

#endif // CTXC_LIB_PROOF_PROOFFORMAT_H
