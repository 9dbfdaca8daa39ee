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

/// An op may join a value as often as a head has entries.
TEST_F(DescribedRules, RunsOfOperands) {
  config =
      json::Object{{"model_type", "kimi_linear"}, {"hidden_size", 16}, {"intermediate_size", 12},
                   {"num_hidden_layers", 1},      {"vocab_size", 20},  {"linear_num_heads", 4},
                   {"linear_head_dim", 3}};
  StringRef one = "tensor<4x1xf32>";
  std::string three = with({}), five = with({{"linear_head_dim", 5}});
  EXPECT_HAS(three, ("along 1 : " + one + ", " + one + ", " + one + "\n").str());
  EXPECT_EQ(occurrences(five, one), occurrences(three, one) + 2);
  EXPECT_HAS(with({{"linear_head_dim", 1 << 17}}),
             "linear_head_dim is 131072; expected from 1 to 65536 values to join");
  const json::Value odd[] = {0, 1, -3, 1e300, "3", json::Array{3}};
  for (const json::Value &value : odd)
    EXPECT_HAS(with({{"linear_head_dim", value}}), "key 'linear_head_dim' = ");
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
