// Carefully forged proofs, whose parts are all consistent with each other, are refused for the
// reason that they are wrong.
#include "Fixture.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::test;
using proof::Claim;
using proof::Instance;

namespace {

class Forgery {
public:
  explicit Forgery(llvm::StringRef path, ModelOptions options = {})
      : model(path, std::move(options)), proof(model.prove()) {}

  Claim &claim() { return proof.claims.front(); }
  std::string problems(bool replay = true) {
    return llvm::join(model.problems(proof, replay), "\n");
  }
  /// Replaces the claim by one with the verdict `verdict`.
  void become(llvm::StringRef verdict) {
    Claim old = claim(), &c = claim();
    c = Claim();
    c.block = old.block, c.layers = old.layers, c.digest = old.digest, c.text = old.text;
    c.frozen = old.frozen, c.shared = old.shared, c.inputsDepend = old.inputsDepend;
    c.verdict = verdict.str();
  }
  void patchOutput(const Instance &patch, proof::Names chain) {
    claim().theorem = claim().cut.empty() ? "parallel-block" : "unified";
    claim().parameters.push_back(patch.parameter);
    claim().outputs.push_back({chain.back(), chain, {patch}, {}, ""});
  }

  Model model;
  proof::Proof proof;
};

Instance matrix(llvm::StringRef op, llvm::StringRef parameter, llvm::StringRef of) {
  return {op.str(),         parameter.str(), "rank1",   "output-matrix",
          "nonzero-vector", of.str(),        "null-set"};
}

} // namespace

#define EXPECT_SAYS(problems, text) EXPECT_NE((problems).find(text), std::string::npos) << problems

TEST(WrongProof, DropsAMemberOfTheCut) {
  Forgery f(golden("llama"));
  f.claim().cut.erase(f.claim().cut.begin() + 1);
  f.claim().parameters.erase(f.claim().parameters.begin() + 1);
  EXPECT_SAYS(f.problems(), "cut: the context reaches %h, which %mlp reads, past the cut");
}

TEST(WrongProof, HasItsCutBeforeTheContext) {
  Forgery f(golden("llama"));
  for (unsigned i : {0, 1}) {
    Instance &patch = f.claim().cut[i];
    patch.op = i ? "%k_row" : "%q_row";
    patch.parameter = i ? "self_attn.k_proj.weight" : "self_attn.q_proj.weight";
    patch.of = "%n";
  }
  f.claim().parameters[0] = f.claim().cut[0].parameter;
  f.claim().parameters[1] = f.claim().cut[1].parameter;
  std::string problems = f.problems();
  EXPECT_SAYS(problems, "cut: %q_row belongs to the contextual part");
  EXPECT_SAYS(problems, "which %mlp reads, past the cut");
}

TEST(WrongProof, LeavesAPartAsItIs) {
  Forgery f(ruleFile("parts"));
  ASSERT_EQ(f.claim().outputs.size(), 2u);
  f.claim().outputs.pop_back();
  f.claim().parameters.pop_back();
  EXPECT_SAYS(f.problems(/*replay=*/false),
              "chain: %c has another part, %q, that no chain to %y brings to its target");
}

TEST(WrongProof, LeavesALengthAsItIs) {
  Forgery f(ruleFile("number-behind-norm"));
  ASSERT_EQ(f.claim().outputs.size(), 2u);
  ASSERT_EQ(f.claim().outputs[0].chain, (proof::Names{"%d", "%n", "%f", "%y"}));
  f.claim().outputs.pop_back();
  f.claim().parameters.pop_back();
  EXPECT_SAYS(f.problems(/*replay=*/false),
              "chain: %f has another part, %g, that no chain to %y brings to its target");
  f.claim().outputs[0].chain = {"%d", "%n"};
  f.claim().outputs[0].goal = "%n";
  EXPECT_SAYS(f.problems(/*replay=*/false),
              "chain: ends in %n, which brings a direction to its target, and no length");
}

TEST(WrongProof, HasItsCutAfterTheOutputPatch) {
  Forgery f(ruleFile("gated-pre-norm"));
  f.claim().cut.front() = f.claim().outputs.front().patches.front();
  f.claim().parameters.front() = f.claim().cut.front().parameter;
  EXPECT_SAYS(f.problems(), "reads what is patched for the output");
}

TEST(WrongProof, PatchesAFrozenParameter) {
  Forgery f(ruleFile("narrow-frozen-matrix"));
  f.become("controllable");
  f.claim().cut = {matrix("%h", "w1", "%v")};
  f.claim().cut.front().lemma = "input-mlp";
  f.claim().parameters = {"w1"};
  f.patchOutput(matrix("%d", "w2", "%h"), {"%d", "%y"});
  // Apart from this the plan would be exact.
  EXPECT_EQ(f.problems(), "block 'narrow_frozen_matrix', layers 0: chain: %d has the frozen "
                          "parameter 'w2'; expected an op that may be patched");
}

