// Vectors of the row that a block of threads has, and what is computed of all their components.
//
// Component k is its thread's alone, k modulo the threads: it may be read again without a barrier
// by whoever wrote it. A reduction is met by all threads, gives all of them the same number, and
// orders the memory before it; branches and loops of the numbers it gives are hence taken by all
// threads alike.
#ifndef CTXC_LIB_LOWERING_GPU_VECTORWRITER_H
#define CTXC_LIB_LOWERING_GPU_VECTORWRITER_H

#include "lib/Lowering/GPU/Formula.h"
#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

using Numbers = llvm::SmallVector<Number>;

/// A vector in memory, of float32 or float64; `begin` is added to the view's own offset.
struct Components {
  const View *view;
  int64_t begin = 0;
};

class VectorWriter {
public:
  /// Of `row` in memory that has several; null is the one there is.
  VectorWriter(KernelWriter &w, int64_t size, mlir::Value row) : w(w), size(size), row(row) {}

  KernelWriter &w;
  const int64_t size;

  // Components ----------------------------------------------------------------
  Number get(const Components &x, mlir::Value k);
  /// Of a number that another thread may have written before the last reduction.
  Number get(const Components &x, const Number &k) { return get(x, toIndex(k)); }
  /// Rounded, and kept within the largest number of the memory's type.
  void set(const Components &x, mlir::Value k, const Number &value);
  void copy(const Components &from, const Components &to, mlir::Value k) {
    w.store(w.load(from.view->root, place(from, k)), to.view->root, place(to, k));
  }
  /// Whether a float32 is a number and finite.
  Condition isFinite(const Components &x, mlir::Value k);
  Number toNumber(mlir::Value k);
  mlir::Value toIndex(const Number &k);

  // All components ------------------------------------------------------------
  enum Kind { Sum, Largest, Smallest };
  using Term = llvm::function_ref<Number(mlir::Value)>;
  void each(llvm::function_ref<void(mlir::Value)> body);
  /// Several at once, in one pass.
  Numbers reduce(llvm::ArrayRef<Kind> kinds, llvm::function_ref<Numbers(mlir::Value)> terms);
  Number sum(Term term) { return reduceOne(Sum, term); }
  Number largest(Term term) { return reduceOne(Largest, term); }
  Number smallest(Term term) { return reduceOne(Smallest, term); }
  /// The first component of which it holds.
  Number firstWhere(llvm::function_ref<Condition(mlir::Value)> holds);

  // Control -------------------------------------------------------------------
  void when(const Condition &condition, llvm::function_ref<void()> body);
  /// What `then` gives where it is so, else `otherwise`.
  Numbers when(const Condition &condition, llvm::function_ref<Numbers()> then,
               const Numbers &otherwise);
  /// What the numbers become, at most `most` times, until the body says that it is done.
  struct Round {
    Numbers next;
    Condition done;
  };
  Numbers repeat(int64_t most, const Numbers &start, llvm::function_ref<Round(Numbers)> body);
  void onFirstThread(llvm::function_ref<void()> body);

private:
  Number reduceOne(Kind kind, Term term) {
    return reduce(kind, [&](mlir::Value k) { return Numbers{term(k)}; })[0];
  }
  llvm::SmallVector<mlir::Value> values(const Numbers &numbers);
  Numbers numbers(mlir::ValueRange values);
  mlir::Value place(const Components &x, mlir::Value k);

  mlir::Value row;
};

/// Larger than any number that the solvers meet, and smaller than any they divide by: products of
/// a few of them stay within float64's range.
constexpr double huge = 1e300, tiny = 1e-300;

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_VECTORWRITER_H
