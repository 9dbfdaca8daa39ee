#include "ctxc/Export/ApplyAdapter.h"
#include "Fixture.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

struct ApplyAdapter : PatchDirectory {
  /// [[1], [-2]] [[0.5, 0.25, 4]] and a norm's change that BF16 holds in part.
  static Adapter adapter() {
    Adapter adapter;
    adapter.matrices = {{"layers.0.w", 2, 3, 1, {1, -2}, {0.5, 0.25, 4}}};
    adapter.vectors = {{"layers.0.norm", {0x1p-7f, 0x1p-9f}}};
    adapter.prefix = {2, 17};
    return adapter;
  }
  AdapterOrigin origin() {
    AdapterOrigin origin;
    origin.sha256 = std::string(64, 'a');
    origin.saysPrefix = true;
    origin.card =
        json::Object{{"format", "ctxc-card"},
                     {"model_hash", cantFail(checkpoint()->hash())},
                     {"context_tokens", 211},
                     {"share_recovered", 0.715},
                     {"share_interval_95", json::Array{0.47, 0.82}},
                     {"texts", 5},
                     {"all", json::Object{{"tokens", 160}}},
                     {"most_dependent", json::Object{{"kl_without", 4}, {"kl_adapted", 1}}},
                     {"drift", json::Object{{"adapted", 0.077}, {"context", 0.313}}}};
    return origin;
  }
  std::string apply(const Adapter &adapter, const AdapterOrigin &origin,
                    std::optional<DType> storage = std::nullopt) {
    return messageOf(applyAdapter(*checkpoint(), adapter, origin, path("out"), storage));
  }
  std::unique_ptr<Checkpoint> out() { return cantFail(Checkpoint::open(path("out"))); }
  static void expect(const std::string &message, const char *part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  void expectReadme(std::initializer_list<const char *> parts) {
    std::string readme = contentOf("out/README.md");
    for (const char *part : parts)
      EXPECT_NE(readme.find(part), std::string::npos) << part << "\nin " << readme;
  }
};

TEST_F(ApplyAdapter, AddsItInTheStoredTypes) {
  auto report = applyAdapter(*checkpoint(), adapter(), origin(), path("out"));
  ASSERT_TRUE(bool(report)) << messageOf(std::move(report));
  EXPECT_EQ(report->changed, 2u);
  auto made = out();
  EXPECT_EQ(doublesOf(*made->find("layers.0.w")), (std::vector<double>{1.5, 2.25, 7, 3, 4.5, -2}));
  EXPECT_EQ(doublesOf(*made->find("layers.0.norm")), (std::vector<double>{1 + 0x1p-7, 1}));
  EXPECT_EQ(doublesOf(*made->find("untouched")), (std::vector<double>{0.5, 65504}));
  double change = (1 + 4) * (0.25 + 0.0625 + 16) + 0x1p-14 + 0x1p-18;
  EXPECT_NEAR(report->relativeRounding, std::sqrt(0x1p-18 / change), 1e-12);
}

TEST_F(ApplyAdapter, SumsOverTheRank) {
  Adapter two = adapter();
  two.matrices = {{"layers.0.w", 2, 3, 2, {1, 10, -2, 100}, {0.5, 0.25, 4, 1, 2, 3}}};
  ASSERT_EQ(apply(two, origin(), DType::F32), "");
  EXPECT_EQ(doublesOf(*out()->find("layers.0.w")),
            (std::vector<double>{11.5, 22.25, 37, 103, 204.5, 298}));
  EXPECT_EQ(doublesOf(*out()->find("layers.0.norm"))[1], 1 + 0x1p-9);
}

TEST_F(ApplyAdapter, SaysWhatItIs) {
  AdapterOrigin from = origin();
  from.prefixText = "kept words";
  write("m/README.md", "the model's own");
  ASSERT_EQ(apply(adapter(), from), "");
  auto strings = out()->files()[0]->metadata();
  EXPECT_EQ(strings.at("ctxc_approximate"), "true");
  EXPECT_EQ(strings.at("ctxc_adapter_sha256"), std::string(64, 'a'));
  EXPECT_EQ(strings.at("ctxc_adapter_strength"), "1.00");
  EXPECT_EQ(strings.at("ctxc_prefix"), "2,17");
  EXPECT_EQ(strings.at("ctxc_context_tokens"), "211");
  EXPECT_EQ(strings.at("ctxc_share_recovered"), "0.7150");
  EXPECT_EQ(strings.at("ctxc_original_model"), cantFail(checkpoint()->hash()));
  expectReadme({"an adapter that stands for a context", "| context | 211 tokens |",
                "| 71.5 % (95 %: 47 to 82), on 160 tokens of 5 texts that were not fitted |",
                "| of the tokens that depend on it most | 75.0 % |",
                "| KL 0.077; the context itself 0.313 |", "the tokens 2,17, among them",
                "[prefix.txt](prefix.txt)", "**approximate**", "MODEL_README.md"});
  std::string readme = contentOf("out/README.md");
  EXPECT_EQ(readme.find("may not hold"), std::string::npos);
  EXPECT_EQ(readme.find("do not hold"), std::string::npos);
  EXPECT_EQ(contentOf("out/prefix.txt"), "kept words");
  EXPECT_EQ(contentOf("out/MODEL_README.md"), "the model's own");
  EXPECT_EQ(approximation(from), "the adapter approximates a context of 211 tokens: 71.5 % of its "
                                 "effect on text that was not fitted");
}

TEST_F(ApplyAdapter, SaysWhereTheCardDoesNotHold) {
  AdapterOrigin from = origin();
  from.strength = 0.5;
  (*from.card)["model_hash"] = "another";
  ASSERT_EQ(apply(adapter(), from), "");
  expectReadme({"| strength | 0.50 |", "These figures do not hold here",
                "The card was made for other weights than these"});
}

TEST_F(ApplyAdapter, ClaimsNothingWithoutACard) {
  AdapterOrigin from = origin();
  from.card.reset();
  from.saysPrefix = false;
  Adapter of = adapter();
  of.prefix.clear();
  ASSERT_EQ(apply(of, from), "");
  auto strings = out()->files()[0]->metadata();
  EXPECT_EQ(strings.count("ctxc_approximate"), 0u);
  EXPECT_EQ(strings.count("ctxc_prefix"), 0u);
  expectReadme({"a LoRA adapter", "| in front of every text | what the tokenizer puts there |",
                "Nothing beside the adapter said how good it is"});
  EXPECT_EQ(approximation(from), "nothing beside the adapter says how good it is");
}

TEST_F(ApplyAdapter, NamesEachOfSeveralContexts) {
  AdapterOrigin from = origin();
  auto cardOf = [](const char *name, double share) {
    return json::Object{{"name", name}, {"context_tokens", 7}, {"share_recovered", share}};
  };
  from.card = json::Object{{"format", "ctxc-card"},
                           {"model_hash", cantFail(checkpoint()->hash())},
                           {"contexts", json::Array{cardOf("one", 0.5), cardOf("two", 0.25)}}};
  ASSERT_EQ(apply(adapter(), from), "");
  EXPECT_EQ(out()->files()[0]->metadata().at("ctxc_contexts"), "2");
  expectReadme({"| context one | 7 tokens, of whose effect 50.0 % is recovered |",
                "| context two | 7 tokens, of whose effect 25.0 % is recovered |"});
  EXPECT_EQ(approximation(from), "the adapter approximates 2 contexts: 25.0 % and more of the "
                                 "effect of each on text that was not fitted");
}

TEST_F(ApplyAdapter, RefusesWhatDoesNotFit) {
  Adapter of = adapter();
  of.matrices[0].parameter = "layers.9.w";
  expect(apply(of, origin()), "layers.9.w: is no tensor of");
  of = adapter();
  of.vectors[0].delta.push_back(1);
  expect(apply(of, origin()), "layers.0.norm: the adapter's change is of shape [3], expected [2]");
  of = adapter();
  of.matrices[0].left.pop_back();
  expect(apply(of, origin()), "layers.0.w: the adapter's factors do not have the sizes");
  of = adapter();
  of.vectors.push_back(of.vectors[0]);
  expect(apply(of, origin()), "layers.0.norm: the adapter changes it twice");
  EXPECT_EQ(names(), (std::vector<std::string>{"m"}));
}

TEST_F(ApplyAdapter, ReadsWhatIsBesideIt) {
  auto file = [&](std::map<std::string, std::string> strings) {
    ASSERT_EQ(messageOf(writeSafetensors(path("a/adapter_model.safetensors"),
                                         {tensorOf("x", DType::F32, {1}, {1})}, strings)),
              "");
  };
  write("a/adapter_config.json", "{}");
  EXPECT_TRUE(isAdapterDirectory(path("a")));
  EXPECT_FALSE(isAdapterDirectory(path("m")));
  expect(messageOf(readAdapterOrigin(path("a"))), "adapter_model.safetensors");
  file({{"prefix", "2,17"}});
  write("a/prefix.txt", "kept words");
  write("a/card.json", "{\"format\": \"ctxc-card\", \"context_tokens\": 4}");
  AdapterOrigin found = cantFail(readAdapterOrigin(path("a")));
  EXPECT_TRUE(found.saysPrefix);
  EXPECT_EQ(found.prefixText, "kept words");
  EXPECT_EQ(found.card->getInteger("context_tokens"), 4);
  EXPECT_EQ(found.sha256.size(), 64u);
  write("a/card.json", "{\"format\": \"another's\"}");
  EXPECT_FALSE(cantFail(readAdapterOrigin(path("a"))).card);
  write("a/card.json", "{");
  expect(messageOf(readAdapterOrigin(path("a"))), "card.json");
  file({{"position", "4"}, {"tokens", "1,2"}});
  expect(messageOf(readAdapterOrigin(path("a"))), "is a patch of one token");
}

} // namespace
