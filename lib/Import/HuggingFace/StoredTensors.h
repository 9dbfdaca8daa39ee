//===- StoredTensors.h - the types of parameters, from what is stored -----===//
#ifndef CTXC_IMPORT_STOREDTENSORS_H
#define CTXC_IMPORT_STOREDTENSORS_H

#include "TensorProblems.h"
#include "Wrappers.h"
#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Checkpoint/ConfigReader.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSet.h"

namespace ctxc::hf {

/// Gives a parameter's type in the IR, checks that the checkpoint has
/// it in the expected shape, and remembers which tensors were used.
class StoredTensors {
public:
  /// `checkpoint` may be null: then every tensor exists, stored as `fallback`.
  /// `storage` overrides the stored types.
  StoredTensors(const Checkpoint *checkpoint, llvm::StringRef place, DType fallback,
                std::optional<DType> storage, Problems &problems)
      : checkpoint(checkpoint), place(place.str()), fallback(fallback), storage(storage),
        problems(problems) {}

  /// The model is the text model within one of the type `wrapper`: names here are those that it has
  /// where it stands alone.
  void setWrapper(llvm::StringRef wrapper);
  /// Names the parameters of a module that was built with these names as they are stored.
  void rename(mlir::ModuleOp module) const { part.rename(module); }

  /// The type of tensor `name`, which must be stored with `shape`; finish reports it where it is
  /// not.
  mlir::RankedTensorType type(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                              mlir::MLIRContext *context);

  /// The type of the bank `name`, whose `*` is an index: each of the first dimension's entries is
  /// stored as a tensor of its own, and all as the same type.
  mlir::RankedTensorType bankType(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                                  mlir::MLIRContext *context);

  /// The head that the family reads is stored as `name`.
  void setHead(llvm::StringRef name) { found.head = part.stored(name); }

  StorageConventions conventions() const {
    return checkpoint ? checkpoint->conventions() : StorageConventions();
  }

  /// Whether there are files of tensors.
  bool areStored() const { return checkpoint; }
  bool has(llvm::StringRef name) const { return find(name); }

  /// Whether it is stored in a quantised format: a bank of gpt-oss is (out, in) then.
  bool isQuantized(llvm::StringRef name) const;

  /// The first of `stems` under which `name` is stored; the first where none has it.
  llvm::StringRef stemOf(llvm::ArrayRef<llvm::StringRef> stems, llvm::StringRef name) const;

  /// The one stored tensor of this shape whose name `isCandidate`; empty where there is none, or
  /// where there are several.
  std::string onlyOne(llvm::ArrayRef<int64_t> shape,
                      llvm::function_ref<bool(llvm::StringRef)> isCandidate) const;

  /// Whether both are stored with the same numbers.
  bool equal(llvm::StringRef a, llvm::StringRef b) const;

  /// Reports the tensors that are not there or do not fit, and then the stored ones that were not
  /// used, but those that `harmless` names: they may belong to a variant of the family that
  /// computes something else.
  void finish(llvm::function_ref<bool(llvm::StringRef)> harmless);

private:
  const TensorView *find(llvm::StringRef name) const {
    return checkpoint ? checkpoint->find(part.stored(name)) : nullptr;
  }

  const Checkpoint *checkpoint;
  std::string place;
  DType fallback;
  std::optional<DType> storage;
  Problems &problems;
  TextPart part;
  llvm::StringSet<> asked; ///< as they are stored
  TensorProblems found;
};

} // namespace ctxc::hf

#endif // CTXC_IMPORT_STOREDTENSORS_H
