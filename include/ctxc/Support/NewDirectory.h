//===- NewDirectory.h - write a directory completely or not at all --------===//
#ifndef CTXC_SUPPORT_NEWDIRECTORY_H
#define CTXC_SUPPORT_NEWDIRECTORY_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ctxc {

/// Makes the directory `path`, which must not exist: `fill` fills a directory beside it, which is
/// then renamed. On any failure nothing remains. `what` names it in messages.
llvm::Error writeNewDirectory(llvm::StringRef path, llvm::StringRef what,
                              llvm::function_ref<llvm::Error(llvm::StringRef directory)> fill);

/// DIRECTORY/NAME.
std::string pathIn(llvm::StringRef directory, llvm::StringRef name);

} // namespace ctxc

#endif // CTXC_SUPPORT_NEWDIRECTORY_H
