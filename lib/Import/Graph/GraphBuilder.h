//===- GraphBuilder.h - a program as a module of the graph dialect ---------===//
//
// What the readers of programs share: that of ctxc's own files (ReadFile.h) and that of torch's
// (ReadProgram.h).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_GRAPHBUILDER_H
#define CTXC_IMPORT_GRAPHBUILDER_H

#include "Payloads.h"
#include "ctxc/Import/Import.h"
#include "dialects/Graph/Graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>

namespace ctxc::pt2 {

/// The lines of Python that locations name, by file and line, as the file quotes them.
using SourceLines = std::map<std::pair<std::string, unsigned>, std::string>;

struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< one graph.program, verified
  SourceLines lines;
  std::vector<StoredPart> parts; ///< parameters of the program
  std::string taken;             ///< which result is taken for the logits, if others may be
  SourceNumbers source;
};

/// More axes than a tensor of a model has.
inline constexpr size_t mostAxes = 64;

/// The type of a name as "F32", or of the number that torch's schema has for it; none for one that
/// no model computes with.
mlir::Type elementType(mlir::MLIRContext *context, int64_t code);
/// That number of a name; none for another name.
std::optional<int64_t> codeOfType(llvm::StringRef name);

class GraphBuilder {
public:
  /// Messages begin with `where`.
  GraphBuilder(std::string where, const Payloads &payloads, mlir::MLIRContext *context);

  /// An input of (1, tokens, …).
  llvm::Expected<mlir::Value> input(llvm::StringRef name, graph::SymbolicType type,
                                    llvm::StringRef role);
  /// A stored tensor. One that is `fixed` is not trained; if it is also `loaded`, weights from
  /// elsewhere may have it.
  llvm::Expected<graph::StoredOp> stored(llvm::StringRef name, graph::SymbolicType type, bool fixed,
                                         bool loaded);
  struct Call {
    llvm::StringRef op; ///< "torch.ops.aten.add.Tensor", or without "torch.ops."
    llvm::SmallVector<mlir::Type> types;
    llvm::SmallVector<mlir::Value> operands;
    llvm::SmallVector<mlir::NamedAttribute> arguments;
    llvm::StringRef name;   ///< of its first result
    llvm::StringRef trace;  ///< as Python prints it
    llvm::StringRef module; ///< its path
    bool visible = false;   ///< a mask that lets a token see one before it
  };
  mlir::ValueRange call(const Call &call);
  llvm::Expected<Program> finish(llvm::ArrayRef<mlir::Value> results);

private:
  llvm::Error checkFixedLength();
  llvm::Error readNumbers(graph::StoredOp tensor);
  mlir::Location calls(llvm::ArrayRef<struct SourceLine> innermostFirst);
  mlir::Location locationOf(const Call &call);

  std::string where;
  const Payloads &payloads;
  mlir::OpBuilder builder;
  graph::ProgramOp op;
  mlir::Attribute tokens;
  Program program;
};

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_GRAPHBUILDER_H
