#include "ContextTexts.h"
#include "ChatTexts.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Session/ConversationsFile.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/FileSystem.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

std::vector<OptionSpec> driver::contextOptions() {
  std::vector<OptionSpec> all = chatOptions();
  const OptionSpec own[] = {
      reads({"--context", "FILE", "the text of the context, which stands before every text"}),
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
  all.insert(all.begin(), std::begin(own), std::end(own));
  return all;
}

Error driver::checkContextOptions(const Arguments &arguments) {
  if (Error error = checkChatContext(arguments))
    return error;
  if (arguments.has("--chat"))
    return Error::success();
  bool isText = arguments.has("--context"), isTokens = arguments.has("--context-tokens");
  if (isText && isTokens)
    return makeError("--context and --context-tokens are both given; expected one of them");
  if (!isText && !isTokens)
    return makeError("expected --context FILE, --context-tokens IDS, or --chat with --system FILE");
  if (!isTokens)
    return Error::success();
  return parseIntegers(arguments.get("--context-tokens", ""), "--context-tokens").takeError();
}

Expected<std::unique_ptr<Model>> driver::openForAdapters(const Arguments &arguments,
                                                         bool isAddedTo) {
  StringRef path = arguments.positional(0);
  const bool isProgram = isProgramFile(path),
             isFile = isProgram || (!isAddedTo && path.ends_with(".gguf"));
  if (!llvm::sys::fs::is_directory(path) && !isFile)
    return makeError(path + ": expected a Hugging Face directory" +
                     (isAddedTo ? "" : ", a GGUF file,") +
                     " or an exported program with its weights");
  if (!isAddedTo) {
    auto options = loadOptions(arguments);
    if (!options)
      return options.takeError();
    return options->ranks ? openToRun(arguments, path, std::move(*options))
                          : openModel(path, std::move(*options));
  }
  LoadOptions options;
  if (!isProgram) // which is run in the types that it has
    options.storage = DType::F32;
  options.tokenizer = arguments.get("--tokenizer", "").str();
  auto threads = arguments.integer("--threads", 1, 1024, 0);
  if (!threads)
    return threads.takeError();
  options.threads = *threads;
  return openModel(path, std::move(options));
}

Expected<ContextTexts> driver::readContext(const Arguments &arguments, Model &model) {
  if (arguments.has("--chat"))
    return readChatContext(
        {arguments.get("--system", ""), arguments.get("--messages", ""), "--system", "--messages"},
        model);
  if (!arguments.has("--context-tokens"))
    return ctxc::readContext(arguments.get("--context", ""), "--context", model);
  auto ids = parseIntegers(arguments.get("--context-tokens", ""), "--context-tokens");
  if (!ids)
    return ids.takeError();
  return contextOfTokens(std::move(*ids), model);
}

Expected<std::vector<TextSequence>> driver::readTexts(const Arguments &arguments, StringRef option,
                                                      Model &model, const ContextTexts &context) {
  if (context.chat && option != "--unrelated")
    return readConversationTexts(arguments.get(option, ""), option, *context.chat);
  return ctxc::readTexts(arguments.get(option, ""), option, model);
}

Expected<std::vector<std::vector<int64_t>>> driver::readPrompts(const Arguments &arguments,
                                                                StringRef option, Model &model) {
  return ctxc::readPrompts(arguments.get(option, ""), option, model);
}
