#include "ctxc/Runtime/Tune.h"
#include "ctxc/Lowering/CpuTarget.h"
#include "ctxc/Runtime/Bandwidth.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Memory.h"
#include "lib/Runtime/ParallelFor.h"
#include "lib/Runtime/Tune/LinearKernel.h"
#include "lib/Runtime/Tune/Pages.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <optional>

using namespace ctxc;

namespace {

/// The matrix by which a kind is measured.
struct Sample {
  llvm::StringLiteral kind;
  int64_t outputs, inputs;
  llvm::StringLiteral element;
  int64_t bytes; ///< of the matrix
};
constexpr Sample samples[] = {
    {"f32", 4096, 768, "f32", 4096 * 768 * 4},
    {"half", 4096, 768, "bf16", 4096 * 768 * 2},
    {"blocks", 4096, 768, "!xf.quantized<q8_0>", 4096 * 768 / 32 * 34},
    {"k-blocks", 4096, 768, "!xf.quantized<q4_k>", 4096 * 768 / 256 * 144},
    {"long-f32", 1024, 4096, "f32", 1024 * 4096 * 4},
    {"long-half", 1024, 4096, "bf16", 1024 * 4096 * 2},
};

constexpr int64_t promptRows = 256;
/// What is less than this faster may be chance.
constexpr double gain = 1.03;

std::string megabytes(int64_t bytes) { return std::to_string(bytes / 1000000) + " MB"; }

double median(std::vector<double> values) {
  llvm::sort(values);
  return values[values.size() / 2];
}

/// The ways to read a prompt that the processor has instructions for; none if there is only one.
std::vector<PromptProducts> productsOf(const CpuTarget &target) {
  if (target.tiles)
    return {PromptProducts::Exact, PromptProducts::Split, PromptProducts::Rounded};
  if (target.bfloatPairs)
    return {PromptProducts::Exact, PromptProducts::Rounded};
  return {};
}

class Tuner {
public:
  explicit Tuner(const TuneOptions &options)
      : options(options), threads(threadCount(options.threads)) {}

  llvm::Expected<Tuning> tune();

private:
  using Kernel = std::unique_ptr<LinearKernel>;

  llvm::Error takeMemory();
  llvm::Expected<Kernel> compile(const Sample &sample, const CpuTarget &target,
                                 PromptProducts prompts = PromptProducts::Exact);
  llvm::Expected<TunedKind> tuneKind(const Sample &sample);
  llvm::Error timePrompt(Tuning &tuning);
  double sweep(LinearKernel &kernel, const Sample &sample, int64_t rows, int64_t copies);
  llvm::SmallVector<Reading> waysOf(llvm::StringRef kind) const;
  int64_t kernels() const;

  const TuneOptions &options;
  const int threads;
  const CpuTarget host = CpuTarget::host();
  int64_t bytes = 0, done = 0;
  std::optional<Pages> memory; ///< ordinary pages, as those of a mapped file are
  std::vector<float> x, y;
};

} // namespace

/// Bytes that are a number of any type, neither tiny nor large: 0.0115 in float32 and in bfloat16,
/// 1.06 as the float16 of a block's scale.
llvm::Error Tuner::takeMemory() {
  const int64_t available = int64_t(availableMemory().value_or(int64_t(4) << 30));
  bytes = options.bytes;
  if (!bytes)
    bytes = std::min(available / 4, std::max(int64_t(256) << 20, 2 * int64_t(lastLevelCache())));
  for (const Sample &sample : samples)
    bytes = std::max(bytes, 2 * sample.bytes);
  if (bytes > available)
    return makeError("matrices to be timed take " + megabytes(bytes) + ", and " +
                     megabytes(available) + " of memory are available; expected less");
  memory.emplace(bytes, /*huge=*/false, /*value=*/0x3c);
  if (!memory->data())
    return makeError("there is no memory for matrices to be timed, which take " + megabytes(bytes));
  return llvm::Error::success();
}

llvm::SmallVector<Reading> Tuner::waysOf(llvm::StringRef kind) const {
  llvm::SmallVector<Reading> ways;
  for (int64_t streams : {1, 2, 4, 8}) {
    if (streams > host.lanes ||
        streams > host.registers / 2) // of one vector; of two, fewer are read
      break;
    for (bool asksAhead : {false, true})
      ways.push_back({streams, asksAhead});
    if (kind.ends_with("blocks") && streams == 4) // what decodes them takes registers
      break;
  }
  return ways;
}

int64_t Tuner::kernels() const {
  int64_t count = productsOf(host).size();
  for (const Sample &sample : samples)
    count += waysOf(sample.kind).size();
  return count;
}

llvm::Expected<Tuner::Kernel> Tuner::compile(const Sample &sample, const CpuTarget &target,
                                             PromptProducts prompts) {
  auto kernel =
      LinearKernel::compile(sample.outputs, sample.inputs, sample.element, prompts, target);
  ++done;
  if (kernel && options.progress)
    options.progress(done, kernels());
  return kernel;
}

