// What the steps of a refinement change.
#ifndef CTXC_LIB_DISTIL_VARIABLE_H
#define CTXC_LIB_DISTIL_VARIABLE_H

#include "ctxc/Program/Adapter.h"
#include <cmath>

namespace ctxc {

/// Divides the change's singular values between both factors, so that a step moves either as much.
/// The product stays, but for rounding. A change whose rank is larger than one of its sides is left
/// as it is.
void balance(MatrixChange &change);

inline double rootMeanSquare(const std::vector<float> &numbers) {
  double squares = 0;
  for (float x : numbers)
    squares += double(x) * x;
  return std::sqrt(squares / std::max<size_t>(numbers.size(), 1));
}

/// Numbers that the steps change, with what Adam remembers of their gradients.
class Variable {
public:
  /// A first step has the size of `rate` times the numbers' root mean square, or, where that is
  /// zero, times `otherwise`.
  Variable(std::vector<float> &numbers, double rate, double otherwise = 0) : numbers(&numbers) {
    const double mean = rootMeanSquare(numbers);
    size = rate * (mean > 0 ? mean : otherwise);
    gradient.assign(numbers.size(), 0);
    this->mean = square = gradient;
  }
  template <typename Numbers> void add(const Numbers &more) {
    for (size_t i = 0; i < gradient.size(); ++i)
      gradient[i] += more.data()[i];
  }
  /// Step `step`, from 1 on, of a length relative to the numbers' size.
  void move(int64_t step, double length) {
    constexpr double first = 0.9, second = 0.99, least = 1e-12;
    const double ofMean = 1 - std::pow(first, step), ofSquare = 1 - std::pow(second, step);
    for (size_t i = 0; i < gradient.size(); ++i) {
      mean[i] = first * mean[i] + (1 - first) * gradient[i];
      square[i] = second * square[i] + (1 - second) * gradient[i] * gradient[i];
      (*numbers)[i] -=
          float(length * size * (mean[i] / ofMean) / (std::sqrt(square[i] / ofSquare) + least));
      gradient[i] = 0;
    }
  }

private:
  std::vector<float> *numbers;
  double size;
  std::vector<double> gradient, mean, square;
};

} // namespace ctxc

#endif // CTXC_LIB_DISTIL_VARIABLE_H
