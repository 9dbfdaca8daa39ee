// Tokenizers: what can be read is used on some texts, and on a part of the file itself.
#include "Reader.h"
#include "ctxc/Tokenizer/Tokenizer.h"

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

static void use(const Tokenizer &tokenizer, StringRef bytes) {
  for (StringRef text : {StringRef(""), StringRef("The king's 1234  cafés\n\tü \xff\xe2\x96\x81"),
                         bytes.take_back(48)})
    for (bool addSpecial : {false, true}) {
      auto ids = tokenizer.encode(text, addSpecial);
      if (!heard(ids))
        continue;
      for (int64_t id : *ids) {
        require(id >= 0 && id < tokenizer.size(), "an id is in the vocabulary's range");
        (void)tokenizer.piece(id);
      }
      hear(tokenizer.decode(*ids).takeError());
    }
  hear(tokenizer.decode({0, tokenizer.size() - 1}).takeError());
  hear(tokenizer.decode({-1}).takeError());
  (void)tokenizer.piece(tokenizer.size());
}

void fuzz::readTokenizerJson(StringRef bytes) {
  auto tokenizer = parseTokenizerJson(bytes, "tokenizer.json");
  if (heard(tokenizer))
    use(**tokenizer, bytes);
}

void fuzz::readSentencePiece(StringRef bytes) {
  auto tokenizer = parseSentencePiece(bytes, "tokenizer.model", std::nullopt);
  if (heard(tokenizer))
    use(**tokenizer, bytes);
}
