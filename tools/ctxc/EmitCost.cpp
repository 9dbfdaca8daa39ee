// What kernels for a GPU move and compute, and how long a token will take at the least: counted by
// the compiler (GpuCost), summed over the kernels that a token takes.
#include "EmitCode.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Program/TokenKernels.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::driver;
using llvm::ArrayRef;
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

Expected<CostOptions> CostOptions::parse(const Arguments &arguments) {
  CostOptions options;
  if (arguments.get("--emit", "") != "cost") {
    for (StringRef name : {"--visible", "--bandwidth", "--rate", "--format"})
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
  options.isJson = arguments.get("--format", "text") == "json";
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

namespace {

/// At given numbers of visible tokens.
struct Cost {
  int64_t weights = 0, cache = 0, patch = 0, activations = 0, operations = 0, launches = 0;
  double seconds = 0;

  int64_t bytes() const { return weights + cache + patch + activations; }

  static Cost of(const GpuCost &cost, const int64_t visible[2], const CostOptions &options) {
    auto at = [&](const Extent &e) { return e.at(visible[0], visible[1]); };
    Cost made{at(cost.weights),     at(cost.cache),      at(cost.patch),
              at(cost.activations), at(cost.operations), 1};
    if (options.bandwidth)
      made.seconds = made.bytes() / *options.bandwidth;
    if (options.rate)
      made.seconds = std::max(made.seconds, made.operations / *options.rate);
    return made;
  }
  Cost &operator+=(const Cost &o) {
    weights += o.weights;
    cache += o.cache;
    patch += o.patch;
    activations += o.activations;
    operations += o.operations;
    launches += o.launches;
    seconds += o.seconds;
    return *this;
  }
};

/// What a token does: its names in JSON and text, and the launches with how often each comes.
struct Token {
  StringRef key, name;
  Cost cost;
  llvm::MapVector<StringRef, int64_t> times;
};

class CostWriter {
public:
  CostWriter(const Program &program, std::vector<GpuKernel> made, const CodeOptions &code)
      : program(program), code(code), options(code.cost), made(std::move(made)) {
    for (const GpuKernel &kernel : this->made)
      kernels[kernel.name] = &kernel;
  }

  Error count() {
    for (const GpuKernel &kernel : made)
      for (const GpuLaunch &launch : kernel.launches) {
        if (!launch.cost)
          return makeError("kernel '" + launch.function +
                           "': what it costs is no linear function of the visible tokens");
        launches.push_back(
            {launch.function, Cost::of(*launch.cost, options.visible, options), &launch});
      }
    add("forward", "forward", forwardKernels(program, /*isPatched=*/false, /*withHead=*/true));
    bool hasPatches = llvm::any_of(program.steps, [](const ProgramStep &s) { return s.applied; });
    if (hasPatches) {
      add("applied", "forward, given a patch",
          forwardKernels(program, /*isPatched=*/true, /*withHead=*/true));
      add("dual", "both runs, forming a patch", patchKernels(program, /*startLayer=*/0));
    }
    return Error::success();
  }

  void writeJson(llvm::raw_ostream &os) const;
  void writeText(llvm::raw_ostream &os) const;

private:
  struct Launch {
    StringRef name;
    Cost cost;
    const GpuLaunch *launch;
  };

  /// Nothing where a kernel was not carried.
  void add(StringRef key, StringRef name, ArrayRef<TokenKernel> blocks) {
    Token token{key, name, {}, {}};
    for (const TokenKernel &each : blocks) {
      auto kernel = kernels.find(kernelName(each.block, code.prefix));
      if (kernel == kernels.end())
        return;
      // A block of the reduced run alone sees its tokens.
      bool isReduced = each.stream == 1;
      const int64_t visible[2] = {options.visible[isReduced], options.visible[1]};
      for (const GpuLaunch &launch : kernel->second->launches) {
        token.cost += Cost::of(*launch.cost, visible, options);
        ++token.times[launch.function];
      }
    }
    tokens.push_back(std::move(token));
  }
  bool hasTimes() const { return options.bandwidth || options.rate; }
  void writeJson(const Cost &cost, llvm::json::OStream &json) const;

  const Program &program;
  const CodeOptions &code;
  const CostOptions &options;
  std::vector<GpuKernel> made;
  llvm::StringMap<const GpuKernel *> kernels;
  std::vector<Launch> launches;
  std::vector<Token> tokens;
};

} // namespace

void CostWriter::writeJson(const Cost &cost, llvm::json::OStream &json) const {
  json.attribute("bytes", cost.bytes());
  json.attributeObject("bytes_of", [&] {
    json.attribute("weights", cost.weights);
    json.attribute("cache", cost.cache);
    json.attribute("patch", cost.patch);
    json.attribute("activations", cost.activations);
  });
  json.attribute("operations", cost.operations);
  if (hasTimes())
    json.attribute("seconds", cost.seconds);
}

void CostWriter::writeJson(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("target", code.gpu->name());
    if (code.rows > 1)
      json.attribute("rows", code.rows);
    json.attributeArray("visible", [&] {
      for (int64_t count : options.visible)
        json.value(count);
    });
    json.attributeObject("kernels", [&] {
      for (const Launch &each : launches)
        json.attributeObject(each.name, [&] {
          json.attribute("blocks", each.launch->blocks);
          json.attribute("threads", each.launch->threads);
          writeJson(each.cost, json);
        });
    });
    json.attributeObject("tokens", [&] {
      for (const Token &token : tokens)
        json.attributeObject(token.key, [&] {
          json.attribute("launches", token.cost.launches);
          writeJson(token.cost, json);
          json.attributeObject("times", [&] {
            for (auto &[name, times] : token.times)
              json.attribute(name, times);
          });
        });
    });
  });
  os << '\n';
}

