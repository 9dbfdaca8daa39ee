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

/// A list may have to hold the base of the rotation once for each layer.
TEST_F(DescribedRules, OneBaseForAllLayers) {
  config =
      json::Object{{"model_type", "granite_swa"}, {"hidden_size", 16}, {"intermediate_size", 12},
                   {"num_hidden_layers", 2},      {"vocab_size", 20},  {"num_attention_heads", 4}};
  std::string plain = with({});
  EXPECT_HAS(plain, "xf.layer @granite_swa_2(");
  EXPECT_EQ(with({{"layer_rope_theta", json::Array{10000, 10000.0}}}), plain);
  EXPECT_EQ(with({{"layer_rope_theta", nullptr}}), plain);
  EXPECT_EQ(with({{"rope_theta", 400}, {"layer_rope_theta", json::Array{400, 400}}}),
            with({{"rope_theta", 400}}));
  EXPECT_NE(with({{"rope_theta", 400}}), plain);
  const json::Value odd[] = {3,
                             "10000",
                             true,
                             json::Object{{"0", 10000}},
                             json::Array{},
                             json::Array{10000},
                             json::Array{10000, 10000, 10000},
                             json::Array{10000, 0},
                             json::Array{400, 400},
                             json::Array{-10000, -10000},
                             json::Array{1e300, 1e300},
                             json::Array{10000, "10000"},
                             json::Array{10000, nullptr},
                             json::Array{json::Array{10000}, 10000}};
  for (const json::Value &value : odd) {
    std::string said = with({{"layer_rope_theta", value}});
    EXPECT_HAS(said, "error: ");
    EXPECT_HAS(said, "key 'layer_rope_theta' = ");
    EXPECT_HAS(said, "expected 10000 for each layer, as 'rope_parameters' says, or a program by");
  }
}

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
