//===- ModelBuilder.h - the module of a family ------------------------------===//
#ifndef CTXC_IMPORT_MODELBUILDER_H
#define CTXC_IMPORT_MODELBUILDER_H

#include "Architecture.h"
#include "Family.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

namespace ctxc::hf {

/// Builds the module of a family: its model and the blocks that its layers share. Of a checkpoint
/// without a head, or with the head of another task, the model ends with the last hidden state.
class ModelBuilder {
public:
  using Value = mlir::Value;
  using StringRef = llvm::StringRef;
  ModelBuilder(const Family &family, Task task, StoredTensors &tensors, StringRef configPath,
               mlir::MLIRContext &context);

  mlir::OwningOpRef<mlir::ModuleOp> build();

  /// What leads the names of the base model's tensors in this checkpoint.
  StringRef prefix() const { return stem; }
  bool readsHead() const { return withHead; }
  /// Whether the head is stored, and is not the embedding, which is stored too.
  bool hasOwnHead();

private:
  mlir::Location named(const llvm::Twine &name) {
    return mlir::NameLoc::get(builder.getStringAttr(name), file);
  }
  std::string embedding();
  std::string storedHead() { return tensors.stemOf(family.headNames(), "").str(); }
  std::string headName() { return !family.tied || hasOwnHead() ? storedHead() : embedding(); }
  Value head(BlockBuilder &b, Value x, Value table);
  Value headBias();
  Value matrix(StringRef as, const std::string &name);
  Value layer(int64_t i, Value x, xf::ModelOp model);
  std::pair<xf::BlockOp, mlir::DictionaryAttr> sharedBlock(int64_t i, const std::string &prefix,
                                                           mlir::Type type, xf::ModelOp model);

  const Family &family;
  StoredTensors &tensors;
  mlir::OpBuilder builder;
  mlir::Location file;
  std::string stem;
  bool withHead;
  llvm::StringMap<xf::BlockOp> blocks; ///< by their text under the family's name
};

} // namespace ctxc::hf

#endif // CTXC_IMPORT_MODELBUILDER_H
