// Exact patches that are not in the paper.
#include "RuleTable.h"

using namespace ctxc;

static constexpr llvm::StringLiteral normBias = R"(
xf.block @norm_bias(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %n = xf.normalize layer %v eps 1.0e-05 : tensor<8xf32>
  %beta = xf.param "norm_bias" : tensor<8xf32>
  %z = xf.bias %n + %beta : tensor<8xf32>, tensor<8xf32>
  %h = xf.activation gelu %z : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral noNormBias = R"(
xf.block @no_norm_bias(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %n = xf.normalize layer %v eps 1.0e-05 : tensor<8xf32>
  %h = xf.activation gelu %n : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral normScale = R"(
xf.block @norm_scale(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %n = xf.normalize layer %v eps 1.0e-05 : tensor<8xf32>
  %gamma = xf.param "norm_scale" : tensor<8xf32>
  %z = xf.scale %n by %gamma : tensor<8xf32>, tensor<8xf32>
  %h = xf.activation gelu %z : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral normScaleFrozen = R"(
xf.block @norm_scale_frozen(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %n = xf.normalize layer %v eps 1.0e-05 : tensor<8xf32>
  %gamma = xf.param "norm_scale" frozen : tensor<8xf32>
  %z = xf.scale %n by %gamma : tensor<8xf32>, tensor<8xf32>
  %h = xf.activation gelu %z : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral oneMatrix = R"(
xf.block @one_matrix(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral oneMatrixFrozen = R"(
xf.block @one_matrix_frozen(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" frozen : tensor<8x8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral sigmoidGate = R"(
xf.block @sigmoid_gate(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %W_gate = xf.param "out_gate" : tensor<8x8xf32>
  %k = xf.linear %W_gate * %x : tensor<8x8xf32>, tensor<8xf32>
  %s = xf.activation sigmoid %k : tensor<8xf32>
  %e = xf.mul %d, %s : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral reluGate = R"(
xf.block @relu_gate(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %W_gate = xf.param "out_gate" frozen : tensor<8x8xf32>
  %k = xf.linear %W_gate * %x : tensor<8x8xf32>, tensor<8xf32>
  %s = xf.activation relu %k : tensor<8xf32>
  %e = xf.mul %d, %s : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral attentionOutput = R"(
xf.block @attention_output(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %W_o = xf.param "o" : tensor<8x8xf32>
  %o = xf.linear %W_o * %a : tensor<8x8xf32>, tensor<8xf32>
  %v = xf.add %x, %o : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %c = xf.activation tanh %d : tensor<8xf32>
  %y = xf.add %v, %c : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral oneTap = R"(
xf.block @one_tap(%x: tensor<8xf32>) -> tensor<8xf32> {
  %K = xf.param "conv" : tensor<8x1xf32>
  %a = xf.conv %K, %x : tensor<8x1xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" frozen : tensor<8x8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral twoTaps = R"(
xf.block @two_taps(%x: tensor<8xf32>) -> tensor<8xf32> {
  %K = xf.param "conv" : tensor<8x2xf32>
  %a = xf.conv %K, %x : tensor<8x2xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" frozen : tensor<8x8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static const Rule extensionTable[] = {
    {"norm-bias-input",
     "Input Controllability by a Bias",
     RuleKind::Extension,
     "input controllability of biases",
     R"(f(u + β), u = N(v), is input-controllable:
  Δβ = N(v_C) − N(v):   a vector, no division, no condition.)",
     R"(The bias of a LayerNorm that the MLP alone reads (GPT-2, OPT, Falcon-RW) can take the place of all matrices behind it: --objective no-division chooses it.)",
     {normBias, VerdictKind::Controllable},
     {noNormBias, VerdictKind::OutputOnly, "output-only"}},

    {"norm-scale-input",
     "Input Controllability by a Scale",
     RuleKind::Extension,
     "input controllability of scales",
     R"(f(γ ⊙ u), u = N(v), no entry of u zero, is input-controllable:
  Δγ = γ ⊙ (u_C − u) ⊘ u.)",
     R"(One vector in place of several matrices, but it divides entry by entry: on a random block its norm was 700 times that of the matrices' patches. Such a plan is fragile (`fragile-plan`), and is chosen only if it is requested or if there is no other plan.)",
     {normScale, VerdictKind::Controllable, "norm-scale-input", "--objective paper"},
     {normScaleFrozen, VerdictKind::OutputOnly, "output-only"}},

    {"one-patch-block",
     "One Patch for a Whole Block",
     RuleKind::Extension,
     "",
     R"(y = v + g(h; θ_g), g output-controllable. With h and v as the reduced run itself has them:
  δ = T(C, x) − v − g(h; θ_g),   for a matrix ΔW_down = δ hᵀ / ‖h‖².)",
     R"(The verdict *output-only*: G absorbs the whole difference, computed from the reduced run's own activations. One rank-1 patch does a whole Llama block. The output is exact; what happens inside the MLP is not what happened with the context, which matters where internals are read (probes, early exits).)",
     {oneMatrix, VerdictKind::OutputOnly},
     {oneMatrixFrozen, VerdictKind::Rejected, "nothing-reaches-output"}},

    {"known-factor",
     "A Known Factor in the Output Chain",
     RuleKind::Extension,
     "a known factor of the output chain",
     R"(y = v + c ⊙ g(h; θ_g) with c known and no entry of it zero: g's target is
  (T(C, x) − v) ⊘ c.)",
     R"(Gates, residual multipliers and frozen scales between the patched op and the output are divided out. *Known* means that no patch of G reaches the factor. A sigmoid is never zero; a relu is, on an open set, and then nothing passes in those entries.)",
     {sigmoidGate, VerdictKind::Controllable},
     {reluGate, VerdictKind::Rejected, "thin-output"}},

    {"attention-output",
     "The Attention Output Instead",
     RuleKind::Extension,
     "",
     R"(v = x + W_o a, a ≠ 0. One patch makes v = v_C, and with it everything behind:
  ΔW_o = (v_C − v) aᵀ / ‖a‖².)",
     R"(The paper patches the MLP. The output projection of attention can absorb the same difference, wherever it joins the residual stream by a sum; --sites all lets plans use it. It is the way out for a block whose MLP is rejected, and never the default.)",
     {attentionOutput, VerdictKind::Controllable, "output-matrix", "--sites all"},
     {attentionOutput, VerdictKind::Rejected, "bounded-output"}},

    {"nothing-to-absorb",
     "Nothing to Absorb",
     RuleKind::Extension,
     "",
     R"(T(C, x) = T(C∖Y, x) for all weights, contexts and tokens: the empty patch is exact.)",
     R"(No output of the block changes with the context. Either no op reads it; or those that could do not, as an attention whose window holds the token alone, a convolution with one tap, a recurrence whose gate is 0; or what they give is lost on the way, in a value that is the same number for all activations, such as a layer norm of one entry, a product with 0, or a difference of equals. The facts of the block must show it; that a trial found no change is not enough.

A window can differ from layer to layer, and then the verdict does as well.)",
     {oneTap, VerdictKind::Controllable},
     {twoTaps, VerdictKind::Rejected, "nothing-reaches-output"}},
};

llvm::ArrayRef<Rule> ctxc::extensionRules() { return extensionTable; }
