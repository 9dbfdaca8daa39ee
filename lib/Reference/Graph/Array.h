// An array of numbers as PyTorch has them: strided, so that views share their numbers. All kinds
// are kept as doubles; a complex entry is two.
#ifndef CTXC_LIB_REFERENCE_GRAPH_ARRAY_H
#define CTXC_LIB_REFERENCE_GRAPH_ARRAY_H

#include "ctxc/Reference/State.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>

namespace ctxc::reference {

/// In the order of PyTorch's promotion.
enum class Kind { Bool, Integer, Float, Complex };

using Shape = llvm::SmallVector<int64_t, 6>;
int64_t countOf(llvm::ArrayRef<int64_t> shape);

class Array {
public:
  Array() = default;
  /// Zeros.
  Array(Kind kind, llvm::ArrayRef<int64_t> shape);
  static Array filled(Kind kind, llvm::ArrayRef<int64_t> shape, double number);

  Kind kind() const { return itsKind; }
  llvm::ArrayRef<int64_t> shape() const { return sizes; }
  int64_t rank() const { return sizes.size(); }
  int64_t size(int64_t axis) const { return sizes[axis]; }
  int64_t count() const { return countOf(sizes); }
  bool isComplex() const { return itsKind == Kind::Complex; }

  /// Row-major and without gaps; a copy where it is not.
  Array contiguous() const;
  /// A row-major copy that nothing else shares.
  Array copied() const;
  /// The entries of a row-major array, in order; two numbers for each complex one.
  double *data() { return numbers->data() + offset * width(); }
  const double *data() const { return numbers->data() + offset * width(); }

  /// The number at `place` entries behind the first, and the imaginary part.
  double at(int64_t place) const { return (*numbers)[(offset + place) * width()]; }
  double imaginary(int64_t place) const {
    return isComplex() ? (*numbers)[(offset + place) * 2 + 1] : 0;
  }

  //===--------------------------------------------------------------------===//
  // Views
  //===--------------------------------------------------------------------===//

  /// The same entries in row-major order with other sizes, of the same count.
  Array viewed(llvm::ArrayRef<int64_t> shape) const;
  /// Axis i is axis order[i].
  Array permuted(llvm::ArrayRef<int64_t> order) const;
  /// Repeated along axes of one entry, and new ones in front. None where the shapes do not fit.
  std::optional<Array> expanded(llvm::ArrayRef<int64_t> shape) const;
  /// Entries start, start + step, … of an axis, `count` of them.
  Array sliced(int64_t axis, int64_t start, int64_t count, int64_t step = 1) const;
  Array selected(int64_t axis, int64_t index) const;
  Array unsqueezed(int64_t axis) const;
  /// All windows of `count` entries of an axis, `step` apart, along a new last axis.
  Array windows(int64_t axis, int64_t count, int64_t step) const;
  Array asReal() const;
  Array asComplex() const;
  /// The same entries as another kind: integers are truncated, booleans are "is not 0".
  Array as(Kind kind) const;

  llvm::ArrayRef<int64_t> strides() const { return steps; }

private:
  int64_t width() const { return isComplex() ? 2 : 1; }
  bool isContiguous() const;

  Kind itsKind = Kind::Float;
  Shape sizes, steps;
  int64_t offset = 0; ///< in entries, as steps
  std::shared_ptr<std::vector<double>> numbers;
};

/// Calls `visit` with the place of each entry of `array`, in row-major order.
void eachPlace(const Array &array, llvm::function_ref<void(int64_t)> visit);

/// The shape that two shapes have together; none where they do not fit.
std::optional<Shape> broadcast(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_GRAPH_ARRAY_H
