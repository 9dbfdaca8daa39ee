// ctxc-sample-bench: tokens that a model writes after a context, one by one (plain decoding) and
// many texts at once, in wall time and in processor time.
//
// Processor time tells how much work is saved where other programs share the processors.
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/Support/Format.h"
#include <chrono>
#include <ctime>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

namespace {

struct Sizes {
  int64_t context, length;
};

std::vector<int64_t> contextOf(int64_t count, int64_t vocabulary) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back((7 + 131 * i) % vocabulary);
  return ids;
}

/// Calls `work`, which returns how many tokens it wrote, and prints a line.
Error measure(llvm::StringRef name, llvm::function_ref<Expected<int64_t>()> work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const std::clock_t processor = std::clock();
  Expected<int64_t> tokens = work();
  if (!tokens)
    return tokens.takeError();
  double used = double(std::clock() - processor) / CLOCKS_PER_SEC;
  double wall = std::chrono::duration<double>(Clock::now() - begin).count();
  out() << llvm::format("%-16s%8lld%16.1f%24.1f\n", name.str().c_str(),
                        static_cast<long long>(*tokens), *tokens / wall, *tokens / used);
  out().flush();
  return Error::success();
}

Error measurePlain(Executor &executor, const std::vector<int64_t> &context, int64_t length) {
  auto run = executor.start(context.size() + length);
  std::vector<int64_t> positions;
  llvm::append_range(positions, llvm::seq<int64_t>(0, context.size()));
  if (auto read = executor.forward(*run, context, positions, ForwardOptions()); !read)
    return read.takeError();
  return measure("one by one", [&]() -> Expected<int64_t> {
    int64_t token = context.back();
    for (int64_t i = 0; i < length; ++i) {
      auto next = executor.next(*run, token, context.size() + i, ForwardOptions());
      if (!next)
        return next.takeError();
      token = *next;
    }
    return length;
  });
}

Expected<int> run(const Arguments &arguments) {
  Sizes sizes;
  if (Error error = arguments.integer("--context", 1, 1 << 20, 128).moveInto(sizes.context))
    return std::move(error);
  if (Error error = arguments.integer("--length", 1, 1 << 20, 16).moveInto(sizes.length))
    return std::move(error);
  auto threads = arguments.integer("--threads", 1, 1024, 0);
  if (!threads)
    return threads.takeError();
  LoadOptions options;
  options.storage = DType::F32;
  options.threads = *threads;
  auto model = openModel(arguments.positional(0), std::move(options));
  if (!model)
    return model.takeError();
  Expected<Executor &> executor = (*model)->executor();
  if (!executor)
    return executor.takeError();
  SampleRequest request;
  request.context = contextOf(sizes.context, executor->vocabulary());
  request.prompts.resize(1);
  request.length = 1;
  if (auto first = (*model)->sample(request); !first) // what is made at the first call
    return first.takeError();
  request.length = sizes.length;
  out() << "texts at once     tokens        tokens/s     tokens/s of one processor\n";
  for (int round = 0; round < 2; ++round) {
    if (Error error = measurePlain(*executor, request.context, sizes.length))
      return std::move(error);
    for (size_t texts : {1, 4, 16, 64}) {
      request.prompts.assign(texts, {});
      if (Error error = measure(std::to_string(texts), [&]() -> Expected<int64_t> {
            auto sampled = (*model)->sample(request);
            return sampled ? Expected<int64_t>(sampled->tokens) : sampled.takeError();
          }))
        return std::move(error);
    }
  }
  return ExitGood;
}

} // namespace

int main(int argc, char **argv) {
  Command command{"ctxc-sample-bench",
                  "time a model that writes texts",
                  {"MODEL"},
                  {{"--context", "N", "tokens of the context; default: 128"},
                   {"--length", "N", "tokens of each text; default: 16"},
                   {"--threads", "N", "threads of the kernels; default: one a core"}},
                  "The times of texts at once include reading the context.",
                  "  ctxc-sample-bench build/models/gemma-3-270m --threads 2\n",
                  run};
  beginProgram();
  std::vector<llvm::StringRef> words(argv + 1, argv + argc);
  return runCommand(command, words);
}
