//===- ReadProgram.h - a .pt2 file as a module of the graph dialect -------===//
#ifndef CTXC_IMPORT_READPROGRAM_H
#define CTXC_IMPORT_READPROGRAM_H

#include "Archive.h"
#include "GraphBuilder.h"

namespace ctxc::pt2 {

/// Reads the program of `archive`, as torch.export.save writes it. Its ops' locations are lines of
/// Python, stored tensors that share their memory are one graph.stored, and the inputs' names and
/// types say what they are. The context has the graph dialect loaded.
llvm::Expected<Program> readProgram(const Archive &archive, const Payloads &payloads,
                                    mlir::MLIRContext &context);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_READPROGRAM_H
