// ctxc-bench: how fast this machine runs a model's kernels, beside how fast it reads memory.
//
// Each round times, one after the other: reading memory; plain decoding; decoding with a factored
// patch of all layers; Algorithm 1, whole and fused (both streams through all layers and the head,
// every factor given out); the prefill of a prompt; and the patches of every position of it.
// The machine is another from round to round: ratios within one are what counts.
#include "bench/Bandwidth.h"
#include "bench/WeightBytes.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "tools/ctxc/Commands.h"
#include "tools/ctxc/Session.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <chrono>
#include <numeric>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

namespace {

constexpr const char *columns[] = {"read_gbps", "plain_ms",   "apply_ms",
                                   "patch_ms",  "prefill_ms", "positions_ms"};
using Round = std::array<double, std::size(columns)>;

/// A prompt is read so often in a round: the first time its memory is new.
constexpr int promptRepeats = 3;

struct Sizes {
  int64_t rounds, tokens, context, prefill;
  double seconds;
};

double median(std::vector<double> numbers) {
  llvm::sort(numbers);
  size_t n = numbers.size();
  return n % 2 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

class Bench {
public:
  Bench(Executor &executor, const bench::ReadBandwidth &bandwidth, Sizes sizes)
      : executor(executor), bandwidth(bandwidth), sizes(sizes),
        full(executor.start(sizes.context + 1)), reduced(executor.start(1)) {}

  Error warmUp() {
    ForwardOptions options;
    auto logits = executor.forward(*full, tokens(sizes.context), positions(sizes.context), options);
    if (!logits)
      return logits.takeError();
    return round().takeError();
  }

  Expected<Round> round() {
    Round result{best(bandwidth.measure(sizes.seconds)).gigabytesPerSecond};
    std::vector<double> plain, applied, patched;
    int64_t token = 5;
    for (int64_t i = 0; i < sizes.tokens; ++i) {
      Expected<int64_t> next = 0;
      PatchOptions options;
      options.logits = false;
      Expected<PatchStep> step = PatchStep();
      patched.push_back(milliseconds(
          [&] { step = executor.patch(*full, *reduced, token, sizes.context, options); }));
      if (!step)
        return step.takeError();
      full->truncate(sizes.context);
      applied.push_back(milliseconds([&] { next = run(*reduced, token, &step->patch); }));
      if (!next)
        return next.takeError();
      if (*next != step->reducedNext)
        return makeError("the patched run gives another token than the fused one");
      plain.push_back(milliseconds([&] { next = run(*full, token, nullptr); }));
      if (!next)
        return next.takeError();
      token = *next;
    }
    result[1] = median(plain);
    result[2] = median(applied);
    result[3] = median(patched);
    return prompt(result);
  }

private:
  /// The prompt at once, without and with its patches.
  Expected<Round> prompt(Round result) {
    auto ids = tokens(sizes.prefill), at = positions(sizes.prefill);
    Error error = Error::success();
    llvm::ErrorAsOutParameter checked(error);
    std::unique_ptr<Run> run = executor.start(sizes.prefill);
    auto measure = [&](llvm::function_ref<Error()> work) {
      std::vector<double> times;
      for (int i = 0; i < promptRepeats && !error; ++i) {
        run->truncate(0);
        times.push_back(milliseconds([&] { error = work(); }));
      }
      return median(times);
    };
    result[4] = measure(
        [&]() -> Error { return executor.forward(*run, ids, at, ForwardOptions()).takeError(); });
    if (!error && !executor.isBidirectional()) {
      double sum = 0; // what is made is looked at
      result[5] = measure([&] {
        return executor.patchEach(*run, *reduced, ids, at, PatchEachOptions(),
                                  [&](const TokenPatch &token) -> Error {
                                    sum += token.replayError.front();
                                    return Error::success();
                                  });
      });
    }
    if (error)
      return std::move(error);
    return result;
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

  template <typename Work> static double milliseconds(Work work) {
    auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  }

  Executor &executor;
  const bench::ReadBandwidth &bandwidth;
  Sizes sizes;
  std::unique_ptr<Run> full, reduced;
};

void writeJson(llvm::raw_ostream &os, llvm::StringRef model, Session &session, int64_t threads,
               int64_t weightBytes, llvm::ArrayRef<Round> rounds, const Round &medians) {
  llvm::json::OStream json(os, 2);
  auto write = [&](const Round &round) {
    for (auto [name, value] : llvm::zip(columns, round))
      json.attribute(name, value);
  };
  json.object([&] {
    json.attribute("model", model);
    json.attribute("dtype", session.settings().dtype);
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
  os << llvm::format("%-22s %8.1f GB/s\n", "reading memory", m[0]);
  line("plain decoding", m[1], gigabytes / m[1] * 1e3 / m[0], "reading memory");
  line("a patch applied", m[2], m[2] / m[1], "plain");
  line("a patch made", m[3], m[3] / m[1], "plain");
  os << llvm::format("%-22s %8.1f ms   %5.0f tokens/s\n", "prefill", m[4],
                     sizes.prefill / m[4] * 1e3);
  if (m[5])
    os << llvm::format("%-22s %8.1f ms   %5.0f tokens/s   %.2f x prefill\n", "patches of them all",
                       m[5], sizes.prefill / m[5] * 1e3, m[5] / m[4]);
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
  Sizes sizes{integer("--rounds", 5), integer("--tokens", 16), integer("--context", 64),
              integer("--prefill", 512), integer("--seconds", 1) * 1.0};
  if (errors)
    return std::move(errors);
  auto options = RunOptions::parse(arguments);
  if (!options)
    return options.takeError();
  int threads =
      options->threads > 0 ? options->threads : llvm::hardware_concurrency().compute_thread_count();
  options->threads = threads;
  auto session = Session::open(arguments.positional(0), std::move(*options));
  if (!session)
    return session.takeError();

  bench::ReadBandwidth bandwidth(threads);
  Bench bench((*session)->executor(), bandwidth, sizes);
  if (Error error = bench.warmUp())
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
  int64_t bytes = bench::weightBytes((*session)->getProgram());
  auto path = arguments.get("--json");
  if (!path) {
    writeText(llvm::outs(), sizes, bytes, medians);
    return ExitGood;
  }
  auto write = [&](llvm::raw_ostream &os) {
    writeJson(os, arguments.positional(0), **session, threads, bytes, rounds, medians);
  };
  if (*path == "-") {
    write(llvm::outs());
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
  Command command{"ctxc-bench",
                  "time a model's kernels",
                  {"MODEL"},
                  {{"--rounds", "N", "medians of N rounds; default: 5"},
                   {"--tokens", "N", "tokens decoded in a round; default: 16"},
                   {"--context", "N", "tokens before them; default: 64"},
                   {"--prefill", "N", "tokens of the prompt; default: 512"},
                   {"--seconds", "N", "of each round for reading memory; default: 1"},
                   {"--json", "PATH", "write JSON, - for the screen"}},
                  "",
                  "",
                  run};
  for (OptionSpec &option : runOptions())
    command.options.push_back(option);
  std::vector<llvm::StringRef> words(argv + 1, argv + argc);
  return runCommand(command, words);
}
