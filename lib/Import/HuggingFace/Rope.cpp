#include "Rope.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include <cmath>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

static constexpr double maxBase = 1e30, maxFactor = 1e9;

void hf::checkOneRopeForm(ConfigReader &config) {
  if (config.has("rope_parameters") && config.has("rope_scaling"))
    config.problem("rope_scaling", "stands beside 'rope_parameters'; expected one of the two");
}

void hf::checkWholeHeads(ConfigReader &config) {
  if (config.number("partial_rotary_factor", 1, 0, 1) != 1)
    config.problem("partial_rotary_factor", "is not supported; expected 1");
}

double hf::yarnGrowth(double factor, double by) {
  return factor <= 1 ? 1 : 0.1 * by * std::log(factor) + 1;
}

/// Reads the numbers of type yarn. Queries and keys grow by the attention factor each, which
/// depends on the factor where it is not given.
static void readYarn(ConfigReader &config, ConfigReader &parameters, Rope &rope) {
  double positions = config.integer("max_position_embeddings", 2048, 1, int64_t(1) << 40);
  double original = parameters.number("original_max_position_embeddings", positions, 1, 1e12);
  double factor = parameters.number("factor", 1, 1e-3, maxFactor);
  if (!parameters.has("factor"))
    parameters.problem("rope_type", "needs a 'factor' beside it");
  double fast = parameters.number("beta_fast", 32, 1e-3, maxFactor);
  double slow = parameters.number("beta_slow", 1, 1e-3, maxFactor);
  rope.yarn = {factor, fast, slow, original, double(parameters.flag("truncate", true))};
  double part = parameters.number("mscale", 0, 0, maxFactor);
  double all = parameters.number("mscale_all_dim", 0, 0, maxFactor);
  double absent =
      part && all ? yarnGrowth(factor, part) / yarnGrowth(factor, all) : yarnGrowth(factor);
  rope.amplitude = parameters.number("attention_factor", absent, 1e-6, maxFactor);
}

Rope hf::readRopeParameters(ConfigReader &config, ConfigReader *parameters, double base,
                            bool mayScale) {
  Rope rope;
  rope.base = base;
  if (!parameters)
    return rope;
  rope.base = parameters->number("rope_theta", base, 1e-3, maxBase);
  std::string older = parameters->text("type", "default");
  std::string type = parameters->text("rope_type", older);
  StringRef key = parameters->has("rope_type") ? "rope_type" : "type";
  if (type != "default" && !mayScale) {
    parameters->problem(key, "is not supported in this family; default is");
    for (StringRef number : {"factor", "short_factor", "long_factor", "attention_factor",
                             "original_max_position_embeddings"})
      parameters->ignore(number); // of that type
  } else if (type == "linear") {
    rope.linear = parameters->number("factor", 0, 1e-3, maxFactor);
    if (!parameters->has("factor"))
      parameters->problem("rope_type", "needs a 'factor' beside it");
  } else if (type == "llama3") {
    double positions = config.integer("max_position_embeddings", 2048, 1, int64_t(1) << 40);
    double factor = parameters->number("factor", 1, 1e-3, maxFactor);
    double low = parameters->number("low_freq_factor", 1, 1e-3, maxFactor);
    double high = parameters->number("high_freq_factor", 4, 1e-3, maxFactor);
    double original = parameters->number("original_max_position_embeddings", positions, 1, 1e12);
    for (StringRef key : {"factor", "low_freq_factor", "high_freq_factor"})
      if (!parameters->has(key))
        parameters->problem("rope_type", "needs a '" + key + "' beside it");
    if (high <= low)
      parameters->problem("high_freq_factor", "is not above 'low_freq_factor'");
    rope.llama3 = {factor, low, high, original};
  } else if (type == "yarn") {
    readYarn(config, *parameters, rope);
  } else if (type != "default") {
    parameters->problem(key, "is not supported; default, linear, llama3 and yarn are");
  }
  return rope;
}

Rope hf::readRope(ConfigReader &config, RopeForm form, std::optional<int64_t> head) {
  checkOneRopeForm(config);
  double base = config.number(form.baseKey, form.base, 1e-3, maxBase);
  ConfigReader *parameters =
      config.object(config.has("rope_scaling") ? "rope_scaling" : "rope_parameters");
  Rope rope = readRopeParameters(config, parameters, base, form.mayScale);
  if (!form.mayRotatePart) {
    checkWholeHeads(config);
    if (parameters)
      checkWholeHeads(*parameters);
    return rope;
  }
  rope.rotated = config.number(form.partKey, form.rotated, 0, 1);
  ConfigReader *at = &config;
  StringRef key = form.partKey;
  if (parameters && parameters->has("partial_rotary_factor")) {
    rope.rotated = parameters->number("partial_rotary_factor", 1, 0, 1);
    at = parameters;
    key = "partial_rotary_factor";
  }
  if (head && (rope.dims(*head) < 2 || rope.dims(*head) % 2))
    at->problem(key, "rotates " + Twine(rope.dims(*head)) + " of " + Twine(*head) +
                         " entries of a head; expected an even "
                         "number of at least 2");
  return rope;
}
