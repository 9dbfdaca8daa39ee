// A tokenizer.model in a directory whose other files say more about the tokenizer.
#ifndef CTXC_LIB_TOKENIZER_SENTENCEPIECEBESIDE_H
#define CTXC_LIB_TOKENIZER_SENTENCEPIECEBESIDE_H

#include "SideFiles.h"

namespace ctxc::text {

struct SentencePieceModel {
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<int64_t> controls; ///< pieces that no text has
  int64_t unknown = 0, bos = -1; ///< -1: there is none
};

/// `isTextAsItIs`: a text is not normalized, and gets no space in front.
llvm::Expected<SentencePieceModel>
openSentencePieceModel(llvm::StringRef path, std::optional<int64_t> bos, bool isTextAsItIs);

/// The tokens that the files list, and the model's control pieces, are found in a text first. `bos`
/// is config.json's.
llvm::Expected<std::unique_ptr<Tokenizer>>
openSentencePiece(llvm::StringRef path, std::optional<int64_t> bos, const SideFiles &beside);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_SENTENCEPIECEBESIDE_H
