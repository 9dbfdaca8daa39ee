// ctxc tune
#include "Commands.h"
#include "ctxc/Lowering/ReadingsCache.h"
#include "ctxc/Report/TuneReport.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/TokenProgress.h"
#include "tools/CommandLine/Values.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

static Expected<int> runTune(const Arguments &arguments) {
  auto threads = arguments.integer("--threads", 1, 1024, 0);
  auto memory = arguments.integer("--memory", 1, int64_t(1) << 20, 0);
  if (!threads || !memory)
    return llvm::joinErrors(threads.takeError(), memory.takeError());
  auto json = arguments.get("--json");
  if (json)
    if (Error error = checkWritable(*json))
      return std::move(error);
  const ReadingsCache cache = ReadingsCache::ofUser();
  TuneOptions options;
  options.threads = int(*threads);
  options.bytes = *memory * 1000000;
  options.progress = progressOnTerminal("kernels");
  Expected<Tuning> tuning = tune(options);
  if (!tuning)
    return tuning.takeError();
  const bool isKept = cache.isOn() && !arguments.has("--dry-run");
  if (isKept)
    cache.insert(CpuTarget::host(), tuning->threads, tuning->readings());
  writeTuneText(*tuning, isKept ? cache.path() : "", out());
  if (json)
    if (Error error = writeFileAtomically(*json, [&](llvm::raw_pwrite_stream &os) {
          writeTuneJson(*tuning, os);
          return Error::success();
        }))
      return std::move(error);
  return ExitGood;
}

Command driver::tuneCommand() {
  return {
      "tune",
      "measure how this machine reads weights fastest, for later runs",
      {},
      {{"--threads", "N", "threads that run the kernels (default: one for each core)"},
       {"--memory", "N",
        "megabytes of matrices that are timed (default: twice the last-level cache, from 256 MB\n"
        "to a quarter of the memory that is available)"},
       {"--dry-run", "", "show what is fastest, and store nothing"},
       writes({"--json", "FILE", "also write the measurements as JSON"})},
      "Every way of reading a matrix for a token is timed, which takes about half a minute. "
      "Kernels for\nthis processor and the same number of threads then use the fastest way; "
      "their results do not\nchange. Without this command they use what is fastest on similar "
      "processors. Let the machine do\nnothing else meanwhile.",
      "  ctxc tune\n  ctxc tune --threads 1 --json tuning.json\n",
      runTune};
}
