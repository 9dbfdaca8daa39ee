// The table of experiments. A new one needs a line here.
#include "Experiments.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc::experiments;

llvm::ArrayRef<Experiment> ctxc::experiments::experiments() {
  static const std::vector<Experiment> all = {
      generationExperiment(), normsExperiment(),       startLayerExperiment(),
      scalingExperiment(),    portabilityExperiment(), softContextExperiment(),
      traceExperiment(),      specificityExperiment(), distilExperiment(),
  };
  return all;
}

const Experiment *ctxc::experiments::findExperiment(llvm::StringRef name) {
  llvm::ArrayRef<Experiment> all = experiments();
  auto found = llvm::find_if(all, [&](const Experiment &e) { return e.name == name; });
  return found == all.end() ? nullptr : &*found;
}
