//===- KeptTokens.h - what of a context stays beside an adapter -----------===//
#ifndef CTXC_TOOLS_CTXC_KEPTTOKENS_H
#define CTXC_TOOLS_CTXC_KEPTTOKENS_H

#include "OpenedContext.h"
#include "ctxc/Tokenizer/TextUnits.h"

namespace ctxc::driver {

std::vector<OptionSpec> keepOptionSpecs();

struct KeepOptions {
  double share = 0; ///< of the context's tokens
  TextUnit unit = TextUnit::Token;
  bool inCache = false;            ///< as keys and values, not as text
  std::optional<std::string> file; ///< a text in their place
  bool writesCache = false;        ///< prefix_cache.safetensors
};

/// The values of these options. Quick.
llvm::Expected<KeepOptions> keepOptions(const Arguments &arguments);

/// Adds the text of --keep to what stays in front, before any text has been written. Fails where
/// keepTokens would need a tokenizer that is not there, or where the cache cannot be stored.
llvm::Error keepFile(const KeepOptions &options, Opened &opened, DistilRequest &request);

/// Adds tokens of the context, by the texts of `request`.
llvm::Error keepTokens(const KeepOptions &options, Opened &opened, DistilRequest &request);

/// Warns where the texts begin with the token that alone stands in front of them.
llvm::Error warnOfEqualTokens(Opened &opened, const DistilRequest &request);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_KEPTTOKENS_H
