// ctxc-gpu-record: a model's work on an NVIDIA GPU, as a file that ctxc-gpu-replay does there.
//
// Plain decoding after a context, Algorithm 1 whole and fused, and decoding with its patch of all
// layers. Without --execute nothing is run here: weights are noted as numbers to be drawn there, of
// a model of any size, and runs are measured there. With it the device that --target names (a real
// one, or the tests' stand-in) runs everything with the model's own weights, and what it gives is
// what the replay compares with.
#include "bench/gpu/RecordingDevice.h"
#include "ctxc/Runtime/GPU/GpuExecutor.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "tools/ctxc/Commands.h"
#include "tools/ctxc/Session.h"
#include <numeric>

using namespace ctxc;
using namespace ctxc::bench;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;

namespace {

/// Tokens after a context of `context`: plain, patched, and with the patch.
Error work(Executor &executor, RecordingDevice &device, int64_t context) {
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
  return once("apply", *reduced, &step->patch);
}

Expected<int> run(const Arguments &arguments) {
  auto context = arguments.integer("--context", 1, 1 << 16, 64);
  if (!context)
    return context.takeError();
  auto options = RunOptions::parse(arguments);
  if (!options)
    return options.takeError();
  std::string target = options->gpu.empty() ? "cuda:sm_90" : options->gpu;
  bool executes = arguments.has("--execute");
  options->gpu.clear();
  options->backend = "reference"; // none is made of it but the weights
  auto session = executes ? Session::open(arguments.positional(0), *options)
                          : Session::plan(arguments.positional(0), *options, Session::Use::Compile);
  if (!session)
    return session.takeError();
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
    Weights &weights = executes ? (*session)->getWeights() : drawn;
    auto executor = createGpuExecutor((*session)->getProgram(), weights, std::move(device));
    return executor ? work(**executor, recording, *context) : executor.takeError();
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
                  {{"-o", "PATH", "where to; required"},
                   {"--context", "N", "tokens before the measured one; default: 64"},
                   {"--execute", "", "run it here too, with the model's weights, to compare with"}},
                  "",
                  "",
                  run};
  for (OptionSpec &option : runOptions())
    command.options.push_back(option);
  std::vector<llvm::StringRef> words(argv + 1, argv + argc);
  return runCommand(command, words);
}
