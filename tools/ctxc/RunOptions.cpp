// The options that verify and patch share.
#include "Session.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using namespace ctxc::driver;

std::vector<OptionSpec> driver::runOptions() {
  return {
      {"--update",
       "NAME",
       "how the patch of a post-norm is split between the matrix before the norm\n"
       "and the scale after it: least (default), balanced, naive, stable, scaled",
       {"least", "balanced", "naive", "stable", "scaled"}},
      {"--dtype",
       "TYPE",
       "storage type of the weights, f32 or bf16; activations and sums are f32.\n"
       "Default: bf16 where the whole checkpoint is stored so, else f32",
       {"f32", "bf16"}},
      {"--start-layer", "L", "leave the layers before layer L (from 0) unpatched"},
      {"--keep", "POSITIONS",
       "positions of the context that the reduced run keeps, such as 0-3,7;\n"
       "by default none"},
      {"--backend",
       "NAME",
       "compiled (default), or reference: float64, slow, the judge of the other",
       {"compiled", "reference"}},
      {"--threads", "N", "threads of the compiled backend; default: one a core"},
      {"--weights", "WEIGHTS", "for an .mlir model: a checkpoint directory, or random:SEED"},
  };
}

llvm::Expected<RunOptions> RunOptions::parse(const Arguments &arguments) {
  RunOptions options;
  options.updateGiven = arguments.has("--update");
  options.update = arguments.get("--update", "least");
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
  if (options.threads && options.backend == "reference")
    return makeError("--threads: the reference backend runs on one thread; leave it out, or use "
                     "--backend compiled");
  if (auto text = arguments.get("--keep")) {
    auto kept = parsePositions(*text, "--keep");
    if (!kept)
      return kept.takeError();
    options.kept = std::move(*kept);
  }
  return options;
}
