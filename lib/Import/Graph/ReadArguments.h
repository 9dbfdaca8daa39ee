// The values of one program: their types, and the arguments of calls.
#ifndef CTXC_IMPORT_READARGUMENTS_H
#define CTXC_IMPORT_READARGUMENTS_H

#include "ctxc/Checkpoint/JsonTree.h"
#include "dialects/Graph/Graph.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace ctxc::pt2 {

/// The tables of a graph, by the names of its values.
class Values {
public:
  /// Reads types and sizes; messages begin with `where`.
  static llvm::Expected<Values> read(JsonView graph, mlir::MLIRContext *context,
                                     llvm::StringRef where);

  llvm::Expected<graph::SymbolicType> type(llvm::StringRef tensor) const;
  /// What a node made of tensor `name`, once.
  llvm::Error define(llvm::StringRef tensor, mlir::Value value);
  llvm::Expected<mlir::Value> tensor(llvm::StringRef name) const;

  /// The operands and named arguments of a node.
  struct Arguments {
    llvm::SmallVector<mlir::Value> operands;
    llvm::SmallVector<mlir::NamedAttribute> named;
  };
  llvm::Expected<Arguments> arguments(JsonView inputs) const;

private:
  llvm::Error readSizes(JsonView sizes, llvm::SmallVectorImpl<mlir::Attribute> &to,
                        const llvm::Twine &what) const;
  llvm::Error readTypes(JsonView graph);
  llvm::Error readNumbers(JsonView graph);
  /// {"as_int": 3}
  llvm::Expected<mlir::Attribute> argument(JsonView value, Arguments &to) const;
  llvm::Expected<mlir::Attribute> argument(llvm::StringRef kind, JsonView is, Arguments &to) const;
  llvm::Expected<mlir::Attribute> operand(llvm::StringRef tensor, Arguments &to) const;
  llvm::Expected<mlir::Attribute> symbol(JsonView value) const;

  mlir::Builder builder{static_cast<mlir::MLIRContext *>(nullptr)};
  std::string where;
  llvm::StringMap<graph::SymbolicType> types;
  llvm::StringMap<mlir::Attribute> numbers; ///< of symbolic integers
  llvm::StringMap<mlir::Value> defined;
};

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_READARGUMENTS_H
