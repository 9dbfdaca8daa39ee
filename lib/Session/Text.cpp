// A model's tokens and their text.
#include "Use.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Tokenizer/GenerationConfig.h"
#include "llvm/Support/FileSystem.h"

using namespace ctxc;
using llvm::Expected;

bool Model::hasTokenizer() const {
  return !settings.tokenizer.empty() || (modelCheckpoint && modelCheckpoint->tokenizerPath());
}

/// Where the tokenizer and the chat template are.
Expected<std::string> Model::tokenizerPath() const {
  if (!settings.tokenizer.empty())
    return settings.tokenizer;
  if (!modelCheckpoint || inMemory || isText())
    return makeError(path + ": has no tokenizer; give token ids, or another's tokenizer");
  return path;
}

Expected<Tokenizer &> Model::tokenizer() {
  Expected<Use> inUse = use();
  if (!inUse)
    return inUse.takeError();
  if (!pieces) {
    Expected<std::string> place = tokenizerPath();
    if (!place)
      return place.takeError();
    auto opened = Tokenizer::open(*place);
    if (!opened)
      return opened.takeError();
    pieces = std::move(*opened);
    if (!pieces->warning.empty())
      handle({Place(), mlir::DiagnosticSeverity::Warning, pieces->warning, "", {}});
  }
  return *pieces;
}

Expected<std::vector<int64_t>> Model::tokenize(llvm::StringRef text) {
  Expected<Tokenizer &> tokenizer = this->tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  return tokenizer->encode(text, tokenizer->addsSpecial());
}

Expected<std::vector<int64_t>> Model::tokenizeInside(llvm::StringRef text) {
  Expected<Tokenizer &> tokenizer = this->tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  return tokenizer->encode(text, /*addSpecial=*/false);
}

Expected<std::vector<int64_t>> Model::tokensInFront() {
  Expected<std::vector<int64_t>> inside = tokenizeInside("a");
  if (!inside)
    return inside.takeError();
  Expected<std::vector<int64_t>> whole = tokenize("a");
  if (!whole)
    return whole.takeError();
  auto found = std::search(whole->begin(), whole->end(), inside->begin(), inside->end());
  return std::vector<int64_t>(whole->begin(), found);
}

Expected<std::vector<int64_t>> Model::readStopTokens() {
  if (!modelCheckpoint || isText())
    return std::vector<int64_t>();
  if (!inMemory && !llvm::sys::fs::is_directory(path)) {
    Expected<Tokenizer &> tokenizer = this->tokenizer();
    if (tokenizer)
      return tokenizer->ends;
    llvm::consumeError(tokenizer.takeError()); // whoever needs texts says it
    return std::vector<int64_t>();
  }
  auto found = inMemory ? std::nullopt : GenerationConfig::read(path);
  if (!found)
    return found.takeError();
  if (*found && !(*found)->warning.empty())
    handle({Place(), mlir::DiagnosticSeverity::Warning, (*found)->warning, "", {}});
  if (*found)
    return std::move((*found)->stops);
  const llvm::json::Object &config = modelCheckpoint->config(),
                           *nested = config.getObject("text_config");
  const llvm::json::Value *stops = config.get("eos_token_id");
  if (nested && (!stops || stops->getAsNull()))
    stops = nested->get("eos_token_id");
  return stops ? readStops(*stops, path + "/config.json") : std::vector<int64_t>();
}

Expected<std::vector<int64_t>> Model::stopTokens() {
  if (!knownStops)
    if (llvm::Error error = readStopTokens().moveInto(knownStops))
      return std::move(error);
  return *knownStops;
}

TokenName Model::tokenName() {
  if (hasTokenizer()) {
    Expected<Tokenizer &> opened = tokenizer();
    if (opened)
      return TokenName(*opened);
    handle(
        {Place(), mlir::DiagnosticSeverity::Warning, llvm::toString(opened.takeError()), "", {}});
  }
  return TokenName();
}
