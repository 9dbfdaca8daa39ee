//===- Rope.h - rotary frequencies, from both generations of config -------===//
#ifndef CTXC_IMPORT_ROPE_H
#define CTXC_IMPORT_ROPE_H

#include "ctxc/Checkpoint/ConfigReader.h"
#include "dialects/XF/XF.h"

namespace ctxc::hf {

/// The parameters of an #xf.rope, and the share of a head that it rotates.
struct Rope {
  double base = 10000;
  double rotated = 1;
  int64_t entries = 0; ///< of a head that it rotates, where not 0, whatever `rotated` is
  double linear = 1;
  llvm::SmallVector<double, 4> llama3;
  llvm::SmallVector<double, 5> yarn;
  llvm::SmallVector<double> divisors; ///< of the frequencies, one by one; none where empty
  double amplitude = 1;               ///< of what is rotated
  double scores = 1;                  ///< how much the scores of attention grow
  int64_t positions = 0;              ///< from which on the frequencies are others; 0 is none

  /// How many entries of a head are rotated.
  int64_t dims(int64_t head) const { return entries ? entries : int64_t(head * rotated); }
  /// The frequencies for heads of `head` entries, as a setting takes them.
  mlir::Attribute frequencies(mlir::MLIRContext *context, int64_t head) const;
};

/// How a family's class reads the keys of a rope.
struct RopeForm {
  double base = 10000;   ///< where the config gives none
  bool mayScale = true;  ///< takes linear, llama3 and yarn
  bool mayBeLong = true; ///< takes longrope, and dynamic where it may scale
  /// The length of the original context, where it is not among the parameters.
  std::optional<int64_t> original = {};
  bool isProportional = false; ///< must have that type, whose frequencies are those of whole heads
  bool mayRotatePart = false;  ///< reads partial_rotary_factor
  double rotated = 1;          ///< where the config gives no partial_rotary_factor
  /// What the older configs call these two.
  llvm::StringLiteral baseKey = "rope_theta", partKey = "partial_rotary_factor";

  static RopeForm part(double rotated) {
    RopeForm form;
    form.mayRotatePart = true;
    form.rotated = rotated;
    return form;
  }
};

/// Reads the one rope of a model: `rope_parameters`, or the older `rope_theta`
/// and `rope_scaling` (whose type was once called `type`). Of a head of `head` entries pairs are
/// rotated, each with a factor of longrope.
Rope readRope(ConfigReader &config, int64_t head, RopeForm form = {});

/// Reads rope_type, rope_theta and the numbers of its type from `parameters`,
/// which may be null. `config` holds the model's limit of positions, the
/// default for the original one. `base` is for where there is no rope_theta.
Rope readRopeParameters(ConfigReader &config, ConfigReader *parameters, double base,
                        const RopeForm &form = {});

/// The factor of YaRN's authors for queries and for keys, for contexts `factor` times as long.
double yarnGrowth(double factor, double by = 1);

/// How much scores grow by mscale_all_dim of a rope that stretches the context, for queries and for
/// keys, where a model's code has that. `rope` may be null.
double scoreGrowth(ConfigReader *rope);

/// Reports that a config of both generations at once is ambiguous.
void checkOneRopeForm(ConfigReader &config);

/// Reports a partial_rotary_factor, for families that rotate whole heads.
void checkWholeHeads(ConfigReader &config);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_ROPE_H
