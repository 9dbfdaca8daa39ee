#include "ContextTexts.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/FileSystem.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

std::vector<OptionSpec> driver::contextOptions() {
  return {reads({"--context", "FILE", "the text of the context, which stands before every text"}),
          {"--context-tokens", "IDS",
           "the context as token ids, with those that the tokenizer puts in front; or @FILE"},
          reads({"--unrelated", "FILE",
                 "texts that have nothing to do with the context, and on which nothing should\n"
                 "change"}),
          reads({"--tokenizer", "FILE",
                 "a tokenizer in place of the model's own: a directory, a tokenizer.json, a\n"
                 "tokenizer.model, or a GGUF file"}),
          {"--seed", "SEED", "the seed of all random choices; default 0"},
          {"--threads", "N", "threads of the kernels; default: one per core"}};
}

Error driver::checkContextOptions(const Arguments &arguments) {
  bool isText = arguments.has("--context"), isTokens = arguments.has("--context-tokens");
  if (isText && isTokens)
    return makeError("--context and --context-tokens are both given; expected one of them");
  if (!isText && !isTokens)
    return makeError("expected --context FILE or --context-tokens IDS");
  if (!isTokens)
    return Error::success();
  return parseIntegers(arguments.get("--context-tokens", ""), "--context-tokens").takeError();
}

Expected<std::unique_ptr<Model>> driver::openForAdapters(const Arguments &arguments) {
  StringRef path = arguments.positional(0);
  if (!llvm::sys::fs::is_directory(path))
    return makeError(path + ": expected a Hugging Face directory, whose modules an adapter names");
  LoadOptions options;
  options.storage = DType::F32;
  options.tokenizer = arguments.get("--tokenizer", "").str();
  auto threads = arguments.integer("--threads", 1, 1024, 0);
  if (!threads)
    return threads.takeError();
  options.threads = *threads;
  return openModel(path, std::move(options));
}

Expected<ContextTexts> driver::readContext(const Arguments &arguments, Model &model) {
  if (!arguments.has("--context-tokens"))
    return ctxc::readContext(arguments.get("--context", ""), "--context", model);
  auto ids = parseIntegers(arguments.get("--context-tokens", ""), "--context-tokens");
  if (!ids)
    return ids.takeError();
  return contextOfTokens(std::move(*ids), model);
}

Expected<std::vector<TextSequence>> driver::readTexts(const Arguments &arguments, StringRef option,
                                                      Model &model) {
  return ctxc::readTexts(arguments.get(option, ""), option, model);
}

Expected<std::vector<std::vector<int64_t>>> driver::readPrompts(const Arguments &arguments,
                                                                StringRef option, Model &model) {
  return ctxc::readPrompts(arguments.get(option, ""), option, model);
}
