// The options that verify and patch share.
#include "Session.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using namespace ctxc::driver;

std::vector<OptionSpec> driver::planOptions() {
  return {
      {"--sites",
       "NAME",
       "what may be patched: mlp (default, the paper's), or all: also what stands\n"
       "between the attention and the residual stream (W_o)",
       {"mlp", "all"}},
      {"--objective",
       "NAME",
       "how a plan is chosen: default (the paper's, unless it is fragile in other\n"
       "programs and another is not), paper, fewest-parameters, no-division,\n"
       "least-norm, least-drift (the last two are measured on sample activations)",
       {"default", "paper", "fewest-parameters", "no-division", "least-norm", "least-drift"}},
      {"--plan", "NAMES",
       "patch just these parameters, by the blocks' names, separated by commas;\n"
       "`ctxc check --plans` lists what there is"},
      {"--split",
       "NAME",
       "how a mixture's experts share the change of its output: even (default, the\n"
       "paper's), or least-norm, the smallest patch",
       {"even", "least-norm"}},
  };
}

std::vector<OptionSpec> driver::runOptions() {
  std::vector<OptionSpec> options = {
      {"--update",
       "NAME",
       "how the patch of a post-norm is split between the matrix before the norm\n"
       "and the scale after it: least (default), balanced, naive, stable, scaled",
       {"least", "balanced", "naive", "stable", "scaled"}},
      {"--dtype", "TYPE",
       "storage type of the weights, f32, bf16 or f16; activations and sums are f32.\n"
       "Default: bf16 or f16 where the whole checkpoint is stored so, else f32",
       storageNames()},
      {"--round-prompts", "",
       "read a prompt with activations rounded to bfloat16 where they meet weights that\n"
       "are, as PyTorch and llama.cpp do: faster, for a processor with avx512_bf16 and\n"
       "16 tokens or more, and for NVIDIA's GPUs. Everything after it, patches too, is\n"
       "computed as without"},
      {"--start-layer", "L", "leave the layers before layer L (from 0) unpatched"},
      {"--keep", "POSITIONS",
       "positions of the context that the reduced run keeps, such as 0-3,7;\n"
       "by default none"},
      {"--backend",
       "NAME",
       "compiled (default), or reference: float64, slow, the judge of the other",
       {"compiled", "reference"}},
      {"--target", "GPU",
       "run on a GPU: cuda, rocm or vulkan (docs/gpu.md); default: on this\nprocessor"},
      {"--threads", "N", "threads of the compiled backend; default: one a core"},
      {"--weights", "WEIGHTS", "for an .mlir model: a checkpoint directory, or random:SEED"},
  };
  llvm::append_range(options, planOptions());
  return options;
}

llvm::Expected<RunOptions> RunOptions::parse(const Arguments &arguments) {
  RunOptions options;
  options.updateGiven = arguments.has("--update");
  options.update = arguments.get("--update", "least");
  options.scope = arguments.get("--sites", "mlp") == "all" ? SiteScope::All : SiteScope::MLP;
  if (auto split = arguments.get("--split"))
    options.split = *split == "even" ? xf::Split::Even : xf::Split::LeastNorm;
  options.objective = *parseObjective(arguments.get("--objective", "default"));
  llvm::SmallVector<llvm::StringRef> names;
  arguments.get("--plan", "").split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (llvm::StringRef name : names)
    options.parameters.push_back(name.trim().str());
  if (arguments.has("--plan") && names.empty())
    return makeError("--plan: found no name, expected parameters separated by commas");
  options.dtype = arguments.get("--dtype", "");
  options.backend = arguments.get("--backend", "compiled");
  options.weights = arguments.get("--weights", "");
  auto startLayer = arguments.integer("--start-layer", 0, INT32_MAX, 0);
  if (!startLayer)
    return startLayer.takeError();
  options.startLayer = *startLayer;
  auto threads = arguments.integer("--threads", 1, 1024, 0);
  if (!threads)
    return threads.takeError();
  options.threads = *threads;
  options.gpu = arguments.get("--target", "");
  if (!options.gpu.empty() && options.backend == "reference")
    return makeError("--target: the reference backend runs on this processor; leave one of them "
                     "out");
  if (options.threads && options.backend == "reference")
    return makeError("--threads: the reference backend runs on one thread; leave it out, or use "
                     "--backend compiled");
  options.roundedPrompts = arguments.has("--round-prompts");
  if (options.roundedPrompts && options.backend == "reference")
    return makeError("--round-prompts: the reference backend rounds nothing; leave it out, or use "
                     "--backend compiled");
  if (auto text = arguments.get("--keep")) {
    auto kept = parsePositions(*text, "--keep");
    if (!kept)
      return kept.takeError();
    options.kept = std::move(*kept);
  }
  return options;
}
