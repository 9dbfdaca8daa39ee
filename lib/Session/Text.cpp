// A model's tokens and their text.
#include "Use.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using llvm::Expected;

bool Model::hasTokenizer() const { return modelCheckpoint && modelCheckpoint->tokenizerPath(); }

Expected<Tokenizer &> Model::tokenizer() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  if (!pieces) {
    if (!modelCheckpoint || inMemory)
      return makeError(path + ": has no tokenizer; give token ids");
    auto opened = Tokenizer::open(path);
    if (!opened)
      return opened.takeError();
    pieces = std::move(*opened);
  }
  return *pieces;
}

Expected<std::vector<int64_t>> Model::tokenize(llvm::StringRef text) {
  Expected<Tokenizer &> tokenizer = this->tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  return tokenizer->encode(text, tokenizer->addsSpecial());
}

TokenName Model::tokenName() {
  if (hasTokenizer()) {
    Expected<Tokenizer &> opened = tokenizer();
    if (opened)
      return [pieces = &*opened](int64_t id) { return id < 0 ? "(row)" : pieces->piece(id); };
    handle(
        {Place(), mlir::DiagnosticSeverity::Warning, llvm::toString(opened.takeError()), "", {}});
  }
  return [](int64_t id) { return id < 0 ? "(row)" : std::to_string(id); };
}
