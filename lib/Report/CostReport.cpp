#include "ctxc/Report/CostReport.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Program/TokenKernels.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using llvm::ArrayRef;
using llvm::StringRef;

Cost &Cost::operator+=(const Cost &other) {
  weights += other.weights;
  cache += other.cache;
  patch += other.patch;
  activations += other.activations;
  operations += other.operations;
  launches += other.launches;
  seconds += other.seconds;
  return *this;
}

static Cost costAt(const GpuCost &cost, const int64_t visible[2], const CostOptions &options) {
  auto at = [&](const Extent &extent) { return extent.at(visible[0], visible[1]); };
  Cost made{at(cost.weights),     at(cost.cache),      at(cost.patch),
            at(cost.activations), at(cost.operations), 1};
  if (options.bandwidth)
    made.seconds = made.bytes() / *options.bandwidth;
  if (options.rate)
    made.seconds = std::max(made.seconds, made.operations / *options.rate);
  return made;
}

/// The sum over a token's kernels; none where one of them has no GPU form.
static std::optional<TokenCost> sum(const llvm::StringMap<const GpuKernel *> &kernels,
                                    ArrayRef<TokenKernel> blocks, StringRef prefix,
                                    const CostOptions &options) {
  TokenCost token;
  llvm::StringMap<size_t> index; // of launches in token.times
  for (const TokenKernel &each : blocks) {
    auto kernel = kernels.find(kernelName(each.block, prefix));
    if (kernel == kernels.end())
      return std::nullopt;
    // A block of the reduced run alone sees its tokens.
    bool isReduced = each.run == 1;
    const int64_t visible[2] = {options.visible[isReduced], options.visible[1]};
    for (const GpuLaunch &launch : kernel->second->launches) {
      token.cost += costAt(*launch.cost, visible, options);
      auto [place, isNew] = index.try_emplace(launch.function, token.times.size());
      if (isNew)
        token.times.emplace_back(launch.function, 0);
      ++token.times[place->second].second;
    }
  }
  return token;
}

llvm::Expected<TokenCosts> ctxc::countCosts(const Program &program, ArrayRef<GpuKernel> kernels,
                                            StringRef prefix, const GpuTarget &target,
                                            const CostOptions &options) {
  TokenCosts costs;
  costs.target = target.name();
  costs.options = options;
  llvm::StringMap<const GpuKernel *> named;
  for (const GpuKernel &kernel : kernels) {
    costs.rows = kernel.rows;
    named[kernel.name] = &kernel;
    for (const GpuLaunch &launch : kernel.launches) {
      if (!launch.cost)
        return makeError("kernel '" + launch.function +
                         "': what it costs is no linear function of the visible tokens");
      costs.launches.push_back({launch.function, launch.blocks, launch.threads,
                                costAt(*launch.cost, options.visible, options)});
    }
  }
  auto add = [&](StringRef key, StringRef name, ArrayRef<TokenKernel> blocks) {
    if (std::optional<TokenCost> token = sum(named, blocks, prefix, options)) {
      token->key = key.str();
      token->name = name.str();
      costs.tokens.push_back(std::move(*token));
    }
  };
  add("forward", "forward", forwardKernels(program, /*isPatched=*/false, /*withHead=*/true));
  if (llvm::any_of(program.steps, [](const ProgramStep &s) { return s.applied; })) {
    add("applied", "forward, given a patch",
        forwardKernels(program, /*isPatched=*/true, /*withHead=*/true));
    add("dual", "both runs, forming a patch", patchKernels(program, /*startLayer=*/0));
  }
  return costs;
}

static void writeCost(const Cost &cost, const CostOptions &options, llvm::json::OStream &json) {
  json.attribute("bytes", cost.bytes());
  json.attributeObject("bytes_of", [&] {
    json.attribute("weights", cost.weights);
    json.attribute("cache", cost.cache);
    json.attribute("patch", cost.patch);
    json.attribute("activations", cost.activations);
  });
  json.attribute("operations", cost.operations);
  if (options.hasTimes())
    json.attribute("seconds", cost.seconds);
}

void ctxc::writeCostJson(const TokenCosts &costs, llvm::raw_ostream &os) {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("format", "ctxc-cost");
    json.attribute("target", costs.target);
    if (costs.rows > 1)
      json.attribute("rows", costs.rows);
    json.attributeArray("visible", [&] {
      for (int64_t count : costs.options.visible)
        json.value(count);
    });
    json.attributeObject("kernels", [&] {
      for (const LaunchCost &each : costs.launches)
        json.attributeObject(each.name, [&] {
          json.attribute("blocks", each.blocks);
          json.attribute("threads", each.threads);
          writeCost(each.cost, costs.options, json);
        });
    });
    json.attributeObject("tokens", [&] {
      for (const TokenCost &token : costs.tokens)
        json.attributeObject(token.key, [&] {
          json.attribute("launches", token.cost.launches);
          writeCost(token.cost, costs.options, json);
          json.attributeObject("times", [&] {
            for (auto &[name, times] : token.times)
              json.attribute(name, times);
          });
        });
    });
  });
  os << '\n';
}

void ctxc::writeCostText(const TokenCosts &costs, llvm::raw_ostream &os) {
  const CostOptions &options = costs.options;
  size_t width = 15; // a heading's
  for (const LaunchCost &each : costs.launches)
    width = std::max(width, each.name.size());
  for (const TokenCost &token : costs.tokens)
    width = std::max(width, token.name.size());
  auto heading = [&](StringRef what, StringRef number) {
    os << what << std::string(width - what.size(), ' ')
       << llvm::format(" %9s %14s %12s %12s %12s %14s", number.data(), "weights", "cache", "patch",
                       "activations", "operations")
       << (options.hasTimes() ? "     seconds\n" : "\n");
  };
  auto line = [&](StringRef name, int64_t number, const Cost &cost) {
    os << name << std::string(width - name.size(), ' ')
       << llvm::format(" %9lld %14lld %12lld %12lld %12lld %14lld", (long long)number,
                       (long long)cost.weights, (long long)cost.cache, (long long)cost.patch,
                       (long long)cost.activations, (long long)cost.operations);
    if (options.hasTimes())
      os << llvm::format(" %11.3e", cost.seconds);
    os << '\n';
  };
  os << costs.target << ": bytes to and from the device's memory, and operations, with "
     << counted(options.visible[0], "visible token") << " (of a reduced run " << options.visible[1]
     << ")\n\n";
  heading(costs.rows == 1 ? "a token" : "a chunk of " + std::to_string(costs.rows), "launches");
  for (const TokenCost &token : costs.tokens)
    line(token.name, token.cost.launches, token.cost);
  os << '\n';
  heading("a kernel", "blocks");
  for (const LaunchCost &each : costs.launches)
    line(each.name, each.blocks, each.cost);
}
