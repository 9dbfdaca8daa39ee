//===- Values.h - the values of options: numbers, positions, paths --------===//
#ifndef CTXC_TOOLS_COMMANDLINE_VALUES_H
#define CTXC_TOOLS_COMMANDLINE_VALUES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ctxc::driver {

/// Integers separated by commas or white space; `@FILE` reads them from FILE. Messages begin with
/// `what`.
llvm::Expected<std::vector<int64_t>> parseIntegers(llvm::StringRef text, llvm::StringRef what);

/// As above, with ranges such as "0-3,7".
llvm::Expected<std::vector<int64_t>> parsePositions(llvm::StringRef text, llvm::StringRef what);

/// All of standard input; an error where it has more than `limit` bytes.
llvm::Expected<std::string> readStandardInput(uint64_t limit);

/// Fails where a file at `path` could not be written, so that the error comes before the work
/// instead of after it.
llvm::Error checkWritable(llvm::StringRef path);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_VALUES_H
