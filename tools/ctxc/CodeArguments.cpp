#include "CodeArguments.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Shard.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static Expected<std::optional<double>> positive(const Arguments &arguments, StringRef name,
                                                double unit) {
  auto text = arguments.get(name);
  double number = 0;
  if (!text)
    return std::optional<double>();
  if (text->getAsDouble(number) || !(number > 0) || !std::isfinite(number))
    return makeError(name + ": found '" + *text + "', expected a number above 0");
  return std::optional<double>(number * unit);
}

Expected<CostOptions> driver::costOptions(const Arguments &arguments) {
  CostOptions options;
  if (arguments.get("--emit", "") != "cost") {
    for (StringRef name : {"--visible", "--bandwidth", "--rate", "--format", "--shard", "--network",
                           "--bandwidth-of-two"})
      if (arguments.has(name))
        return makeError(name + ": is of --emit=cost alone");
    return options;
  }
  if (auto text = arguments.get("--visible")) {
    auto [full, reduced] = text->split(',');
    bool isBad = full.getAsInteger(10, options.visible[0]) ||
                 (text->contains(',') && reduced.getAsInteger(10, options.visible[1]));
    if (isBad || options.visible[0] < 1 || options.visible[1] < 1 ||
        std::max(options.visible[0], options.visible[1]) > (int64_t(1) << 31))
      return makeError("--visible: found '" + *text +
                       "', expected one or two numbers of tokens from 1 to 2^31");
  }
  auto bandwidth = positive(arguments, "--bandwidth", 1e9);
  if (!bandwidth)
    return bandwidth.takeError();
  auto rate = positive(arguments, "--rate", 1e12);
  if (!rate)
    return rate.takeError();
  options.bandwidth = *bandwidth;
  options.rate = *rate;
  return options;
}

Expected<shard::ShardRequest> driver::shardRequest(const Arguments &arguments,
                                                   const CostOptions &at) {
  shard::ShardRequest request;
  Expected<RankGrid> ranks = parseRanks(arguments.get("--shard", ""));
  if (!ranks)
    return ranks.takeError();
  request.tensor = ranks->tensor;
  request.pipeline = ranks->pipeline;
  for (StringRef name : {"--target", "--rows", "--prefix"})
    if (arguments.has(name))
      return makeError(name +
                       ": does not go with --shard, whose cost is counted before any code is "
                       "made");
  if (!at.bandwidth)
    return makeError("--shard: needs --bandwidth GB/S, of a rank's memory");
  std::copy_n(at.visible, 2, request.visible);
  request.machine.bandwidth = *at.bandwidth;
  request.machine.rate = at.rate;
  auto ofTwo = positive(arguments, "--bandwidth-of-two", 1e9);
  if (!ofTwo)
    return ofTwo.takeError();
  request.machine.bandwidthOfTwo = *ofTwo;
  auto text = arguments.get("--network");
  if (!text)
    return makeError("--shard: needs --network GB/S,MICROSECONDS, of a message between two ranks");
  auto [rate, latency] = text->split(',');
  double gigabytes = 0, microseconds = 0;
  if (rate.getAsDouble(gigabytes) || latency.getAsDouble(microseconds) || !(gigabytes > 0) ||
      !(microseconds >= 0) || !std::isfinite(gigabytes) || !std::isfinite(microseconds))
    return makeError("--network: found '" + *text +
                     "', expected gigabytes a second and microseconds a message, such as 50,2");
  request.machine.network = gigabytes * 1e9;
  request.machine.latency = microseconds * 1e-6;
  return request;
}

static CodeStage stageNamed(StringRef name) {
  return llvm::StringSwitch<CodeStage>(name)
      .Case("linalg", CodeStage::Linalg)
      .Case("llvm", CodeStage::LLVM)
      .Case("asm", CodeStage::Assembly)
      .Cases({"gpu", "cost"}, CodeStage::Gpu)
      .Cases({"ptx", "hsaco", "spirv"}, CodeStage::GpuCode)
      .Default(CodeStage::Object);
}

/// Reads --target, and checks that --emit names a stage of this target.
static Error parseTarget(const Arguments &arguments, CompileOptions &options) {
  StringRef name = arguments.get("--target", "native"), stage = arguments.get("--emit", "");
  bool isGpuStage = options.stage == CodeStage::Gpu || options.stage == CodeStage::GpuCode;
  if (GpuTarget::isOne(name)) {
    auto gpu = GpuTarget::named(name);
    if (!gpu)
      return makeError("--target: " + llvm::toString(gpu.takeError()));
    if (!llvm::is_contained({StringRef("gpu"), StringRef("cost"), (*gpu)->stage()}, stage))
      return makeError("--emit: found '" + stage + "', expected gpu, cost or " + (*gpu)->stage() +
                       " for --target=" + name);
    options.gpu = std::move(*gpu);
    return Error::success();
  }
  if (arguments.has("--rows"))
    return makeError("--rows: is of kernels for GPUs; expected --target to name one");
  if (isGpuStage)
    return makeError("--emit=" + stage + ": --target: found '" + name +
                     "', expected a GPU: " + GpuTarget::names());
  auto target = CpuTarget::named(name);
  if (!target)
    return makeError("--target: " + llvm::toString(target.takeError()));
  if (stage == "shared" && !target->isOfThisArchitecture())
    return makeError("--emit=shared: this machine has no linker for " + target->triple +
                     "; write --emit=obj, and link it there with its libCtxcNumerics.a");
  options.processor = std::move(*target);
  return Error::success();
}

Expected<CompileOptions> driver::compileOptions(const Arguments &arguments) {
  CompileOptions options;
  options.stage = stageNamed(arguments.get("--emit", ""));
  options.prefix = arguments.get("--prefix", "ctxc");
  Expected<PromptProducts> prompts = promptProducts(arguments);
  if (!prompts)
    return prompts.takeError();
  options.prompts = *prompts;
  options.remarks = arguments.has("--remarks");
  if (Error error = parseTarget(arguments, options))
    return std::move(error);
  if (auto text = arguments.get("--rows"))
    if (text->getAsInteger(10, options.rows))
      return makeError("--rows: found '" + *text + "', expected a number from 1 to 4096");
  if (Error error = checkCompileOptions(options))
    return std::move(error);
  return options;
}
