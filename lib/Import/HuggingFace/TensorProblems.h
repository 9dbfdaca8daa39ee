//===- TensorProblems.h - what a checkpoint's tensors lack, by its cause ---===//
//
// One cause is one message: where a prefix, a layer or a size is another than the family's, every
// tensor is concerned, and a line for each would hide what is wrong.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_TENSORPROBLEMS_H
#define CTXC_IMPORT_TENSORPROBLEMS_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Checkpoint/ConfigReader.h"

namespace ctxc::hf {

struct TensorProblems {
  struct Missing {
    std::string name;
    llvm::SmallVector<int64_t> shape;
  };
  struct Misshapen {
    const TensorView *view;
    llvm::SmallVector<int64_t> expected;
  };
  std::vector<Missing> missing; ///< in the order of the equations
  std::vector<Misshapen> misshapen;
  std::string head;    ///< the name of the output head, where the family reads one
  bool hasAny = false; ///< whether some of the tensors are there

  /// Adds a message for each cause; `unread` are the stored tensors that no equation reads.
  void report(const Checkpoint &checkpoint, llvm::StringRef place,
              std::vector<const TensorView *> unread, Problems &problems) const;
};

} // namespace ctxc::hf

#endif // CTXC_IMPORT_TENSORPROBLEMS_H
