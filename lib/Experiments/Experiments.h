//===- Experiments.h - what each experiment's file gives the registry -----===//
#ifndef CTXC_LIB_EXPERIMENTS_EXPERIMENTS_H
#define CTXC_LIB_EXPERIMENTS_EXPERIMENTS_H

#include "ctxc/Experiments/Lab.h"

namespace ctxc::experiments {

Experiment generationExperiment();
Experiment normsExperiment();
Experiment startLayerExperiment();
Experiment scalingExperiment();
Experiment portabilityExperiment();
Experiment softContextExperiment();
Experiment specificityExperiment();
Experiment traceExperiment();
Experiment distilExperiment();

} // namespace ctxc::experiments

#endif // CTXC_LIB_EXPERIMENTS_EXPERIMENTS_H
