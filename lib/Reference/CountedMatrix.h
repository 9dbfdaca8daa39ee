// A matrix of random numbers that nobody stores: a counter makes each entry when it is read. Most
// entries of a large one are zero, so that a product with it takes no longer than its vectors do.
// Each row and each column has some that are not, at places that wind around the matrix.
#ifndef CTXC_LIB_REFERENCE_COUNTEDMATRIX_H
#define CTXC_LIB_REFERENCE_COUNTEDMATRIX_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace ctxc::reference {

class CountedMatrix {
public:
  CountedMatrix(uint64_t counter, int64_t rows, int64_t columns);

  /// Entries of each row that are not zero.
  int64_t perRow() const { return each; }
  /// The column of entry `i` of these.
  int64_t column(int64_t row, int64_t i) const {
    int64_t column = start(row) + i;
    return column < columns ? column : column - columns;
  }
  /// Its number: of expectation 0 and variance 1 / perRow().
  double number(int64_t row, int64_t i) const;
  /// Columns first, first + 1, … of a row into all of `to`.
  void read(int64_t row, int64_t first, llvm::MutableArrayRef<double> to) const;

private:
  int64_t start(int64_t row) const;

  uint64_t counter;
  int64_t rows, columns, each;
  double size;
};

/// The counter of entry `index` of what has `counter`.
uint64_t counterOf(uint64_t counter, uint64_t index);

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_COUNTEDMATRIX_H
