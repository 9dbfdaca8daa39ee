// ctxc batch
#include "ctxc/Batch/Batch.h"
#include "Commands.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/TokenProgress.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// What the files of a directory hold, on one line.
static void printCounts(StringRef directory, const BatchCounts &counts) {
  out() << printableLine(directory) << ": " << counted(counts.records, "record") << ", "
        << counted(counts.patches, "patch");
  if (counts.compared)
    out() << ", " << counts.compared - counts.unequal << " of " << counts.compared << " verified";
  out() << "\n";
  if (counts.errors)
    out() << "note: " << counted(counts.errors, "record") << (counts.errors == 1 ? " is" : " are")
          << " of a line that could not be done; the column 'error' says why\n";
}

/// "2/8" as the second of eight.
static Error readPart(StringRef text, BatchRequest &request) {
  auto [part, parts] = text.split('/');
  if (part.getAsInteger(10, request.part) || parts.getAsInteger(10, request.parts) ||
      request.part < 1 || request.part > request.parts || request.parts > 1 << 20)
    return makeError("--part: found '" + text + "', expected I/N with 1 <= I <= N");
  return Error::success();
}

static Expected<BatchRequest> batchRequest(const Arguments &arguments) {
  BatchRequest request;
  request.prompts = arguments.positional(1).str();
  request.directory = arguments.get("-o", "").str();
  request.allPositions = arguments.get("--positions", "last") == "all";
  llvm::SmallVector<StringRef> words;
  arguments.get("--make", "patch").split(words, ',');
  if (Error error = batchMake(words).moveInto(request.make))
    return makeError("--" + llvm::toString(std::move(error)));
  if (Error error = readPart(arguments.get("--part", "1/1"), request))
    return std::move(error);
  if (Error error = arguments.integer("--window", 1, 1 << 20, 64).moveInto(request.window))
    return std::move(error);
  auto shard = arguments.integer("--shard", 1, 1 << 20, 64);
  if (!shard)
    return shard.takeError();
  request.shardBytes = uint64_t(*shard) << 20;
  if (auto progress = progressOnTerminal("lines")) {
    progress(0, 0);
    request.progress = progress;
  }
  return request;
}

static Expected<int> runMerge(const Arguments &arguments) {
  std::vector<std::string> directories;
  for (StringRef directory : arguments.all("--merge"))
    directories.push_back(directory.str());
  StringRef to = arguments.get("-o", "");
  Expected<BatchCounts> counts = mergeBatch(directories, to);
  if (!counts)
    return counts.takeError();
  printCounts(to, *counts);
  return ExitGood;
}

static Expected<int> runTake(const Arguments &arguments) {
  StringRef place = arguments.get("--line", "");
  auto [lineText, positionText] = place.split(':');
  int64_t line, number;
  std::optional<int64_t> position;
  bool isLine = !lineText.getAsInteger(10, line) && line > 0;
  if (place.contains(':') && isLine) {
    isLine = !positionText.getAsInteger(10, number);
    position = number;
  }
  if (!isLine)
    return makeError("--line: found '" + place + "', expected LINE or LINE:POSITION");
  StringRef path = arguments.get("-o", "");
  if (Error error = takeFromBatch(arguments.get("--take", ""), line, position, path))
    return std::move(error);
  out() << printableLine(path) << ": the patch of line " << place << "\n";
  return ExitGood;
}

/// One of the three forms of the command, whole.
static Error checkForm(const Arguments &arguments) {
  if (!arguments.has("-o"))
    return makeError("expected -o PATH");
  if (arguments.has("--merge") && arguments.has("--take"))
    return makeError("--take: does not go with --merge");
  if (arguments.has("--take") != arguments.has("--line"))
    return makeError("--take DIR and --line LINE go together");
  return Error::success();
}

