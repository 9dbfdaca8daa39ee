//===- Readings.h - how matrices are read for a token -----------------------===//
//
// Where few vectors are multiplied with a matrix (a token's, of one run or two), memory sets the
// time, and processors differ in how it is read fastest. No sum depends on that (Contraction.h), so
// that it may be chosen by measurement (ctxc/Runtime/Tune.h).
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
  /// So many parts of the rows are read side by side, one row of each at a time: 1, 2, 4 or 8.
  /// Where the registers do not hold the sums of as many, fewer are.
  int64_t streams = 2;
  /// Lines of the matrix are asked for 4 KB before they are read.
  bool asksAhead = false;

  bool operator==(const Reading &other) const {
    return streams == other.streams && asksAhead == other.asksAhead;
  }
  /// "2", or "2+" where it asks ahead.
  std::string text() const;
};

/// The readings of all kinds of matrices. Those whose rows are *long* are multiplied with vectors
/// that do not stay in the first-level cache beside them. Of matrices that are stored as (in, out)
/// there is one way of reading.
struct Readings {
  Reading f32, half;       ///< short rows
  Reading blocks, kBlocks; ///< quantised, however long: blocks of 32 and of 256 numbers
  Reading longF32 = {8, true}, longHalf = {8, true};

  /// Those of processors that are to be asked for all lines ahead, as measured on a Sapphire
  /// Rapids.
  static Readings ahead();

  /// The kinds by their names in the text.
  struct Kind {
    llvm::StringLiteral name;
    Reading Readings::*member;
  };
  static llvm::ArrayRef<Kind> kinds();

  bool operator==(const Readings &other) const;
  bool operator!=(const Readings &other) const { return !(*this == other); }
  /// "f32:2,half:2+,blocks:2+,k-blocks:2+,long-f32:8+,long-half:8+"
  std::string text() const;
  /// Kinds that the text leaves out are as by default. Errors: an unknown kind, another number of
  /// streams.
  static llvm::Expected<Readings> parse(llvm::StringRef text);
};

} // namespace ctxc

#endif // CTXC_LOWERING_READINGS_H