TEST(WrongProof, PatchesAParameterOfTwoLayers) {
  Forgery f(ruleFile("shared-by-layers"));
  f.claim().outputs.clear();
  f.claim().parameters = {"fc1"};
  f.patchOutput(matrix("%d", "fc2", "%s"), {"%d", "%e", "%y"});
  EXPECT_SAYS(f.problems(), "chain: %d shares its parameter 'fc2' with another layer");
}

TEST(WrongProof, LeavesALinkOut) {
  Forgery f(golden("gptj"));
  proof::Names &chain = f.claim().outputs.front().chain;
  ASSERT_GE(chain.size(), 3u);
  chain.erase(chain.begin() + 1);
  EXPECT_SAYS(f.problems(), "so that a link is missing between them");
}

TEST(WrongProof, LeadsItsChainThroughANorm) {
  Forgery f(ruleFile("norm-without-scale"));
  f.become("controllable");
  f.claim().cut = {matrix("%h", "fc1", "%v")};
  f.claim().cut.front().lemma = "input-mlp";
  f.claim().parameters = {"fc1"};
  f.patchOutput(matrix("%d", "fc2", "%s"), {"%d", "%n", "%y"});
  EXPECT_EQ(f.problems(), "block 'norm_without_scale', layers 0: chain: %n cannot be solved: a "
                          "normalisation's image is bounded, so it cannot reach every target");
}

TEST(WrongProof, OmitsAnObligation) {
  Forgery f(golden("llama"));
  Instance &patch = f.claim().outputs.front().patches.front();
  patch.needs = "nothing";
  patch.of = patch.fails = "";
  EXPECT_SAYS(f.problems(), "needs: found 'nothing', expected 'nonzero-vector'");
  Forgery gate(ruleFile("sigmoid-gate"));
  ASSERT_FALSE(gate.claim().outputs.front().divisors.empty());
  gate.claim().outputs.front().divisors.clear();
  EXPECT_SAYS(gate.problems(), "divisors: the condition of");
  Forgery mixture(ruleFile("mixture"));
  ASSERT_EQ(mixture.claim().selections.size(), 1u);
  mixture.claim().selections.clear();
  EXPECT_SAYS(mixture.problems(), "selections: the condition of %sel is missing");
}

TEST(WrongProof, MakesAConditionBetterThanItIs) {
  Forgery f(ruleFile("relu-mlp"));
  Instance &patch = f.claim().outputs.front().patches.front();
  ASSERT_EQ(patch.fails, "open-set");
  patch.fails = "null-set";
  EXPECT_SAYS(f.problems(), "fails: found 'null-set', expected 'open-set'");
}

TEST(WrongProof, RejectsWhatIsControllable) {
  Forgery f(ruleFile("gated-pre-norm"));
  proof::Names parameters = f.claim().parameters;
  std::string goal = f.claim().outputs.front().chain.front();
  f.become("rejected");
  f.claim().patchable = parameters;
  f.claim().behind = {{goal, "anything", {}, {}, {}}};
  f.claim().causes = {{"thin-output", {0}, {1, "", 1, 0.5}}};
  EXPECT_SAYS(f.problems(), "what the context makes of the output may be within reach");
}

TEST(WrongProof, LeavesWhatIsControllableUndecided) {
  Forgery f(ruleFile("gated-pre-norm"));
  f.become("undecided");
  f.claim().missing = "no-solvable-chain";
  EXPECT_SAYS(f.problems(), "verdict: found undecided, and the block's output can be solved for");
}

TEST(WrongProof, CallsTheControllableOutputOnly) {
  Forgery f(ruleFile("gated-pre-norm"));
  f.claim().verdict = "output-only";
  f.claim().theorem = "one-patch-block";
  EXPECT_SAYS(f.problems(), "verdict: found output-only, expected controllable");
}

TEST(WrongProof, CallsTheOutputOnlyControllable) {
  Forgery f(ruleFile("one-matrix"));
  ASSERT_EQ(f.claim().verdict, "output-only");
  f.claim().verdict = "controllable";
  f.claim().theorem = "parallel-block";
  f.claim().open.clear();
  EXPECT_SAYS(f.problems(), "past the cut");
}

