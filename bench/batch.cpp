// ctxc-batch-bench: prompts through `ctxc batch` against calls of Model::verify and Model::patch of
// one prompt each, in the same process and in turn, in wall time and in processor time; and what
// shared beginnings save.
#include "ctxc/Batch/Batch.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Unfinished.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include <chrono>
#include <ctime>
#include <sys/resource.h>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

namespace {

using Prompts = std::vector<std::vector<int64_t>>;

/// Prompts of `length` tokens behind `shared` ones that all have. The others differ from the first
/// on, as far as the vocabulary goes.
Prompts makePrompts(int64_t count, int64_t shared, int64_t length, int64_t vocabulary) {
  Prompts prompts(count);
  for (auto [i, tokens] : llvm::enumerate(prompts)) {
    for (int64_t at = 0; at < shared; ++at)
      tokens.push_back((7 + 131 * at) % vocabulary);
    for (int64_t at = 0; at < length; ++at)
      tokens.push_back((3 + 7919 * int64_t(i) + 17 * at * (int64_t(i) + 1)) % vocabulary);
  }
  return prompts;
}

int64_t peakMiB() {
  struct rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

class Bench {
public:
  Bench(Model &model, llvm::StringRef folder) : model(model), folder(folder) {}

  /// Calls `work` for `prompts` prompts, and prints a line.
  Error measure(llvm::StringRef name, size_t prompts, llvm::function_ref<Error()> work) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    const std::clock_t processor = std::clock();
    if (Error error = work())
      return error;
    double used = double(std::clock() - processor) / CLOCKS_PER_SEC;
    double wall = std::chrono::duration<double>(Clock::now() - begin).count();
    out() << llvm::format("%-34s%8zu%12.0f%14.3f%12lld\n", name.str().c_str(), prompts,
                          prompts / wall, 1000 * used / prompts, (long long)peakMiB());
    flushOutput();
    return Error::success();
  }

  Error alone(const Prompts &prompts, bool isVerified) {
    return measure(isVerified ? "calls of Model::verify" : "calls of Model::patch", prompts.size(),
                   [&]() -> Error {
                     for (const std::vector<int64_t> &tokens : prompts) {
                       RunRequest request;
                       request.tokens = toInputs(tokens);
                       if (!isVerified) {
                         if (auto step = model.patch(request); !step)
                           return step.takeError();
                         continue;
                       }
                       auto result = model.verify(request, 1, [](const VerifyStep &) {});
                       if (!result)
                         return result.takeError();
                     }
                     return Error::success();
                   });
  }

  Error batch(const Prompts &prompts, BatchMake make, llvm::StringRef name) {
    BatchRequest request;
    request.prompts = folder + "/prompts.jsonl";
    request.directory = folder + "/" + std::to_string(directories++);
    request.make = make;
    std::error_code code;
    {
      llvm::raw_fd_ostream os(request.prompts, code);
      for (const std::vector<int64_t> &tokens : prompts)
        os << "{\"tokens\": " << llvm::json::Value(llvm::json::Array(tokens)) << "}\n";
    }
    BatchResult result;
    if (Error error = measure(name, prompts.size(),
                              [&] { return runBatch(model, request).moveInto(result); }))
      return error;
    out() << "  read " << result.read << " of " << result.tokens << " tokens\n";
    llvm::sys::fs::remove_directories(request.directory);
    return Error::success();
  }

private:
  Model &model;
  std::string folder;
  int directories = 0;
};

Expected<int> run(const Arguments &arguments) {
  int64_t count, length, shared;
  if (Error error = arguments.integer("--prompts", 1, 1 << 24, 10000).moveInto(count))
    return std::move(error);
  if (Error error = arguments.integer("--length", 2, 1 << 20, 8).moveInto(length))
    return std::move(error);
  if (Error error = arguments.integer("--shared", 1, 1 << 20, 200).moveInto(shared))
    return std::move(error);
  Expected<LoadOptions> options = loadOptions(arguments);
  if (!options)
    return options.takeError();
  auto model = openModel(arguments.positional(0), std::move(*options));
  if (!model)
    return model.takeError();
  Expected<const Program &> program = (*model)->program();
  if (!program)
    return program.takeError();
  Expected<Unfinished> folder = Unfinished::temporaryDirectory();
  if (!folder)
    return folder.takeError();
  Bench bench(**model, folder->path());
  Prompts few = makePrompts(std::max<int64_t>(1, count / 10), 0, length, program->vocabulary),
          many = makePrompts(count, 0, length, program->vocabulary),
          behind =
              makePrompts(std::max<int64_t>(1, count / 10), shared, length, program->vocabulary);
  out()
      << "                                   prompts   prompts/s    ms of processor    peak MiB\n";
  const BatchMake patch{true, false, false}, metrics{false, true, false};
  for (int round = 0; round < 2; ++round) // the first also makes what is made once
    if (Error error = llvm::joinErrors(
            llvm::joinErrors(bench.alone(few, true), bench.batch(few, metrics, "batch, metrics")),
            llvm::joinErrors(bench.alone(few, false), bench.batch(few, patch, "batch, patches"))))
      return std::move(error);
  if (Error error = bench.batch(many, metrics, "batch, metrics, all prompts"))
    return std::move(error);
  if (Error error = bench.batch(many, patch, "batch, patches, all prompts"))
    return std::move(error);
  if (Error error = bench.alone(behind, true))
    return std::move(error);
  if (Error error = bench.batch(behind, metrics, "batch, a shared beginning"))
    return std::move(error);
  return ExitGood;
}

} // namespace

int main(int argc, char **argv) {
  Command command{
      "ctxc-batch-bench",
      "time many prompts",
      {"MODEL"},
      {{"--prompts", "N",
        "short prompts; a tenth of them where each is also called; default: 10000"},
       {"--length", "N", "tokens of each; default: 8"},
       {"--shared", "N", "tokens of the beginning that the last prompts share; default: 200"}},
      "Calls and batches take turns, so that what else the machine does falls on both.",
      "  ctxc-batch-bench examples/models/gemma3-kjv-1m --threads 1\n",
      run};
  for (OptionSpec &option : runOptions())
    command.options.push_back(option);
  beginProgram();
  std::vector<llvm::StringRef> words(argv + 1, argv + argc);
  return runCommand(command, words);
}