static Expected<int> runBatchCommand(const Arguments &arguments) {
  if (Error error = checkForm(arguments))
    return std::move(error);
  if (arguments.has("--merge"))
    return runMerge(arguments);
  if (arguments.has("--take"))
    return runTake(arguments);
  Expected<BatchRequest> request = batchRequest(arguments);
  if (!request)
    return request.takeError();
  Expected<LoadOptions> options = loadOptions(arguments);
  if (!options)
    return options.takeError();
  if (options->weights.seed)
    return makeError("--weights: a patch file names the checkpoint that it was made for, and "
                     "random weights are none; expected --weights DIR");
  options->progress = {}; // there are many calls
  auto model = openToRun(arguments, arguments.positional(0), std::move(*options));
  if (!model)
    return model.takeError();
  Expected<BatchResult> result = runBatch(**model, *request);
  if (!result)
    return result.takeError();
  printCounts(request->directory, result->counts);
  int64_t before = result->counts.records - result->added;
  if (before > 0)
    out() << before << " of them were there\n";
  if (result->tokens)
    out() << "read " << counted(result->read, "token") << " of " << result->tokens
          << "; the others begin a prompt as the one before did\n";
  return ExitGood;
}

static std::vector<OptionSpec> batchOptions() {
  OptionSpec merge = reads({"--merge", "DIR",
                            "in place of MODEL: merge the complete parts in one or several\n"
                            "directories into the new directory that -o names"});
  OptionSpec take =
      reads({"--take", "DIR", "in place of MODEL: write one patch of a batch to a separate file"});
  merge.repeatable = true;
  merge.insteadOfPositionals = take.insteadOfPositionals = true;
  return {writesInto({"-o", "PATH",
                      "the directory of the results, where an interrupted run continues; with\n"
                      "--merge, a new directory; with --take, a file",
                      /*choices=*/{}, /*required=*/true}),
          {"--make", "NAMES",
           "what to make for lines that do not say it: patch (default), metrics or layers, or\n"
           "several of them, separated by commas"},
          {"--positions",
           "WHICH",
           "which positions, for lines that do not say it: the last (default), or all from 1 on",
           {"last", "all"}},
          {"--part", "I/N", "process the I-th of N parts of the lines; I is 1 to N"},
          {"--window", "N",
           "how many lines are searched together for prefixes that they share; parts consist\n"
           "of whole windows; default 64"},
          {"--shard", "MIB", "the approximate size of a file of patches; default 64"},
          reads({"--tokenizer", "PATH",
                 "a tokenizer in place of the model's own, as for an .mlir model: a checkpoint's\n"
                 "directory, a tokenizer.json, a tokenizer.model, or a GGUF file"}),
          merge,
          take,
          {"--line", "LINE",
           "with --take, which patch: the number of its line, from 1 on, or LINE:POSITION if the\n"
           "line has several"}};
}

Command driver::batchCommand() {
  Command command{
      "batch",
      "write patches, metrics and norms of many prompts to a directory; resumable",
      {"MODEL", "FILE"},
      batchOptions(),
      "Each line of FILE is a JSON object that asks for a prompt's patches:\n\n"
      "  {\"id\": \"q17\", \"prompt\": \"And David said\", \"make\": [\"patch\", \"metrics\"]}\n"
      "  {\"tokens\": [2, 818, 5279, 529], \"positions\": \"all\", \"keep\": [0]}\n"
      "  {\"messages\": [{\"role\": \"user\", \"content\": \"Who was David?\"}]}\n\n"
      "ctxc writes records-*.jsonl, with an object for each position or bad line, and\n"
      "patches-*.safetensors. Each file is either complete or absent: after an interruption, the\n"
      "same command continues with what is missing. A prefix that prompts share is read once.\n"
      "Parts (--part) may run at the same time, on one or many machines, and write to one or\n"
      "many directories.",
      "  ctxc batch gemma-3-270m prompts.jsonl -o patches\n"
      "  ctxc batch gemma-3-270m prompts.jsonl -o patches --make patch,metrics,layers\n"
      "  ctxc batch gemma-3-270m prompts.jsonl -o patches --part $SLURM_ARRAY_TASK_ID/16\n"
      "  ctxc batch --merge patches -o merged\n"
      "  ctxc batch --take merged --line 12 -o patch.safetensors\n",
      runBatchCommand};
  for (OptionSpec &option : runOptions())
    if (option.name != "--keep" && option.name != "--round-prompts" &&
        option.name != "--split-prompts")
      command.options.push_back(option);
  return command;
}
