#include "Array.h"
#include <cmath>

using namespace ctxc::reference;
using llvm::ArrayRef;

int64_t ctxc::reference::countOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

static Shape rowMajor(ArrayRef<int64_t> shape) {
  Shape steps(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i])
    steps[i] = step;
  return steps;
}

Array::Array(Kind kind, ArrayRef<int64_t> shape)
    : itsKind(kind), sizes(shape), steps(rowMajor(shape)),
      numbers(std::make_shared<std::vector<double>>(countOf(shape) * width())) {}

Array Array::filled(Kind kind, ArrayRef<int64_t> shape, double number) {
  Array result(kind, shape);
  for (int64_t i = 0, n = result.count(); i < n; ++i)
    result.data()[i * result.width()] = number;
  return result;
}

bool Array::isContiguous() const {
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i])
    if (sizes[i] != 1 && steps[i] != step)
      return false;
  return true;
}

void ctxc::reference::eachPlace(const Array &array, llvm::function_ref<void(int64_t)> visit) {
  int64_t count = array.count();
  Shape index(array.rank(), 0);
  int64_t place = 0;
  for (int64_t i = 0; i < count; ++i) {
    visit(place);
    for (int64_t axis = array.rank(); axis-- > 0;) {
      place += array.strides()[axis];
      if (++index[axis] < array.size(axis))
        break;
      place -= index[axis] * array.strides()[axis];
      index[axis] = 0;
    }
  }
}

Array Array::copied() const {
  Array result(itsKind, sizes);
  double *to = result.data();
  eachPlace(*this, [&](int64_t place) {
    *to++ = at(place);
    if (isComplex())
      *to++ = imaginary(place);
  });
  return result;
}

Array Array::contiguous() const { return isContiguous() ? *this : copied(); }

Array Array::viewed(ArrayRef<int64_t> shape) const {
  Array result = contiguous();
  result.sizes.assign(shape.begin(), shape.end());
  result.steps = rowMajor(shape);
  return result;
}

Array Array::permuted(ArrayRef<int64_t> order) const {
  Array result = *this;
  for (size_t i = 0; i < order.size(); ++i) {
    result.sizes[i] = sizes[order[i]];
    result.steps[i] = steps[order[i]];
  }
  return result;
}

std::optional<Array> Array::expanded(ArrayRef<int64_t> shape) const {
  if (int64_t(shape.size()) < rank())
    return std::nullopt;
  Array result = *this;
  result.sizes.assign(shape.begin(), shape.end());
  result.steps.assign(shape.size(), 0);
  int64_t added = shape.size() - rank();
  for (int64_t i = 0; i < rank(); ++i) {
    if (sizes[i] != shape[added + i] && sizes[i] != 1)
      return std::nullopt;
    result.steps[added + i] = sizes[i] == shape[added + i] ? steps[i] : 0;
  }
  return result;
}

Array Array::sliced(int64_t axis, int64_t start, int64_t count, int64_t step) const {
  Array result = *this;
  result.offset += count ? start * steps[axis] : 0;
  result.sizes[axis] = count;
  result.steps[axis] *= step;
  return result;
}

Array Array::selected(int64_t axis, int64_t index) const {
  Array result = sliced(axis, index, 1);
  result.sizes.erase(result.sizes.begin() + axis);
  result.steps.erase(result.steps.begin() + axis);
  return result;
}

Array Array::unsqueezed(int64_t axis) const {
  Array result = *this;
  result.sizes.insert(result.sizes.begin() + axis, 1);
  result.steps.insert(result.steps.begin() + axis, 0);
  return result;
}

Array Array::windows(int64_t axis, int64_t count, int64_t step) const {
  Array result = *this;
  result.sizes[axis] = (sizes[axis] - count) / step + 1;
  result.steps[axis] *= step;
  result.sizes.push_back(count);
  result.steps.push_back(steps[axis]);
  return result;
}

Array Array::asReal() const {
  Array result = *this;
  result.itsKind = Kind::Float;
  result.offset *= 2;
  for (int64_t &step : result.steps)
    step *= 2;
  result.sizes.push_back(2);
  result.steps.push_back(1);
  return result;
}

Array Array::asComplex() const {
  Array result = copied();
  result.itsKind = Kind::Complex;
  result.sizes.pop_back();
  result.steps = rowMajor(result.sizes);
  return result;
}

Array Array::as(Kind kind) const {
  if (kind == itsKind)
    return *this;
  Array result(kind, sizes);
  double *to = result.data();
  eachPlace(*this, [&](int64_t place) {
    double number = at(place);
    *to = kind == Kind::Bool      ? number != 0 || imaginary(place) != 0
          : kind == Kind::Integer ? std::trunc(number)
                                  : number;
    to += result.width();
  });
  return result;
}

std::optional<Shape> ctxc::reference::broadcast(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (ArrayRef<int64_t> shape : {a, b}) {
    int64_t added = result.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t &size = result[added + i];
      if (size != shape[i] && size != 1 && shape[i] != 1)
        return std::nullopt;
      size = size == 1 ? shape[i] : size;
    }
  }
  return result;
}
