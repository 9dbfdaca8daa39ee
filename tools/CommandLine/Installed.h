//===- Installed.h - where the files of a program are -----------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_INSTALLED_H
#define CTXC_TOOLS_COMMANDLINE_INSTALLED_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace ctxc::driver {

/// The folder that has lib/ctxc and share/ctxc: the one above the executable's, or the one of
/// `setInstallation`, for a program that another executable runs in its process.
std::string installation();
void setInstallation(llvm::StringRef folder);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_INSTALLED_H
