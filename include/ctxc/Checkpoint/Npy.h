//===- Npy.h - reads a matrix from a NumPy file ---------------------------===//
//
// The .npy format, versions 1.0 to 3.0, as `numpy.save` writes it: a header that is a Python
// dictionary, then the numbers. The reader is strict: it refuses everything but a plain matrix of
// floats, and the error names what it found.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_NPY_H
#define CTXC_CHECKPOINT_NPY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace ctxc {

struct NpyMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> numbers; ///< row-major
  llvm::ArrayRef<double> row(int64_t index) const {
    return llvm::ArrayRef<double>(numbers).slice(index * columns, columns);
  }
};

/// Reads the matrix (rows, columns) in `path`: float16, float32 or float64, of either byte order,
/// in C order, at least one row and one column. Errors, each `path: …`: no .npy file, another
/// version, a header that is not what NumPy writes, Fortran order, another type or number of
/// dimensions, fewer or more bytes than the shape says, a number that is not finite.
llvm::Expected<NpyMatrix> readNpyMatrix(llvm::StringRef path);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_NPY_H
