// Classes of transformers that take no more than the vocabulary from a tokenizer.json.
#ifndef CTXC_LIB_TOKENIZER_OWNCLASSES_H
#define CTXC_LIB_TOKENIZER_OWNCLASSES_H

#include "Model.h"
#include "SideFiles.h"

namespace ctxc::text {

/// Gives the members of a tokenizer.json what the class has in their place, as AutoTokenizer does:
/// Llama's (but for a tokenizer of bytes) and BERT's. Others are as the file has them. Error: a
/// model of a kind that the class does not have.
llvm::Error applyOwnClass(llvm::json::Object &members, ModelText &model, const SideFiles &beside);

} // namespace ctxc::text

#endif // CTXC_LIB_TOKENIZER_OWNCLASSES_H
