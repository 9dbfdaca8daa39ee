//===- Softmax.h - exponentials of rows of logits, in vectors -------------===//
//
// Logits are as wide as a vocabulary, and the exponential of the C library takes one number at a
// time; these functions compute vectors. The results are the same bits on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_SOFTMAX_H
#define CTXC_NUMERICS_SOFTMAX_H

#include <cstdint>

namespace ctxc {

/// exponentials[k] = exp(x[k] − shift), within two units in the last place, where shift is not
/// below any x[k]; 0 below 1e-307, and NaN for NaN. Returns their sum.
double exponentials(const float *x, int64_t size, double shift, double *exponentials);

/// The same in float32, each with its own shift: x[k] becomes exp(x[k] − shifts[k]), within three
/// units in the last place; 0 below 1e-37.
void exponentiate(float *x, const float *shifts, int64_t size);

/// Σ weights[k] (a[k] − b[k]).
double sumOfDifferences(const double *weights, const float *a, const float *b, int64_t size);

} // namespace ctxc

#endif // CTXC_NUMERICS_SOFTMAX_H
