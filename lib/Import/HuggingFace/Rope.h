//===- Rope.h - rotary frequencies, from both generations of config -------===//
#ifndef CTXC_IMPORT_ROPE_H
#define CTXC_IMPORT_ROPE_H

#include "ConfigReader.h"
#include "dialects/XF/XF.h"

namespace ctxc::hf {

/// The parameters of an #xf.rope.
struct Rope {
  double base = 10000;
  double linear = 1;
  llvm::SmallVector<double, 4> llama3;

  xf::RopeAttr attr(mlir::MLIRContext *context, int64_t dims) const {
    return xf::RopeAttr::get(context, base, dims, linear, llama3);
  }
};

/// Reads the one rope of a model: `rope_parameters`, or the older `rope_theta`
/// and `rope_scaling` (whose type was once called `type`).
Rope readRope(ConfigReader &config);

/// Reads rope_type, rope_theta and the numbers of its type from `parameters`,
/// which may be null. `config` holds the model's limit of positions, llama3's
/// default for the original one. `base` is for where there is no rope_theta.
Rope readRopeParameters(ConfigReader &config, ConfigReader *parameters, double base);

/// Reports that a config of both generations at once is ambiguous.
void checkOneRopeForm(ConfigReader &config);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_ROPE_H
