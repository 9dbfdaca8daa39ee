//===- Readings.h - how matrices are read for a token -----------------------===//
//
// If only one or two vectors (a token's, of one run or two) are multiplied with a matrix, the time
// is bound by memory, and the fastest way to read it differs between processors. No sum depends on
// the way (Contraction.h), so that it may be chosen by measurement (ctxc/Runtime/Tune.h).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_READINGS_H
#define CTXC_LOWERING_READINGS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace ctxc {

/// How a thread reads its rows of a matrix.
struct Reading {
  /// The number of parts of the rows that are read side by side, one row of each at a time: 1, 2, 4
  /// or 8. If the registers do not hold the sums of so many rows, fewer are read.
  int64_t streams = 2;
  /// Cache lines of the matrix are prefetched 4 KB ahead.
  bool asksAhead = false;

  bool operator==(const Reading &other) const {
    return streams == other.streams && asksAhead == other.asksAhead;
  }
  /// "2", or "2+" with prefetch.
  std::string text() const;
};

/// The readings of all kinds of matrices. Rows are *long* if the vectors that they are multiplied
/// with do not stay in the first-level cache beside them: from `longFrom` bytes of float32 on.
/// Matrices that are stored as (in, out) are always read in one way.
struct Readings {
  Reading f32, half;       ///< short rows
  Reading blocks, kBlocks; ///< quantised rows of any length: blocks of 32 and of 256 numbers
  Reading longF32 = {8, true}, longHalf = {8, true};
  int64_t longFrom = 9 << 10;

  /// For processors that need prefetch for all rows, as measured on a Sapphire Rapids.
  static Readings ahead();
  /// For other processors with AVX-512, as measured on a Zen 4: in four streams, with prefetch only
  /// where rows are long. With two, two vectors took up to an eighth longer.
  static Readings ofSixteenLanes();
  /// For processors with AVX2 alone, as measured on a Zen 3: a sum has one register of eight lanes,
  /// and more streams are needed until an addition need not wait for the one before it.
  static Readings ofEightLanes();

  /// The kinds by their names in the text.
  struct Kind {
    llvm::StringLiteral name;
    Reading Readings::*member;
  };
  static llvm::ArrayRef<Kind> kinds();

  bool operator==(const Readings &other) const;
  bool operator!=(const Readings &other) const { return !(*this == other); }
  /// "f32:2,half:2+,blocks:2+,k-blocks:2+,long-f32:8+,long-half:8+,long-from:9216"
  std::string text() const;
  /// What the text leaves out has its default. Errors: an unknown kind, another number of streams,
  /// a number of bytes that is none or not positive.
  static llvm::Expected<Readings> parse(llvm::StringRef text);
};

} // namespace ctxc

#endif // CTXC_LOWERING_READINGS_H
