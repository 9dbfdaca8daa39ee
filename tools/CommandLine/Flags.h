//===- Flags.h - the options that messages of the library name, as flags --===//
//
// The library names options in words that a C++ or Python program understands. Here are the flags
// that set them.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_FLAGS_H
#define CTXC_TOOLS_COMMANDLINE_FLAGS_H

#include "ctxc/Session/Options.h"
#include <string>

namespace ctxc::driver {

/// A message of the library, followed by the flags for what it advises, unless it has them:
///
///     'xf.scan' op has no compiled kernel; the reference engine runs it (--backend reference)
std::string withFlags(llvm::StringRef message);
/// The same for a diagnostic and its notes.
ModelDiagnostic withFlags(ModelDiagnostic diagnostic);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_FLAGS_H
