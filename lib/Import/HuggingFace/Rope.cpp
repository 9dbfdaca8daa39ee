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

double hf::scoreGrowth(ConfigReader *rope) {
  if (!rope || rope->text("rope_type", rope->text("type", "default")) == "default")
    return 1;
  double by = rope->number("mscale_all_dim", 0, 0, maxFactor);
  return by ? std::pow(yarnGrowth(rope->number("factor", 1, 1e-3, maxFactor), by), 2) : 1;
}

mlir::Attribute Rope::frequencies(mlir::MLIRContext *context, int64_t head) const {
  auto attr = xf::RopeAttr::get(context, base, dims(head), linear, llama3, yarn);
  if (divisors.empty())
    return attr;
  SmallVector<float> values;
  for (auto [x, divisor] : llvm::zip(attr.getFrequencies(), divisors))
    values.push_back(float(x / divisor));
  auto type =
      mlir::RankedTensorType::get({int64_t(values.size())}, mlir::Float32Type::get(context));
  return mlir::DenseElementsAttr::get(type, ArrayRef(values));
}

namespace {

/// Reads the numbers of a rope's type.
class TypeReader {
public:
  TypeReader(ConfigReader &config, ConfigReader &parameters, const RopeForm &form, Rope &rope)
      : config(config), parameters(parameters), form(form), rope(rope) {}

  void linear() { rope.linear = needed("factor"); }

  void llama3() {
    double factor = needed("factor"), low = needed("low_freq_factor"),
           high = needed("high_freq_factor");
    if (high <= low)
      parameters.problem("high_freq_factor", "is not above 'low_freq_factor'");
    rope.llama3 = {factor, low, high, original()};
  }

  /// Queries and keys grow by the attention factor each, which depends on the factor where it is
  /// not given.
  void yarn() {
    double factor = needed("factor");
    double fast = parameters.number("beta_fast", 32, 1e-3, maxFactor);
    double slow = parameters.number("beta_slow", 1, 1e-3, maxFactor);
    rope.yarn = {factor, fast, slow, original(), double(parameters.flag("truncate", true))};
    double part = parameters.number("mscale", 0, 0, maxFactor);
    double all = parameters.number("mscale_all_dim", 0, 0, maxFactor);
    double absent =
        part && all ? yarnGrowth(factor, part) / yarnGrowth(factor, all) : yarnGrowth(factor);
    rope.amplitude = parameters.number("attention_factor", absent, 1e-6, maxFactor);
  }

  /// The rotation is the default one inside the model's limit of positions, and grows with the
  /// length of the run behind it.
  void dynamic() {
    needed("factor");
    rope.positions = int64_t(positions());
  }

  /// The short factors, which transformers takes for runs inside the original context.
  void longrope() {
    double context = original();
    std::vector<double> shorter = parameters.numbers("short_factor", 1e-6, maxFactor);
    std::vector<double> longer = parameters.numbers("long_factor", 1e-6, maxFactor);
    for (StringRef key : {"short_factor", "long_factor"})
      require(key);
    rope.divisors.assign(shorter.begin(), shorter.end());
    if (shorter != longer)
      rope.positions = int64_t(context);
    bool given = parameters.has("factor");
    double factor = given ? parameters.number("factor", 1, 1e-3, maxFactor) : positions() / context;
    double absent = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(context));
    rope.amplitude = parameters.number("attention_factor", absent, 1e-6, maxFactor);
  }

private:
  void require(StringRef key) {
    if (!parameters.has(key))
      parameters.problem(parameters.has("rope_type") ? "rope_type" : "type",
                         "needs a '" + key + "' beside it");
  }

  double needed(StringRef key) {
    require(key);
    return parameters.number(key, 1, 1e-3, maxFactor);
  }

  /// The classes' own defaults for the limit differ.
  double positions() {
    constexpr StringLiteral key = "max_position_embeddings";
    if (!config.has(key))
      config.problem("has no key '" + key + "', which the rope's type needs");
    return config.integer(key, 2048, 2, int64_t(1) << 40);
  }

  double original() {
    constexpr StringLiteral key = "original_max_position_embeddings";
    double among = parameters.has(key) || form.original ? 0 : positions();
    double given = parameters.number(key, among, 2, 1e12);
    return form.original ? double(*form.original) : given;
  }

  ConfigReader &config, &parameters;
  const RopeForm &form;
  Rope &rope;
};

} // namespace

Rope hf::readRopeParameters(ConfigReader &config, ConfigReader *parameters, double base,
                            const RopeForm &form) {
  Rope rope;
  rope.base = base;
  if (!parameters)
    return rope;
  rope.base = parameters->number("rope_theta", base, 1e-3, maxBase);
  std::string older = parameters->text("type", "default");
  std::string type = parameters->text("rope_type", older);
  StringRef key = parameters->has("rope_type") ? "rope_type" : "type";
  TypeReader numbers(config, *parameters, form, rope);
  if (form.isProportional && type != "proportional")
    parameters->problem(key, "is not supported for this rope; proportional is");
  if (form.isProportional)
    return rope;
  if (form.mayBeLong && type == "longrope")
    numbers.longrope();
  else if (form.mayScale && type == "linear")
    numbers.linear();
  else if (form.mayScale && type == "llama3")
    numbers.llama3();
  else if (form.mayScale && type == "yarn")
    numbers.yarn();
  else if (form.mayScale && form.mayBeLong && type == "dynamic")
    numbers.dynamic();
  else if (type != "default")
    parameters->problem(key, "is not supported in this family; default" +
                                 Twine(form.mayScale ? ", linear, llama3, yarn" : "") +
                                 (!form.mayBeLong ? " are"
                                  : form.mayScale ? ", dynamic and longrope are"
                                                  : " and longrope are"));
  return rope;
}

/// Reports factors of longrope that are not one for each pair of a head.
static void checkDivisors(ConfigReader *parameters, const Rope &rope, int64_t head) {
  int64_t given = rope.divisors.size(), pairs = rope.dims(head) / 2;
  if (given && given != pairs)
    parameters->problem("short_factor", "has " + Twine(given) + " numbers; expected " +
                                            Twine(pairs) +
                                            ", one for each pair of a head that is rotated");
}

Rope hf::readRope(ConfigReader &config, int64_t head, RopeForm form) {
  checkOneRopeForm(config);
  double base = config.number(form.baseKey, form.base, 1e-3, maxBase);
  ConfigReader *parameters =
      config.object(config.has("rope_scaling") ? "rope_scaling" : "rope_parameters");
  Rope rope = readRopeParameters(config, parameters, base, form);
  if (!form.mayRotatePart) {
    checkWholeHeads(config);
    if (parameters)
      checkWholeHeads(*parameters);
    checkDivisors(parameters, rope, head);
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
  if (rope.dims(head) < 2 || rope.dims(head) % 2)
    at->problem(key, "rotates " + Twine(rope.dims(head)) + " of " + Twine(head) +
                         " entries of a head; expected an even "
                         "number of at least 2");
  checkDivisors(parameters, rope, head);
  return rope;
}
