//===- ReadFile.h - a program in ctxc's own format ---------------------------===//
//
// docs/program-file.md describes the format: a safetensors file whose metadata has the program as
// JSON. A file may be hostile: every member is read and checked, or refused by its name.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_READFILE_H
#define CTXC_IMPORT_READFILE_H

#include "GraphBuilder.h"

namespace ctxc::pt2 {

/// Reads the program of `file`, whose tensors are `payloads`. The context has the graph dialect
/// loaded.
llvm::Expected<Program> readFile(const SafetensorsFile &file, const Payloads &payloads,
                                 mlir::MLIRContext &context);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_READFILE_H
