// ctxc-gpu-record: records a model's work on an NVIDIA GPU in a file, which ctxc-gpu-replay runs.
//
// The work is plain decoding after a context, Algorithm 1 complete and fused, and decoding with its
// patch of all layers; or (--prompt) reading a prompt and making the patches of all its positions.
// Without --execute nothing is computed here: weights are described as random numbers, so that the
// model may have any size, and runs are measured by the replay. With --execute, the device that
// --target names (a real one, or the tests' stand-in) runs everything with the model's own weights,
// and the replay compares its results with those.
#include "bench/gpu/RecordingDevice.h"
#include "ctxc/Runtime/GPU/GpuExecutor.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include <numeric>

using namespace ctxc;
using namespace ctxc::bench;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

namespace {

/// A token after a context of `context` tokens: plain, patched, and in the reduced run with the
/// patch and, with `withControl`, without it.
Error work(Executor &executor, RecordingDevice &device, int64_t context, bool withControl) {
  std::vector<int64_t> tokens, positions(context);
  for (int64_t i = 0; i < context; ++i)
    tokens.push_back((7 + 131 * i) % executor.vocabulary());
  std::iota(positions.begin(), positions.end(), 0);
  std::unique_ptr<Run> full = executor.start(context + 1), reduced = executor.start(1);
  auto prompt = executor.forward(*full, tokens, positions, ForwardOptions());
  if (!prompt)
    return prompt.takeError();

  const int64_t token = 5 % executor.vocabulary();
  auto once = [&](const char *label, Run &run, const Patch *patch) -> Error {
    ForwardOptions options;
    options.append = false;
    options.patch = patch;
    device.label = label;
    auto next = executor.next(run, token, context, options);
    device.label.clear();
    return next ? Error::success() : next.takeError();
  };
  if (Error error = once("plain", *full, nullptr))
    return error;
  PatchOptions options;
  options.logits = false;
  device.label = "patch";
  auto step = executor.patch(*full, *reduced, token, context, options);
  device.label.clear();
  if (!step) {
    device.note("patch", llvm::toString(step.takeError()));
    return Error::success();
  }
  if (withControl)
    if (Error error = once("control", *reduced, nullptr))
      return error;
  return once("apply", *reduced, &step->patch);
}

/// Reads a prompt of `count` tokens and makes the patches of all positions, in chunks of `rows`.
/// The last chunk, which sees the most tokens, has a label of its own. Work on patches outside of
/// the device is left out.
Error readPrompt(Executor &executor, RecordingDevice &device, int64_t count, int64_t rows,
                 bool withPatches) {
  std::vector<int64_t> tokens, positions(count);
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back((7 + 131 * i) % executor.vocabulary());
  std::iota(positions.begin(), positions.end(), 0);
  int64_t last = count - (count - 1) % rows - 1;
  const std::pair<int64_t, int64_t> parts[] = {{0, last}, {last, count - last}};
  auto labelled = [&](llvm::StringRef label, int64_t from, auto work) {
    device.label = (label + (from ? ", last chunk" : "")).str();
    Error error = work();
    device.label.clear();
    return error;
  };
  std::unique_ptr<Run> run = executor.start(count);
  for (auto [from, size] : parts)
    if (size)
      if (Error error = labelled("prefill", from, [&, from = from, size = size] {
            return executor
                .forward(*run, llvm::ArrayRef(tokens).slice(from, size),
                         llvm::ArrayRef(positions).slice(from, size), ForwardOptions())
                .takeError();
          }))
        return error;
  if (!withPatches)
    return Error::success();
  run->truncate(0);
  std::unique_ptr<Run> reduced = executor.start(1);
  for (auto [from, size] : parts)
    if (size)
      if (Error error = labelled("patches", from, [&, from = from, size = size] {
            return executor.patchEach(*run, *reduced, llvm::ArrayRef(tokens).slice(from, size),
                                      llvm::ArrayRef(positions).slice(from, size), {},
                                      [](const TokenPatch &) { return Error::success(); });
          })) {
        device.note("patches", llvm::toString(std::move(error)));
        return Error::success();
      }
  return Error::success();
}

Expected<int> run(const Arguments &arguments) {
  auto context = arguments.integer("--context", 1, 1 << 16, 64);
  if (!context)
    return context.takeError();
  auto prompt = arguments.integer("--prompt", 2, 1 << 20, 0);
  if (!prompt)
    return prompt.takeError();
  auto rows = arguments.integer("--rows", 2, 4096, 1024);
  if (!rows)
    return rows.takeError();
  auto options = loadOptions(arguments);
  if (!options)
    return options.takeError();
  std::string target = options->gpu.empty() ? "cuda:sm_90" : options->gpu;
  bool executes = arguments.has("--execute");
  const bool rounds = options->prompts == PromptProducts::Rounded;
  options->prompts = PromptProducts::Exact;
  options->needWeights = executes;
  auto model = openModel(arguments.positional(0), std::move(*options));
  if (!model)
    return model.takeError();
  if (Error error = (*model)->checkNumerics())
    return std::move(error);
  Expected<const Program &> program = (*model)->program();
  if (!program)
    return program.takeError();
  std::unique_ptr<Device> real;
  if (executes) {
    auto opened = Device::open(target);
    if (!opened)
      return makeError("--target: " + llvm::toString(opened.takeError()));
    real = std::move(*opened);
    target = real->target();
  }
  auto write = [&](llvm::raw_pwrite_stream &os) -> Error {
    DrawnWeights drawn;
    auto device =
        std::make_unique<RecordingDevice>(target, std::move(real), executes ? nullptr : &drawn, os);
    RecordingDevice &recording = *device;
    Expected<Weights &> stored = executes ? (*model)->weights() : Expected<Weights &>(drawn);
    if (!stored)
      return stored.takeError();
    auto executor = createGpuExecutor(*program, *stored, std::move(device), {rounds, *rows});
    if (!executor)
      return executor.takeError();
    return *prompt ? readPrompt(**executor, recording, *prompt, *rows, !rounds)
                   : work(**executor, recording, *context, executes);
  };
  if (Error error = writeFileAtomically(arguments.get("-o", ""), write))
    return std::move(error);
  return ExitGood;
}

} // namespace

int main(int argc, char **argv) {
  Command command{"ctxc-gpu-record",
                  "write down a model's work on an NVIDIA GPU, for ctxc-gpu-replay",
                  {"MODEL"},
                  {writes({"-o", "PATH", "where to; required"}),
                   {"--context", "N", "tokens before the measured one; default: 64"},
                   {"--prompt", "N", "read N tokens, and patch them all, in place of decoding"},
                   {"--rows", "N", "tokens of a chunk; default: 1024"},
                   {"--execute", "", "run it here too, with the model's weights, to compare with"}},
                  "",
                  "",
                  run};
  for (OptionSpec &option : runOptions())
    command.options.push_back(option);
  beginProgram();
  std::vector<llvm::StringRef> words(argv + 1, argv + argc);
  return runCommand(command, words);
}
