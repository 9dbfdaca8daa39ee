// Products of large matrices, by several threads.
#ifndef CTXC_LIB_DISTIL_PRODUCTS_H
#define CTXC_LIB_DISTIL_PRODUCTS_H

#include "Regression.h"
#include "ctxc/Numerics/Dense.h"

namespace ctxc {

/// In blocks, since a large matrix is read across its rows.
inline FloatMatrix transposedOf(const FloatMatrix &matrix) {
  FloatMatrix made(matrix.cols(), matrix.rows());
  constexpr int64_t together = 64;
  for (int64_t at = 0; at < matrix.rows(); at += together) {
    const int64_t count = std::min(together, matrix.rows() - at);
    made.middleCols(at, count) = matrix.middleRows(at, count).transpose();
  }
  return made;
}

/// a b, in float32.
inline FloatMatrix product(const FloatMatrix &a, const FloatMatrix &b, const ParallelFor &threads) {
  FloatMatrix c(a.rows(), b.cols());
  multiply(a.data(), a.rows(), b.data(), b.cols(), a.cols(), c.data(), threads);
  return c;
}

/// a bᵀ, with sums in float64.
inline Matrix exactProduct(const FloatMatrix &a, const FloatMatrix &b, const ParallelFor &threads) {
  Matrix c(a.rows(), b.rows());
  multiplyTransposed(a.data(), a.rows(), b.data(), b.rows(), a.cols(), c.data(), threads);
  return c;
}

/// a aᵀ, with sums in float64.
inline Matrix gramOf(const FloatMatrix &a, const ParallelFor &threads) {
  Matrix c(a.rows(), a.rows());
  multiplySymmetric(a.data(), a.data(), a.rows(), a.cols(), c.data(), threads);
  return c;
}

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_PRODUCTS_H
