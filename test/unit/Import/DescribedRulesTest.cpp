// The rules by which a description gives more than single numbers: what each of them writes, and
// the values that it refuses. Each is tested with a type that has it.
#include "Fixture.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

struct DescribedRules : ImportTest {
  std::string with(Changes changes) {
    json::Object changed = config;
    for (const auto &[key, value] : changes)
      changed[key] = value;
    writeConfig(std::move(changed));
    ImportOptions options;
    options.needWeights = false;
    return imported(directory(), options);
  }

  json::Object config;
};

/// Several ropes rotate the same part of a head, or are refused.
TEST_F(DescribedRules, OnePartOfAHead) {
  config = json::Object{{"model_type", "mimo_v2_flash"},
                        {"hidden_size", 16},
                        {"intermediate_size", 12},
                        {"num_hidden_layers", 2},
                        {"vocab_size", 20}};
  auto parts = [&](json::Value full, json::Value sliding) {
    auto rope = [](json::Value part) {
      return json::Object{{"rope_theta", 1e4}, {"partial_rotary_factor", std::move(part)}};
    };
    return with(
        {{"rope_parameters", json::Object{{"full_attention", rope(std::move(full))},
                                          {"sliding_attention", rope(std::move(sliding))}}}});
  };
  EXPECT_HAS(parts(0.5, 0.5), "xf.rotary");
  EXPECT_HAS(parts(0.5, 0.25), "rotates different parts of heads, which the description of");
  for (const json::Value &part : {json::Value(-0.5), json::Value(1e300), json::Value("0.5")})
    EXPECT_HAS(parts(part, 0.5), "partial_rotary_factor' = ");
}

} // namespace