void CostWriter::writeText(llvm::raw_ostream &os) const {
  size_t width = 15; // a heading's
  for (const Launch &each : launches)
    width = std::max(width, each.name.size());
  for (const Token &token : tokens)
    width = std::max(width, token.name.size());
  auto heading = [&](StringRef what, StringRef number) {
    os << what << std::string(width - what.size(), ' ')
       << llvm::format(" %9s %14s %12s %12s %12s %14s", number.data(), "weights", "cache", "patch",
                       "activations", "operations")
       << (hasTimes() ? "     seconds\n" : "\n");
  };
  auto row = [&](StringRef name, int64_t number, const Cost &cost) {
    os << name << std::string(width - name.size(), ' ')
       << llvm::format(" %9lld %14lld %12lld %12lld %12lld %14lld", (long long)number,
                       (long long)cost.weights, (long long)cost.cache, (long long)cost.patch,
                       (long long)cost.activations, (long long)cost.operations);
    if (hasTimes())
      os << llvm::format(" %11.3e", cost.seconds);
    os << '\n';
  };
  os << code.gpu->name() << ": bytes to and from the device's memory, and operations, with "
     << options.visible[0] << " visible tokens (of a reduced run " << options.visible[1] << ")\n\n";
  std::string chunk = "a chunk of " + std::to_string(code.rows);
  heading(code.rows == 1 ? "a token" : chunk, "launches");
  for (const Token &token : tokens)
    row(token.name, token.cost.launches, token.cost);
  os << '\n';
  heading("a kernel", "blocks");
  for (const Launch &each : launches)
    row(each.name, each.launch->blocks, each.cost);
}

Error driver::writeCost(const Program &program, mlir::ModuleOp kernels, const CodeOptions &options,
                        llvm::raw_ostream &os) {
  CostWriter writer(program, gpuKernels(kernels), options);
  if (Error error = writer.count())
    return error;
  if (options.cost.isJson)
    writer.writeJson(os);
  else
    writer.writeText(os);
  return Error::success();
}
