//===- AtenOps.h - what is known of PyTorch's ops -------------------------===//
//
// The rows of AtenOps.def, as far as several rooms ask for them.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DIALECTS_GRAPH_ATENOPS_H
#define CTXC_DIALECTS_GRAPH_ATENOPS_H

#include "dialects/Graph/Graph.h"

namespace ctxc::graph {

/// What an entry of an op's result is made of.
enum class AtenKind {
  Copies,  ///< the operand's entry in the same place, perhaps as another type
  Views,   ///< the operand's entries in the same order, perhaps each several times
  Moves,   ///< an entry of an operand, in another place
  Makes,   ///< numbers that are counted, constant, or places of others
  Entries, ///< a function of the operands' entries in its place
  Joins,   ///< a function of several entries of an operand
};

struct AtenOp {
  llvm::StringRef name;
  AtenKind kind;
  bool isGeneric; ///< loses nothing that varies in general
  /// The function of an entry, or of two entries in the same place; null where it is none.
  double (*function)(double) = nullptr;
  double (*ofTwo)(double, double) = nullptr;

  /// Whether each entry of the result is one of the operands'.
  bool keepsNumbers() const {
    return kind == AtenKind::Copies || kind == AtenKind::Views || kind == AtenKind::Moves;
  }
};

/// The row of an op of PyTorch by its name without overload; null where there is none.
const AtenOp *atenOp(llvm::StringRef name);
/// The row of `call`'s op; null where it is none of PyTorch's, or has no row.
const AtenOp *atenOp(CallOp call);

} // namespace ctxc::graph

#endif // CTXC_DIALECTS_GRAPH_ATENOPS_H
