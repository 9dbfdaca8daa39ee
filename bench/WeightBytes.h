//===- WeightBytes.h - how many bytes of weights a token needs ------------===//
#ifndef CTXC_BENCH_WEIGHTBYTES_H
#define CTXC_BENCH_WEIGHTBYTES_H

#include "ctxc/Program/Program.h"

namespace ctxc::bench {

/// The stored bytes of all parameters that a plain forward of one token reads: of a table only the
/// row that is looked up, of experts only those that are selected.
int64_t weightBytes(const Program &program);

} // namespace ctxc::bench

#endif // CTXC_BENCH_WEIGHTBYTES_H
