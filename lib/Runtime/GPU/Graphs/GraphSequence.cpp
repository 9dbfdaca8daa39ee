// Code and sequences. A sequence's first run waits for each launch, so that a
// kernel that faults is known by its name; from the second run on it is a graph.
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/Graphs/GraphDevice.h"
#include <chrono>

using namespace ctxc;
using namespace ctxc::graphs;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// How often it is asked whether other ranks are there, while sums with them are waited for.
static constexpr auto waitingPeriod = std::chrono::milliseconds(100);

struct GraphDevice::Recorded : Sequence {
  struct Kernel {
    Function function;
    unsigned blocks, threads;
    std::vector<Pointer> arguments;
    std::string label; ///< its name and where it is from
  };
  GraphDevice *owner = nullptr;
  std::vector<Kernel> kernels;
  GraphExec graph = nullptr;
  bool hasRun = false;

  ~Recorded() override {
    if (graph && owner->canFree())
      owner->api.GraphExecDestroy(graph);
  }
};

static std::string labelOf(const Device::Launch &launch) {
  std::string label = "kernel '" + launch.function + "'";
  return launch.source.empty() ? label : label + " of " + launch.source;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Error GraphDevice::load(StringRef ptx) {
  if (Error error = enter())
    return error;
  std::string text = ptx.str(), log(16384, '\0'); // the driver reads to a zero
  JitOption options[] = {kErrorLog, kErrorLogBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  Module module = nullptr;
  if (Result result = api.ModuleLoadDataEx(&module, text.c_str(), 2, options, values)) {
    std::string message = llvm::toString(failed("loading the kernels for " + target(), result));
    StringRef said = StringRef(log.c_str()).trim(" \n\t");
    return makeError(said.empty() ? message : message + "; its compiler says: " + said);
  }
  codes.push_back({module, {}});
  return Error::success();
}

Expected<Function> GraphDevice::functionOf(const Launch &launch) {
  if (launch.code >= codes.size())
    return makeError(brand + ": " + labelOf(launch) + " is of code that was not loaded");
  Code &code = codes[launch.code];
  Function &found = code.functions[launch.function];
  if (!found)
    if (Result result = api.ModuleGetFunction(&found, code.module, launch.function.c_str()))
      return failed("looking up " + labelOf(launch), result);
  int most = 0;
  if (Result result = api.FuncGetAttribute(&most, kMaxThreadsPerBlock, found))
    return failed("asking about " + labelOf(launch), result);
  if (launch.threads > unsigned(most))
    return makeError(brand + ": " + labelOf(launch) + " has blocks of " +
                     std::to_string(launch.threads) + " threads; " + label + " gives it at most " +
                     std::to_string(most));
  return found;
}

//===----------------------------------------------------------------------===//
// Recording
//===----------------------------------------------------------------------===//

Result GraphDevice::launch(const Recorded &recorded, size_t i) {
  const Recorded::Kernel &kernel = recorded.kernels[i];
  llvm::SmallVector<void *, 16> arguments;
  for (const Pointer &argument : kernel.arguments)
    arguments.push_back(const_cast<Pointer *>(&argument));
  return api.LaunchKernel(kernel.function, kernel.blocks, 1, 1, kernel.threads, 1, 1, 0, stream,
                          arguments.data(), nullptr);
}

Error GraphDevice::capture(Recorded &recorded) {
  std::string what = "recording " + std::to_string(recorded.kernels.size()) + " launches";
  if (Result result = api.StreamBeginCapture(stream, kCaptureThreadLocal))
    return failed(what, result);
  Error error = Error::success();
  for (size_t i = 0; i < recorded.kernels.size() && !error; ++i)
    if (Result result = launch(recorded, i))
      error = failed("recording " + recorded.kernels[i].label, result);
  // A capture must be ended even after an error: the stream can do nothing else before.
  Graph graph = nullptr;
  Result result = api.StreamEndCapture(stream, &graph);
  if (!error && result)
    error = failed(what, result);
  if (!error)
    if ((result = api.GraphInstantiate(&recorded.graph, graph, 0))) {
      recorded.graph = nullptr;
      error = failed("making a graph of " + std::to_string(recorded.kernels.size()) + " launches",
                     result);
    }
  if (graph)
    api.GraphDestroy(graph);
  return error;
}

Expected<std::unique_ptr<Device::Sequence>> GraphDevice::record(ArrayRef<Launch> launches) {
  if (Error error = enter())
    return std::move(error);
  auto made = std::make_unique<Recorded>();
  made->owner = this;
  for (const Launch &launch : launches) {
    auto function = functionOf(launch);
    if (!function)
      return function.takeError();
    Recorded::Kernel kernel{*function, launch.blocks, launch.threads, {}, labelOf(launch)};
    for (Buffer *buffer : launch.buffers)
      kernel.arguments.push_back(static_cast<GraphBuffer *>(buffer)->address);
    made->kernels.push_back(std::move(kernel));
  }
  if (!launches.empty())
    if (Error error = capture(*made))
      return std::move(error);
  return made;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Error GraphDevice::runEach(const Recorded &recorded) {
  for (size_t i = 0; i < recorded.kernels.size(); ++i) {
    const std::string what = "running " + recorded.kernels[i].label;
    if (Result result = launch(recorded, i))
      return ended(what, result);
    if (Error error = wait(what))
      return error;
  }
  return Error::success();
}

Error GraphDevice::wait(StringRef what) {
  if (!whileWaiting) {
    Result result = api.StreamSynchronize(stream);
    return result ? ended(what, result) : Error::success();
  }
  Result result = api.EventRecord(end, stream);
  auto next = std::chrono::steady_clock::now() + waitingPeriod;
  while (!result && (result = api.EventQuery(end)) == kNotReady) {
    result = 0;
    if (std::chrono::steady_clock::now() < next)
      continue;
    // Its sums may wait for a rank that is gone.
    if (Error error = whileWaiting())
      return error;
    next = std::chrono::steady_clock::now() + waitingPeriod;
  }
  return result ? ended(what, result) : Error::success();
}

std::string GraphDevice::allOf(const Recorded &recorded) {
  return "running " + std::to_string(recorded.kernels.size()) + " launches, " +
         recorded.kernels.front().label + " to " + recorded.kernels.back().label;
}

Error GraphDevice::enqueue(Sequence &sequence) {
  auto &recorded = static_cast<Recorded &>(sequence);
  if (Error error = enter())
    return error;
  if (recorded.kernels.empty())
    return Error::success();
  if (!recorded.hasRun || isChecked) {
    recorded.hasRun = true;
    return runEach(recorded);
  }
  if (Result result = api.GraphLaunch(recorded.graph, stream))
    return ended(allOf(recorded), result);
  return Error::success();
}

Error GraphDevice::finish() {
  if (Error error = enter())
    return error;
  return wait("running launches and sums over devices (" + brand +
              ":checked runs launches one by one and finds which)");
}

Expected<double> GraphDevice::run(Sequence &sequence) {
  auto &recorded = static_cast<Recorded &>(sequence);
  if (Error error = enter())
    return std::move(error);
  if (recorded.kernels.empty())
    return 0;
  // Errors of earlier work are not a kernel's fault.
  Result result = api.EventRecord(begin, stream);
  if (result)
    return failed("marking the time", result);
  if (Error error = enqueue(sequence))
    return std::move(error);
  result = api.EventRecord(end, stream);
  if (!result)
    result = api.StreamSynchronize(stream);
  if (result)
    return ended(allOf(recorded) + " (" + brand + ":checked runs them one by one and finds which)",
                 result);
  float milliseconds = 0;
  if ((result = api.EventElapsedTime(&milliseconds, begin, end)))
    return failed("reading the time", result);
  return milliseconds * 1e-3;
}
