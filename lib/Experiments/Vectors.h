#ifndef CTXC_LIB_EXPERIMENTS_VECTORS_H
#define CTXC_LIB_EXPERIMENTS_VECTORS_H

#include "ctxc/Experiments/ImplicitGradient.h"

namespace ctxc::experiments {

inline double dot(const Vector &a, const Vector &b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k)
    sum += a[k] * b[k];
  return sum;
}

inline Vector minus(const Vector &a, const Vector &b) {
  Vector result(a.size());
  for (size_t k = 0; k < a.size(); ++k)
    result[k] = a[k] - b[k];
  return result;
}

inline void add(Vector &to, const Vector &a) {
  for (size_t k = 0; k < a.size(); ++k)
    to[k] += a[k];
}

} // namespace ctxc::experiments

#endif
