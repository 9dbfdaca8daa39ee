// judge-read-configs [--import]: reads one checkpoint after the other, for config_keys.py, in one
// process, since there are thousands. Standard input: the path of a directory a line. Standard
// output, for each: a line with a kind and a size in bytes, then that many bytes. Kinds: logits
// (float64, of the last of TOKENS, by the reference), module (with --import, the text of what is
// imported), refused (the errors), unpatched (no plan for a block: the errors).
#include "ctxc/Session/Context.h"
#include "ctxc/Session/Model.h"
#include "llvm/Support/raw_ostream.h"
#include <iostream>

using namespace llvm;
using namespace ctxc;

static const int64_t tokens[] = {5, 17, 3, 60, 22, 41, 9, 33, 12, 71, 2, 6};

static void answer(StringRef kind, StringRef bytes) {
  outs() << kind << " " << bytes.size() << "\n" << bytes;
  outs().flush();
}

static Error read(StringRef directory, bool import) {
  LoadOptions options;
  options.needWeights = !import;
  options.engine = Engine::Reference;
  Expected<std::unique_ptr<Model>> model = Model::load(directory, std::move(options));
  if (!model)
    return model.takeError();
  if (import) {
    std::string text;
    raw_string_ostream(text) << (*model)->module();
    answer("module", text);
    return Error::success();
  }
  Expected<Context> context = (*model)->context(tokens);
  if (!context)
    return context.takeError();
  Expected<Logits> logits = context->logits();
  if (!logits)
    return logits.takeError();
  std::vector<double> numbers = logits->doubles();
  answer("logits", StringRef(reinterpret_cast<const char *>(numbers.data()),
                             numbers.size() * sizeof(double)));
  return Error::success();
}

int main(int count, char **words) {
  bool import = count == 2 && StringRef(words[1]) == "--import";
  std::string directory;
  while (std::getline(std::cin, directory))
    if (Error error = read(directory, import)) {
      StringRef kind = error.isA<VerdictAgainst>() ? "unpatched" : "refused";
      answer(kind, toString(std::move(error)));
    }
}
