// Vectors of one row, which a block of threads computes with.
//
// Component k belongs to thread k modulo the number of threads: the thread that wrote it can read
// it again without a barrier. All threads take part in a reduction, get the same result, and see
// all memory that was written before it; branches and loops that depend on such a result are
// therefore taken by all threads alike.
#ifndef CTXC_LIB_LOWERING_GPU_VECTORWRITER_H
#define CTXC_LIB_LOWERING_GPU_VECTORWRITER_H

#include "lib/Lowering/GPU/Formula.h"
#include "lib/Lowering/GPU/Steps.h"

namespace ctxc::gpu_lowering {

using Numbers = llvm::SmallVector<Number>;

/// A vector of float32 or float64 in memory; `begin` is added to the view's own offset.
struct Components {
  const View *view;
  int64_t begin = 0;
};

class VectorWriter {
public:
  /// Works on `row` of memory with several rows; a null `row` means that there is only one.
  VectorWriter(KernelWriter &w, int64_t size, mlir::Value row) : w(w), size(size), row(row) {}

  KernelWriter &w;
  const int64_t size;

  // Components ----------------------------------------------------------------
  Number get(const Components &x, mlir::Value k);
  /// Reads a component that another thread may have written before the last reduction.
  Number get(const Components &x, const Number &k) { return get(x, toIndex(k)); }
  /// Rounds the value to the memory's type, and clamps it to that type's range.
  void set(const Components &x, mlir::Value k, const Number &value);
  void copy(const Components &from, const Components &to, mlir::Value k) {
    w.store(w.load(from.view->root, place(from, k)), to.view->root, place(to, k));
  }
  /// Whether a float32 component is finite and not NaN.
  Condition isFinite(const Components &x, mlir::Value k);
  Number toNumber(mlir::Value k);
  mlir::Value toIndex(const Number &k);

  // All components ------------------------------------------------------------
  enum Kind { Sum, Largest, Smallest };
  using Term = llvm::function_ref<Number(mlir::Value)>;
  void each(llvm::function_ref<void(mlir::Value)> body);
  /// Several reductions in one pass.
  Numbers reduce(llvm::ArrayRef<Kind> kinds, llvm::function_ref<Numbers(mlir::Value)> terms);
  Number sum(Term term) { return reduceOne(Sum, term); }
  Number largest(Term term) { return reduceOne(Largest, term); }
  Number smallest(Term term) { return reduceOne(Smallest, term); }
  /// The first component for which the condition holds.
  Number firstWhere(llvm::function_ref<Condition(mlir::Value)> holds);

  // Control -------------------------------------------------------------------
  void when(const Condition &condition, llvm::function_ref<void()> body);
  /// The results of `then` where the condition holds, otherwise `otherwise`.
  Numbers when(const Condition &condition, llvm::function_ref<Numbers()> then,
               const Numbers &otherwise);
  /// The numbers after a round. The body runs at most `most` times, until `done` holds.
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

/// Larger than any number that the solvers meet, and smaller than any that they divide by; products
/// of a few of them stay within float64's range.
constexpr double huge = 1e300, tiny = 1e-300;

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_VECTORWRITER_H
