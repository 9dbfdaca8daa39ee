//===- TokenizerKeys.h - the keys of the files that tokenizers are made of ===//
#ifndef CTXC_TOKENIZER_TOKENIZERKEYS_H
#define CTXC_TOKENIZER_TOKENIZERKEYS_H

#include "ctxc/Checkpoint/KeyRules.h"

namespace ctxc {

extern const KeyTable tokenizerJsonKeys, tokenizerConfigKeys, specialTokensMapKeys, addedTokensKeys,
    generationConfigKeys, ggufTokenizerKeys;

} // namespace ctxc

#endif // CTXC_TOKENIZER_TOKENIZERKEYS_H
