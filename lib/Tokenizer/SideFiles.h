// What the other files of a checkpoint's directory say about its tokenizer: tokenizer_config.json,
// special_tokens_map.json and added_tokens.json, as transformers' AutoTokenizer reads them.
#ifndef CTXC_LIB_TOKENIZER_SIDEFILES_H
#define CTXC_LIB_TOKENIZER_SIDEFILES_H

#include "ctxc/Tokenizer/Tokenizer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

namespace ctxc::text {

struct SideFiles {
  /// Tokens that a text may spell out, as a tokenizer.json lists them, but without ids: one that is
  /// not yet in the tokenizer gets the next id.
  llvm::json::Array added;
  /// Special tokens that a text spells out are none (split_special_tokens).
  bool splitsSpecial = false;
  // For a tokenizer.model:
  bool isThere = false;               ///< one of the files, at least
  std::optional<bool> addBos, addEos; ///< whether a text gets the tokens `bos` and `eos` around it
  std::optional<std::string> bos, eos;
  /// The class is transformers' LlamaTokenizer: whether a text gets a space in front, and (legacy)
  /// also each part behind a token that is spelled out.
  bool isLlama = false, isLegacy = false;
  std::optional<bool> addPrefixSpace;
  /// The class is BertTokenizer, with what its config says of letters.
  bool isBert = false;
  std::optional<bool> lowers, stripAccents, spacesChinese;
  std::string modelType; ///< of config.json; empty where there is none
  bool isOfClassesModel(llvm::ArrayRef<llvm::StringRef> types) const {
    return modelType.empty() || llvm::is_contained(types, modelType);
  }

  /// Nothing where the directory has none of these files. Errors: a file is no JSON, or has another
  /// kind of value where a token or a flag is expected.
  static llvm::Expected<SideFiles> read(llvm::StringRef directory);
};

/// tokenizer.json with what the files beside it say.
llvm::Expected<std::unique_ptr<Tokenizer>> openTokenizerJson(llvm::StringRef path,
                                                             const SideFiles &beside);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_SIDEFILES_H
