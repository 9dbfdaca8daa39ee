// One call of an op of PyTorch, as its meaning sees it: arguments by the names of the op's schema,
// tensors as arrays, sizes as numbers. What is asked for and is not there, or is of another kind,
// makes the call fail; a meaning goes on with something harmless, and is not asked for its result.
#ifndef CTXC_LIB_REFERENCE_GRAPH_CALLS_H
#define CTXC_LIB_REFERENCE_GRAPH_CALLS_H

#include "Array.h"
#include "dialects/Graph/Graph.h"
#include "llvm/Support/Error.h"

namespace ctxc::reference {

/// What a program's sizes and counted positions are.
struct Tokens {
  llvm::StringRef symbol;
  int64_t count = 0;
  llvm::ArrayRef<int64_t> positions;
  bool counted = false; ///< the program has no positions as input: where it counts tokens, these
};

/// The value of a size as the dialect writes it: a number, or an expression of the tokens' symbol
/// ("Mul(2, s0)"). None of any other.
std::optional<int64_t> sizeOf(mlir::Attribute size, const Tokens &tokens);

class Call {
public:
  Call(graph::CallOp op, llvm::ArrayRef<Array> operands, const Tokens &tokens)
      : op(op), operands(operands), itsTokens(tokens) {}

  llvm::StringRef name() { return op.getBaseName(); }
  bool has(llvm::StringRef name) { return bool(op.getArgument(name)); }
  bool isTensor(llvm::StringRef name) { return bool(op.getTensor(name)); }
  const Tokens &tokens() const { return itsTokens; }

  Array tensor(llvm::StringRef name);
  std::optional<Array> optional(llvm::StringRef name);
  /// The tensors of a list; none for those that were not given.
  llvm::SmallVector<std::optional<Array>> tensors(llvm::StringRef name);
  /// A tensor, or a number as one of no axes.
  Array tensorOrNumber(llvm::StringRef name);
  double number(llvm::StringRef name, std::optional<double> otherwise = std::nullopt);
  int64_t integer(llvm::StringRef name, std::optional<int64_t> otherwise = std::nullopt);
  Shape integers(llvm::StringRef name, llvm::ArrayRef<int64_t> otherwise = {});
  bool flag(llvm::StringRef name, bool otherwise);
  llvm::StringRef text(llvm::StringRef name, llvm::StringRef otherwise);
  /// `name` as an axis of `rank`, from 0.
  int64_t axis(llvm::StringRef name, int64_t rank, std::optional<int64_t> otherwise = std::nullopt);
  /// The axes of a list, or all of them where it is empty or was not given.
  Shape axes(llvm::StringRef name, int64_t rank);

  unsigned resultCount() { return op.getNumResults(); }
  /// Whether anything reads a result.
  bool isRead(unsigned result) {
    return result < op.getNumResults() && !op.getResult(result).use_empty();
  }
  /// What a result has to be.
  Shape resultShape(unsigned result = 0);
  Kind resultKind(unsigned result = 0);

  void fail(const llvm::Twine &why);
  const std::string &failure() const { return why; }
  /// Says that PyTorch may give another result as well: of several it does not say which.
  void leaveOpen(const llvm::Twine &why) { open = why.str(); }
  const std::string &openness() const { return open; }

private:
  graph::CallOp op;
  llvm::ArrayRef<Array> operands;
  const Tokens &itsTokens;
  std::string why, open;
};

Kind kindOf(mlir::Type element);

/// What a call gives: an array for each result, of any floating kind and of the right count; the
/// caller makes them what the results have to be.
using Results = llvm::SmallVector<Array, 1>;
using Meaning = Results (*)(Call &);

/// The meaning of an op by its name without overload ("softmax"); null where there is none.
Meaning meaningOf(llvm::StringRef name);

/// What AtenOps.def names, each in the file of its kind.
namespace meanings {
#define ATEN(name, kind, tokens, meaning, raised, followed, generic) Results meaning(Call &call);
#include "dialects/Graph/AtenOps.def"
} // namespace meanings

} // namespace ctxc::reference

#endif // CTXC_LIB_REFERENCE_GRAPH_CALLS_H
