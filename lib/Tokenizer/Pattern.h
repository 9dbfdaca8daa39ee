// {"String": …} or {"Regex": …}, and a text with its matches replaced.
#ifndef CTXC_LIB_TOKENIZER_PATTERN_H
#define CTXC_LIB_TOKENIZER_PATTERN_H

#include "Field.h"
#include "Regex.h"

namespace ctxc::text {

llvm::Expected<Regex> readPattern(const Field &field);

/// Error: a limit on steps or on the length of the result.
llvm::Expected<std::string> replaceAll(llvm::StringRef text, const Regex &pattern,
                                       llvm::StringRef content, const std::string &where);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_PATTERN_H
