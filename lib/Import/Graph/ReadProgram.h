//===- ReadProgram.h - a .pt2 file as a module of the graph dialect -------===//
#ifndef CTXC_IMPORT_READPROGRAM_H
#define CTXC_IMPORT_READPROGRAM_H

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
  std::string taken;             ///< Note::taken
};

/// Reads the program of `archive`. Its op's locations are lines of Python, and stored tensors that
/// share their memory are one graph.stored. The context has the graph dialect loaded.
llvm::Expected<Program> readProgram(const Archive &archive, const Payloads &payloads,
                                    mlir::MLIRContext &context);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_READPROGRAM_H
