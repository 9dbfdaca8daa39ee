#ifndef CTXC_IMPORT_HUGGINGFACE_H
#define CTXC_IMPORT_HUGGINGFACE_H

#include "ctxc/Import/Import.h"

namespace ctxc::hf {

/// importModel for a directory.
llvm::Expected<ImportedModel> importDirectory(llvm::StringRef directory, mlir::MLIRContext &context,
                                              const ImportOptions &options);

/// importCheckpoint.
llvm::Expected<ImportedModel> importOpened(std::unique_ptr<Checkpoint> checkpoint,
                                           mlir::MLIRContext &context,
                                           const ImportOptions &options);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_HUGGINGFACE_H
