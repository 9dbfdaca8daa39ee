//===- Dense.h - products, Cholesky's decomposition, solves ---------------===//
//
// The linear algebra that fits over many rows need, with the processor's vector instructions. All
// matrices are row-major. Products with sums in float64 have the form A Bᵀ, so that both operands
// are read along their rows. Each number is computed in one order, for any number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_NUMERICS_DENSE_H
#define CTXC_NUMERICS_DENSE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>

namespace ctxc {

/// body(begin, end) over ranges that together cover [0, count) once, in any threads.
using ParallelRanges =
    llvm::function_ref<void(int64_t count, llvm::function_ref<void(int64_t, int64_t)> body)>;

/// c (m × n) = a (m × k) bᵀ, with b (n × k): products of float32, sums of a few hundred of them in
/// float32, and sums of these in float64.
void multiplyTransposed(const float *a, int64_t m, const float *b, int64_t n, int64_t k, double *c,
                        ParallelRanges parallel);
/// The same in float64.
void multiplyTransposed(const double *a, int64_t m, const double *b, int64_t n, int64_t k,
                        double *c, ParallelRanges parallel);

/// c (m × n) = a (m × k) b, with b (k × n) in float32, products and sums in float64.
void multiplyByFloats(const double *a, int64_t m, const float *b, int64_t n, int64_t k, double *c,
                      ParallelRanges parallel);

/// c (n × n) = a bᵀ for a and b (n × k) whose product is symmetric: only the triangle below the
/// diagonal is computed.
void multiplySymmetric(const float *a, const float *b, int64_t n, int64_t k, double *c,
                       ParallelRanges parallel);
void multiplySymmetric(const double *a, const double *b, int64_t n, int64_t k, double *c,
                       ParallelRanges parallel);

/// c (m × n) = a (m × k) bᵀ, with b (n × k), all in float32, each sum in the order of k: for
/// gradients, which need no higher precision.
void multiplyTransposed(const float *a, int64_t m, const float *b, int64_t n, int64_t k, float *c,
                        ParallelRanges parallel);
/// The same with b (k × n): c = a b.
void multiply(const float *a, int64_t m, const float *b, int64_t n, int64_t k, float *c,
              ParallelRanges parallel);

/// Replaces a (n × n), of which the lower triangle is read, by L with a = L Lᵀ, and Lᵀ above the
/// diagonal. Returns false if a is not positive definite; a is then overwritten.
bool factorCholesky(double *a, int64_t n, ParallelRanges parallel);

/// Each row x of `rows` (count × n) becomes a⁻¹ x, given what factorCholesky made of a.
void solveCholesky(const double *factor, int64_t n, double *rows, int64_t count,
                   ParallelRanges parallel);

} // namespace ctxc

#endif // CTXC_NUMERICS_DENSE_H