/// The seconds in which `copies` matrices, one after the other in memory, are multiplied.
double Tuner::sweep(LinearKernel &kernel, const Sample &sample, int64_t rows, int64_t copies) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < copies; ++i)
    kernel.run(memory->data() + i * sample.bytes, x.data(), y.data(), rows, threads);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

llvm::Expected<TunedKind> Tuner::tuneKind(const Sample &sample) {
  TunedKind tuned{sample.kind, sample.outputs, sample.inputs, sample.element.str(), {}};
  const Readings::Kind &kind = *llvm::find_if(
      Readings::kinds(), [&](const Readings::Kind &each) { return each.name == sample.kind; });
  std::vector<Kernel> compiled;
  const llvm::SmallVector<Reading> ways = waysOf(sample.kind);
  Reading byDefault = host.readings.*kind.member;
  byDefault.streams = std::min(byDefault.streams, ways.back().streams);
  for (const Reading &way : ways) {
    CpuTarget target = host;
    target.readings.*kind.member = way;
    auto kernel = compile(sample, target);
    if (!kernel)
      return kernel.takeError();
    compiled.push_back(std::move(*kernel));
    if (way == byDefault)
      tuned.byDefault = tuned.tried.size();
    tuned.tried.push_back({way, {0, 0}});
  }
  const int64_t copies = bytes / sample.bytes;
  std::vector<std::vector<double>> seconds(2 * compiled.size());
  for (int round = 0; round < options.rounds; ++round)
    for (auto [i, kernel] : llvm::enumerate(compiled))
      for (int64_t vectors : {1, 2})
        seconds[2 * i + vectors - 1].push_back(sweep(*kernel, sample, vectors, copies));
  for (auto [i, timed] : llvm::enumerate(tuned.tried))
    for (int64_t j : {0, 1})
      timed.gigabytesPerSecond[j] =
          double(copies * sample.bytes) / median(seconds[2 * i + j]) / 1e9;
  tuned.chosen = tuned.byDefault;
  double least = gain * tuned.tried[tuned.byDefault].mean();
  for (auto [i, timed] : llvm::enumerate(tuned.tried))
    if (timed.mean() >= least) {
      tuned.chosen = i;
      least = timed.mean();
    }
  return tuned;
}

llvm::Error Tuner::timePrompt(Tuning &tuning) {
  const Sample &sample = *llvm::find_if(samples, [](auto &each) { return each.kind == "half"; });
  std::vector<Kernel> kernels;
  for (PromptProducts products : productsOf(host)) {
    auto kernel = compile(sample, host, products);
    if (!kernel)
      return kernel.takeError();
    kernels.push_back(std::move(*kernel));
  }
  std::vector<std::vector<double>> seconds(kernels.size());
  for (int round = 0; round < options.rounds; ++round)
    for (auto [kernel, each] : llvm::zip_equal(kernels, seconds))
      each.push_back(sweep(*kernel, sample, promptRows, 1));
  for (auto [products, each] : llvm::zip_equal(productsOf(host), seconds))
    tuning.prompts.push_back({products, 1e3 * median(each)});
  return llvm::Error::success();
}

llvm::Expected<Tuning> Tuner::tune() {
  Tuning tuning;
  if (options.progress)
    options.progress(0, kernels());
  tuning.threads = threads;
  tuning.byDefault = host.readings;
  if (llvm::Error error = takeMemory())
    return std::move(error);
  int64_t outputs = 0, inputs = 0;
  for (const Sample &sample : samples) {
    outputs = std::max(outputs, sample.outputs);
    inputs = std::max(inputs, sample.inputs);
  }
  x.assign(promptRows * inputs, 0.5f);
  y.resize(promptRows * outputs);
  for (const Sample &sample : samples) {
    auto kind = tuneKind(sample);
    if (!kind)
      return kind.takeError();
    tuning.kinds.push_back(std::move(*kind));
  }
  if (llvm::Error error = timePrompt(tuning))
    return std::move(error);
  for (const ReadResult &result : ReadBandwidth(threads, bytes).measure(/*seconds=*/1)) {
    double &most = result.pattern.hugePages ? tuning.largePages : tuning.ordinaryPages;
    most = std::max(most, result.gigabytesPerSecond);
  }
  return tuning;
}

Readings Tuning::readings() const {
  Readings readings = byDefault;
  for (const TunedKind &kind : kinds)
    for (const Readings::Kind &each : Readings::kinds())
      if (each.name == kind.name)
        readings.*each.member = kind.tried[kind.chosen].reading;
  return readings;
}

llvm::Expected<Tuning> ctxc::tune(const TuneOptions &options) { return Tuner(options).tune(); }
