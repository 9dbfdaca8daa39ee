// The paper's lemmas.
#include "RuleTable.h"

using namespace ctxc;

static constexpr llvm::StringLiteral plainMlp = R"(
xf.block @plain_mlp(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral noInputMatrix = R"(
xf.block @no_input_matrix(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral preNormMlp = R"(
xf.block @pre_norm_mlp(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %z = xf.normalize rms %v eps 1.0e-06 : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %z : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral frozenUp = R"(
xf.block @frozen_up(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %z = xf.normalize rms %v eps 1.0e-06 : tensor<8xf32>
  %W_up = xf.param "up" frozen : tensor<16x8xf32>
  %u = xf.linear %W_up * %z : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral outerBias = R"(
xf.block @outer_bias(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %b = xf.param "down_bias" : tensor<8xf32>
  %e = xf.bias %d + %b : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral biasBeforeTanh = R"(
xf.block @bias_before_tanh(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %b = xf.param "down_bias" : tensor<8xf32>
  %e = xf.bias %d + %b : tensor<8xf32>, tensor<8xf32>
  %t = xf.activation tanh %e : tensor<8xf32>
  %y = xf.add %v, %t : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral matrixBeforeCap = R"(
xf.block @matrix_before_cap(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %c = xf.softcap %d at 30.0 : tensor<8xf32>
  %y = xf.add %v, %c : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral postNormScale = R"(
xf.block @post_norm_scale(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %m = xf.param "post_norm" : tensor<8xf32>
  %s = xf.scale %n by %m : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %s : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral scaleAfterRelu = R"(
xf.block @scale_after_relu(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<8x8xf32>
  %u = xf.linear %W_up * %v : tensor<8x8xf32>, tensor<8xf32>
  %h = xf.activation relu %u : tensor<8xf32>
  %m = xf.param "post_norm" : tensor<8xf32>
  %s = xf.scale %h by %m : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %s : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral experts = R"(
xf.block @experts(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_router = xf.param "router" : tensor<4x8xf32>
  %p = xf.linear %W_router * %v : tensor<4x8xf32>, tensor<8xf32>
  %q = xf.softmax %p : tensor<4xf32>
  %sel = xf.top_k %q k 2 : tensor<4xf32>
  %w = xf.gather %q[%sel] : tensor<4xf32>, tensor<2xi32>
  %W_up = xf.param "experts.*.up" : tensor<4x16x8xf32>
  %u = xf.expert_linear %W_up[%sel] * %v : tensor<4x16x8xf32>, tensor<2xi32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<2x16xf32>
  %W_down = xf.param "experts.*.down" : tensor<4x8x16xf32>
  %d = xf.expert_linear %W_down[%sel] * %h : tensor<4x8x16xf32>, tensor<2xi32>, tensor<2x16xf32>
  %e = xf.combine %w, %d : tensor<2xf32>, tensor<2x8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral cappedExperts = R"(
xf.block @capped_experts(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_router = xf.param "router" : tensor<4x8xf32>
  %p = xf.linear %W_router * %v : tensor<4x8xf32>, tensor<8xf32>
  %q = xf.softmax %p : tensor<4xf32>
  %sel = xf.top_k %q k 2 : tensor<4xf32>
  %w = xf.gather %q[%sel] : tensor<4xf32>, tensor<2xi32>
  %W_up = xf.param "experts.*.up" : tensor<4x16x8xf32>
  %u = xf.expert_linear %W_up[%sel] * %v : tensor<4x16x8xf32>, tensor<2xi32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<2x16xf32>
  %W_down = xf.param "experts.*.down" : tensor<4x8x16xf32>
  %d = xf.expert_linear %W_down[%sel] * %h : tensor<4x8x16xf32>, tensor<2xi32>, tensor<2x16xf32>
  %c = xf.activation tanh %d : tensor<2x8xf32>
  %e = xf.combine %w, %c : tensor<2xf32>, tensor<2x8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral parallel = R"(
xf.block @parallel(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %x : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %m = xf.add %a, %d : tensor<8xf32>
  %y = xf.add %x, %m : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral parallelFrozen = R"(
xf.block @parallel_frozen(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %x : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" frozen : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %m = xf.add %a, %d : tensor<8xf32>
  %y = xf.add %x, %m : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static const Rule lemmaTable[] = {
    {"input-mlp",
     "Input Controllability of MLPs",
     RuleKind::Lemma,
     "input controllability of MLPs",
     R"(f(…, W_i z, …), z ≠ 0, is input-controllable:
  ΔW_i = W_i Δz zᵀ / ‖z‖²,   as (W_i + ΔW_i) z = W_i (z + Δz).)",
     R"(The first matrices of an MLP (gate and up, c_fc, the experts' and the router's) are given the output that they had with the context, so that everything behind them is as it was.

Where no matrix, bias or scale stands between the context and what the output patch reads, the block is output-only: the patch is still exact, and the internals of the two runs differ.)",
     {plainMlp, VerdictKind::Controllable},
     {noInputMatrix, VerdictKind::OutputOnly, "output-only"}},

    {"input-pre-norm",
     "Input Controllability of Pre-Norm MLPs",
     RuleKind::Lemma,
     "input controllability of pre-norm MLPs",
     R"(f(N(v); {W_i}), z = N(v) ≠ 0, is input-controllable:
  ΔW_i = W_i (z_C − z) zᵀ / ‖z‖²   with z_C = N(v_C).)",
     R"(The norm before the MLP needs no inverse: z and z_C are what the matrices read in the two runs, whatever stands before them.)",
     {preNormMlp, VerdictKind::Controllable},
     {frozenUp, VerdictKind::OutputOnly, "output-only"}},

    {"output-bias",
     "Output Controllability of Outer Bias",
     RuleKind::Lemma,
     "output controllability of outer bias",
     R"(g(v; b') = h(v) + b' is output-controllable:
  Δb' = δ   for every δ.)",
     R"(The safest of all patches: a vector, no division, no condition on the data (GPT-2, OPT; the bias of a post-LayerNorm).

A bias helps only if it is outer: the ops after it must be solvable. Before a tanh or a cap it cannot move the output out of the box that these map into.)",
     {outerBias, VerdictKind::Controllable},
     {biasBeforeTanh, VerdictKind::Rejected, "bounded-output"}},

    {"output-matrix",
     "Output Controllability of Outer Weight Matrix",
     RuleKind::Lemma,
     "output controllability of outer weight matrix",
     R"(g(v; W') = W' v, v ≠ 0, is output-controllable:
  ΔW' = δ vᵀ / ‖v‖².)",
     R"(Llama, Falcon, Mistral: W_down absorbs the difference by a rank-1 patch. Here v is what the matrix reads, the MLP's hidden vector h.)",
     {plainMlp, VerdictKind::Controllable},
     {matrixBeforeCap, VerdictKind::Rejected, "bounded-output"}},

    {"output-scale",
     "Output Controllability of Outer Element-wise Multiply",
     RuleKind::Lemma,
     "output controllability of outer element-wise multiply",
     R"(g(v; m) = m ⊙ v, no entry of v zero, is output-controllable:
  Δm = δ ⊘ v.)",
     R"(The scale of a post-norm (Gemma). It divides entry by entry: an entry that is zero breaks it, and a small one enlarges every rounding error. With the matrix before the norm patched too the division is harmless (--update least).

After a relu entries are zero on an open set of activations, so that no scale there can be relied on.)",
     {postNormScale, VerdictKind::Controllable},
     {scaleAfterRelu, VerdictKind::Undecided, "no-solvable-chain"}},

    {"mixture",
     "Output Controllability of Mixture of Experts",
     RuleKind::Lemma,
     "output controllability of mixture of experts",
     R"(g(v; {θ_j}, s) = Σ_j s_j Ex_j(v; θ_j), each Ex_j output-controllable, S = Σ_j s_j ≠ 0:
  each active expert absorbs δ_j = δ / S.)",
     R"(Mixtral, Qwen-MoE. The router is also on a path from the context: either it is patched, or it stands behind a patched op, so that both runs select the same experts.

Each expert must be output-controllable by itself: one that ends in a tanh is not. An outer bias makes an expert output-controllable without any division, for every storage type of its matrices.)",
     {experts, VerdictKind::Controllable},
     {cappedExperts, VerdictKind::Rejected, "bounded-output"}},

    {"parallel-block",
     "Implicit Updates in Parallel Blocks",
     RuleKind::Lemma,
     "",
     R"(T(C, x) = x + A(C, x) + g(f(x); θ_g): a patch exists if g is output-controllable,
  with g(f(x); θ'_g) − g(f(x); θ_g) = ΔA_x(Y).)",
     R"(GPT-J, Falcon, Cohere. The MLP reads x, which is the same in both runs, so that nothing has to be patched for the input (F = ∅); its last parameter absorbs all that attention changes.)",
     {parallel, VerdictKind::Controllable},
     {parallelFrozen, VerdictKind::Undecided, "no-solvable-chain"}},
};

llvm::ArrayRef<Rule> ctxc::lemmaRules() { return lemmaTable; }
