// ctxc-bench: how fast this machine runs a model's kernels, compared with how fast it reads memory.
//
// Each round times in turn: reading memory; plain decoding; decoding with a factored patch of all
// layers; decoding that makes the patches of all layers; Algorithm 1, both complete and fused
// (where the reduced run ends in logits too); the prefill of a prompt; and the patches of all its
// positions. For decoding, every token goes through all kinds of decoding and one reading of
// memory: the machine's speed changes from second to second, so that only ratios of neighbouring
// measurements count.
#include "bench/WeightBytes.h"
#include "ctxc/Runtime/Bandwidth.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <chrono>
#include <iostream>
#include <numeric>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

namespace {

enum Column { ReadGbps, Plain, Applied, Patches, Whole, Prefill, Positions, ColumnCount };
constexpr const char *columns[ColumnCount] = {
    "read_gbps", "plain_ms", "apply_ms", "patches_ms", "patch_ms", "prefill_ms", "positions_ms"};
using Round = std::array<double, ColumnCount>;

struct Sizes {
  int64_t rounds, tokens, context, prefill;
  double seconds;
  size_t buffer; ///< the most bytes of each of the two buffers by which memory is measured
};

double median(std::vector<double> numbers) {
  llvm::sort(numbers);
  size_t n = numbers.size();
  return n % 2 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

class Bench {
public:
  Bench(Executor &executor, int threads, Sizes sizes)
      : executor(executor), threads(threads), sizes(sizes),
        full(executor.start(sizes.context + 1, Keeps::Seen)), reduced(executor.start(1)),
        prompt(executor.start(sizes.prefill, Keeps::Seen)) {}

  Error readContext() {
    ForwardOptions options;
    return executor.forward(*full, tokens(sizes.context), positions(sizes.context), options)
        .takeError();
  }

  Expected<Round> round() {
    Round result{};
    if (Error error = measure("read", result))
      return std::move(error);
    if (Error error = measure("decode", result))
      return std::move(error);
    if (Error error = measure("prefill", result))
      return std::move(error);
    if (!executor.isBidirectional())
      if (Error error = measure("positions", result))
        return std::move(error);
    return result;
  }

  /// Measures what a line of --ask names, and fills its columns.
  Error measure(llvm::StringRef name, Round &result) {
    if (name == "read") {
      ReadResult fastest = best(bandwidth().measure(sizes.seconds));
      pattern = fastest.pattern;
      result[ReadGbps] = fastest.gigabytesPerSecond;
    } else if (name == "plain")
      return decode(result, {Plain});
    else if (name == "patch")
      return decode(result, {Whole});
    else if (name == "token")
      return decode(result, {Whole, Plain, ReadGbps});
    else if (name == "decode")
      return decode(result, {Whole, Patches, Applied, Plain, ReadGbps});
    else if (name == "prefill")
      return prefill(result);
    else if (name == "positions")
      return patchAll(result);
    else
      return makeError("'" + name +
                       "' is none of read, plain, patch, token, decode, prefill, positions");
    return Error::success();
  }

private:
  /// Medians over the tokens; each token is measured for all columns of `wanted`.
  Error decode(Round &result, std::initializer_list<Column> wanted) {
    std::array<std::vector<double>, ColumnCount> times;
    auto time = [&](Column column, llvm::function_ref<Error()> work) -> Error {
      if (!llvm::is_contained(wanted, column))
        return Error::success();
      return timed(times[column].emplace_back(), work);
    };
    int64_t token = 5;
    for (int64_t i = 0; i < sizes.tokens; ++i) {
      PatchStep step;
      auto patch = [&](bool head) -> Error {
        PatchOptions options;
        options.logits = false;
        options.reducedHead = head;
        auto made = executor.patch(*full, *reduced, token, sizes.context, options);
        if (made)
          step = std::move(*made);
        return made.takeError();
      };
      int64_t next = (token + 131) % executor.vocabulary();
      auto decoded = [&](Run &run, const Patch *patch, int64_t &into) -> Error {
        auto found = this->run(run, token, patch);
        if (found)
          into = *found;
        return found.takeError();
      };
      if (Error error = time(Patches, [&] { return patch(false); }))
        return error;
      full->truncate(sizes.context);
      if (Error error = time(Whole, [&] { return patch(true); }))
        return error;
      full->truncate(sizes.context);
      int64_t patched = step.reducedNext;
      if (Error error = time(Applied, [&] { return decoded(*reduced, &step.patch, patched); }))
        return error;
      if (patched != step.reducedNext)
        return makeError("the patched run gives another token than the fused one");
      if (Error error = time(Plain, [&] { return decoded(*full, nullptr, next); }))
        return error;
      token = next;
      if (!llvm::is_contained(wanted, ReadGbps))
        continue;
      times[ReadGbps].push_back(bandwidth().read(pattern)); // in the way that was fastest before
      if (Error error = decoded(*full, nullptr, next))      // leaves the caches as decoding does
        return error;
    }
    for (Column column : wanted)
      result[column] = median(times[column]);
    return Error::success();
  }

  Error prefill(Round &result) {
    auto ids = tokens(sizes.prefill), at = positions(sizes.prefill);
    prompt->truncate(0);
    return timed(result[Prefill], [&]() -> Error {
      return executor.forward(*prompt, ids, at, ForwardOptions()).takeError();
    });
  }

  /// Makes the patches of all positions of the prompt.
  Error patchAll(Round &result) {
    auto ids = tokens(sizes.prefill), at = positions(sizes.prefill);
    double sum = 0; // keeps the results from being optimised away
    prompt->truncate(0);
    return timed(result[Positions], [&] {
      return executor.patchEach(*prompt, *reduced, ids, at, PatchEachOptions(),
                                [&](const TokenPatch &token) -> Error {
                                  sum += token.replayError.front();
                                  return Error::success();
                                });
    });
  }

  Expected<int64_t> run(Run &run, int64_t token, const Patch *patch) {
    ForwardOptions options;
    options.patch = patch;
    options.append = false;
    return executor.next(run, token, sizes.context, options);
  }

  std::vector<int64_t> tokens(int64_t count) const {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < count; ++i)
      ids.push_back((7 + 131 * i) % executor.vocabulary());
    return ids;
  }
  static std::vector<int64_t> positions(int64_t count) {
    std::vector<int64_t> at(count);
    std::iota(at.begin(), at.end(), 0);
    return at;
  }

  static Error timed(double &milliseconds, llvm::function_ref<Error()> work) {
    auto begin = std::chrono::steady_clock::now();
    Error error = work();
    milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return error;
  }

  /// Takes memory only where it is measured.
  const ReadBandwidth &bandwidth() {
    if (!memory)
      memory.emplace(threads, sizes.buffer);
    return *memory;
  }

  Executor &executor;
  int threads;
  std::optional<ReadBandwidth> memory;
  Sizes sizes;
  ReadPattern pattern{2, 0, true};
  std::unique_ptr<Run> full, reduced, prompt;
};

void writeJson(llvm::raw_ostream &os, const Model &model, int64_t threads, int64_t weightBytes,
               llvm::ArrayRef<Round> rounds, const Round &medians) {
  llvm::json::OStream json(os, 2);
  auto write = [&](const Round &round) {
    for (auto [name, value] : llvm::zip(columns, round))
      json.attribute(name, value);
  };
  json.object([&] {
    json.attribute("format", "ctxc-bench");
    json.attribute("model", model.name());
    json.attribute("dtype", model.storage());
    json.attribute("threads", threads);
    json.attribute("weight_bytes", weightBytes);
    json.attributeArray("rounds", [&] {
      for (const Round &round : rounds)
        json.object([&] { write(round); });
    });
    json.attributeObject("medians", [&] { write(medians); });
  });
  os << "\n";
}

void writeText(llvm::raw_ostream &os, const Sizes &sizes, int64_t weightBytes, const Round &m) {
  double gigabytes = weightBytes / 1e9;
  auto line = [&](const char *what, double ms, double ratio, const char *of) {
    os << llvm::format("%-22s %8.2f ms   %5.1f GB/s   %.2f x %s\n", what, ms, gigabytes / ms * 1e3,
                       ratio, of);
  };
  os << llvm::format("%-22s %8.1f GB/s\n", "reading memory", m[ReadGbps]);
  line("plain decoding", m[Plain], gigabytes / m[Plain] * 1e3 / m[ReadGbps], "reading memory");
  line("a patch applied", m[Applied], m[Applied] / m[Plain], "plain");
  line("patches of all layers", m[Patches], m[Patches] / m[Plain], "plain");
  line("Algorithm 1 whole", m[Whole], m[Whole] / m[Plain], "plain");
  os << llvm::format("%-22s %8.1f ms   %5.0f tokens/s\n", "prefill", m[Prefill],
                     sizes.prefill / m[Prefill] * 1e3);
  if (m[Positions])
    os << llvm::format("%-22s %8.1f ms   %5.0f tokens/s   %.2f x prefill\n", "patches of them all",
                       m[Positions], sizes.prefill / m[Positions] * 1e3, m[Positions] / m[Prefill]);
}

/// Writes a line of JSON about the model, and answers each name of a measurement on standard input
/// with another, until the input ends. What is named for the first time is measured twice, and the
/// first time does not count.
Expected<int> answer(Bench &bench, int64_t weightBytes) {
  out() << llvm::json::Value(llvm::json::Object{{"weight_bytes", weightBytes}}) << "\n";
  flushOutput();
  llvm::StringSet<> warm;
  warm.insert("read");
  for (std::string name; std::getline(std::cin, name);) {
    Round first{}, result{};
    if (warm.insert(name).second)
      if (Error error = bench.measure(name, first))
        return std::move(error);
    if (Error error = bench.measure(name, result))
      return std::move(error);
    llvm::json::OStream json(out());
    json.object([&] {
      for (auto [column, value] : llvm::zip(columns, result))
        if (value)
          json.attribute(column, value);
    });
    out() << "\n";
    flushOutput();
  }
  return ExitGood;
}

Expected<int> run(const Arguments &arguments) {
  Error errors = Error::success();
  auto integer = [&](llvm::StringRef option, int64_t otherwise) {
    auto value = arguments.integer(option, 1, 1 << 20, otherwise);
    if (value)
      return *value;
    errors = llvm::joinErrors(std::move(errors), value.takeError());
    return otherwise;
  };
  Sizes sizes{integer("--rounds", 5),        integer("--tokens", 16),
              integer("--context", 64),      integer("--prefill", 512),
              integer("--seconds", 1) * 1.0, size_t(integer("--buffer", 1 << 20)) << 20};
  if (errors)
    return std::move(errors);
  auto options = loadOptions(arguments);
  if (!options)
    return options.takeError();
  int threads =
      options->threads > 0 ? options->threads : llvm::hardware_concurrency().compute_thread_count();
  options->threads = threads;
  auto model = openToRun(arguments, arguments.positional(0), std::move(*options));
  if (!model)
    return model.takeError();
  Expected<Executor &> executor = (*model)->executor();
  if (!executor)
    return executor.takeError();
  Expected<const Program &> program = (*model)->program();
  if (!program)
    return program.takeError();

  Bench bench(*executor, threads, sizes);
  if (Error error = bench.readContext())
    return std::move(error);
  int64_t bytes = bench::weightBytes(*program);
  if (arguments.has("--ask"))
    return answer(bench, bytes);
  if (Error error = bench.round().takeError()) // warms up
    return std::move(error);
  std::vector<Round> rounds;
  for (int64_t i = 0; i < sizes.rounds; ++i) {
    Expected<Round> round = bench.round();
    if (!round)
      return round.takeError();
    rounds.push_back(*round);
  }
  Round medians;
  for (size_t column = 0; column < medians.size(); ++column) {
    std::vector<double> numbers;
    for (const Round &r : rounds)
      numbers.push_back(r[column]);
    medians[column] = median(numbers);
  }
  auto path = arguments.get("--json");
  if (!path) {
    writeText(out(), sizes, bytes, medians);
    return ExitGood;
  }
  auto write = [&](llvm::raw_ostream &os) {
    writeJson(os, **model, threads, bytes, rounds, medians);
  };
  if (*path == "-") {
    write(out());
    return ExitGood;
  }
  if (Error error = writeFileAtomically(*path, [&](llvm::raw_pwrite_stream &os) {
        write(os);
        return Error::success();
      }))
    return std::move(error);
  return ExitGood;
}

} // namespace

int main(int argc, char **argv) {
  Command command{
      "ctxc-bench",
      "time a model's kernels",
      {"MODEL"},
      {{"--rounds", "N", "medians of N rounds; default: 5"},
       {"--tokens", "N", "tokens decoded in a round; default: 16"},
       {"--context", "N", "tokens before them; default: 64"},
       {"--prefill", "N", "tokens of the prompt; default: 512"},
       {"--seconds", "N", "of each round for reading memory; default: 1"},
       {"--buffer", "MB", "the most that is read at a time to measure memory; default: 10 caches"},
       writes({"--json", "PATH", "write JSON, - for the screen"}),
       {"--ask", "",
        "measure what standard input names, line by line: read, plain, patch, token (these "
        "three), decode, prefill or positions"}},
      "Reads memory, decodes plainly, applies and makes patches and reads a prompt, each in\n"
      "turn; what counts are ratios within a round.",
      "  ctxc-bench build/models/gemma-3-270m --threads 2\n",
      run};
  for (OptionSpec &option : runOptions())
    command.options.push_back(option);
  beginProgram();
  std::vector<llvm::StringRef> words(argv + 1, argv + argc);
  return runCommand(command, words);
}
