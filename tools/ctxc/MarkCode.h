//===- MarkCode.h - generated code that says who wrote it ------------------===//
#ifndef CTXC_TOOLS_CTXC_MARKCODE_H
#define CTXC_TOOLS_CTXC_MARKCODE_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace ctxc::driver {

/// `code`, which `ctxc compile --emit=STAGE` writes, with ownMark (Support/OwnFile.h) where the
/// format has a place for it: in a comment; behind the end of an object file, which loaders and
/// linkers do not read; in an instruction of SPIR-V that means nothing.
std::string markCode(llvm::StringRef stage, llvm::StringRef code);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_MARKCODE_H