TEST(WrongProof, ForgetsABarrier) {
  Forgery f(ruleFile("two-bounds-of-two-kinds"));
  ASSERT_EQ(f.claim().behind.size(), 2u);
  f.claim().behind.pop_back();
  EXPECT_SAYS(f.problems(), "behind: a patch reaches output 0, %y, past all of these");
}

TEST(WrongProof, MakesABarrierSmaller) {
  Forgery f(ruleFile("norm-without-scale"));
  f.claim().behind.front().radius = 1;
  EXPECT_SAYS(f.problems(), "behind %n: radius: found '1.000000e+00', expected '2.000000e+00'");
}

TEST(WrongProof, HasItsBarrierWhereTheTailIsNotAffine) {
  Forgery f(ruleFile("norm-without-scale"));
  f.claim().behind = {{"%d", "anything", {}, {}, {}}};
  f.claim().causes.front().rule = "thin-output";
  EXPECT_SAYS(f.problems(), "the outputs are not affine in the barriers");
}

TEST(WrongProof, ClaimsAnotherDistance) {
  Forgery f(ruleFile("norm-without-scale"));
  f.claim().causes.front().target.distance *= 1.01;
  EXPECT_SAYS(f.problems(), "causes: distance: found");
}

TEST(WrongProof, NamesOtherLayers) {
  Forgery f(golden("llama"));
  f.claim().layers = "0-1";
  std::string problems = f.problems();
  EXPECT_SAYS(problems, "layers '0-1': the model has no such block with just these layers");
  EXPECT_SAYS(problems, "block 'llama', layers 0-2: is not claimed");
}

TEST(WrongProof, ClaimsABlockTwiceOrNever) {
  Forgery f(golden("llama"));
  f.proof.claims.push_back(f.claim());
  EXPECT_SAYS(f.problems(), "block 'llama', layers 0-2: is claimed twice");
  f.proof.claims.clear();
  EXPECT_SAYS(f.problems(), "block 'llama', layers 0-2: is not claimed");
}

TEST(WrongProof, IsOfAnotherBlock) {
  Forgery f(golden("llama"));
  f.claim().digest.back() = f.claim().digest.back() == '0' ? '1' : '0';
  EXPECT_SAYS(f.problems(), "digest: found 'sha256:");
  Forgery changed(golden("llama"));
  changed.claim().text[2] = "  %n_hat = xf.normalize rms %x eps 1.0 : tensor<54xf32>";
  EXPECT_SAYS(changed.problems(), "text, line 3: found");
}

TEST(WrongProof, NeedsMoreSitesThanItSays) {
  ModelOptions options;
  options.scope = SiteScope::All;
  Forgery f(ruleFile("attention-matrix-on-request"), options);
  EXPECT_EQ(f.problems(), "");
  f.proof.sites = "mlp";
  EXPECT_SAYS(f.problems(), "%a belongs to the contextual part");
}

// The reader must survive files from untrusted sources, whatever their bytes are.
TEST(DamagedProof, IsAnErrorOrAWrongProof) {
  Forgery f(ruleFile("two-bounds-of-two-kinds"));
  std::string text;
  llvm::raw_string_ostream os(text);
  proof::writeProof(f.proof, os);
  uint64_t state = 1;
  auto draw = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  unsigned unreadable = 0, wrong = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (size_t flips = 1 + draw(3); flips > 0; --flips)
      switch (draw(3)) {
      case 0:
        damaged[draw(damaged.size())] = char(draw(256));
        break;
      case 1:
        damaged.erase(draw(damaged.size()), 1 + draw(20));
        break;
      default:
        damaged.insert(draw(damaged.size()), damaged.substr(draw(damaged.size()), draw(40)));
      }
    auto read = proof::parseProof(damaged, "damaged");
    if (!read) {
      EXPECT_EQ(llvm::toString(read.takeError()).find("damaged"), 0u);
      ++unreadable;
    } else {
      wrong += !f.model.problems(*read).empty();
    }
  }
  EXPECT_GT(unreadable, 1000u);
  EXPECT_GT(wrong, 100u);
}

TEST(DamagedProof, MayClaimTooMuchOfEverything) {
  Forgery f(golden("llama"));
  f.claim().outputs.resize(100000, f.claim().outputs.front());
  EXPECT_SAYS(f.problems(), "outputs: found 100000 entries, expected at most");
  Forgery rejected(ruleFile("norm-without-scale"));
  rejected.claim().causes.front().target.factor = 1e300;
  rejected.claim().causes.front().target.scaled = "context";
  EXPECT_NE(rejected.problems(), "");
  rejected.claim().causes.front().outputs = {int64_t(1) << 62};
  EXPECT_SAYS(rejected.problems(), "causes: the block has no output");
}
