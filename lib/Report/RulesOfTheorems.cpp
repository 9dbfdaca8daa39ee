// The paper's theorems.
#include "RuleTable.h"

using namespace ctxc;

static constexpr llvm::StringLiteral gemma = R"(
xf.block @gemma(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %z = xf.normalize rms %v eps 1.0e-06 : tensor<8xf32>
  %W_gate = xf.param "gate" : tensor<16x8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %m = xf.param "post_norm" : tensor<8xf32>
  %g = xf.linear %W_gate * %z : tensor<16x8xf32>, tensor<8xf32>
  %u = xf.linear %W_up * %z : tensor<16x8xf32>, tensor<8xf32>
  %act = xf.activation gelu_tanh %g : tensor<16xf32>
  %h = xf.mul %act, %u : tensor<16xf32>, tensor<16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %s = xf.scale %n by %m : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %s : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral gemmaWithoutScale = R"(
xf.block @no_scale(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %n = xf.normalize rms %d eps 1.0e-06 : tensor<8xf32>
  %y = xf.add %v, %n : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral twoLayers = R"(
xf.block @layer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
xf.model @two_layers {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x1 = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  %x2 = xf.layer @layer(%x1) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  %x3 = xf.layer @layer(%x2) at "1." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %x3 : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral aFrozenLayer = R"(
xf.block @layer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
xf.model @second_frozen {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x1 = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  %x2 = xf.layer @layer(%x1) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  %x3 = xf.layer @layer(%x2) at "1." frozen ["up", "down"] : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %x3 : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral sharedStream = R"(
xf.block @cap_on_the_sum(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %c = xf.softcap %d at 30.0 : tensor<8xf32>
  %y = xf.add %v, %c : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static const Rule theoremTable[] = {
    {"single-block",
     "Single Block Equivalence",
     RuleKind::Theorem,
     "",
     R"(v_C = A(C, x), v = A(C∖Y, x), z_C = N(v_C), z = N(v), T(C, x) = v_C + m ⊙ f(W_gate z_C,
  W_up z_C).
T'(C∖Y, x) = T(C, x) with
  ΔW_gate = W_gate (z_C − z) zᵀ / ‖z‖²
  ΔW_up   = W_up (z_C − z) zᵀ / ‖z‖²
  Δm      = (v_C − v) ⊘ f(W_gate z_C, W_up z_C)
where no entry of f(W_gate z_C, W_up z_C) is zero.)",
     R"(Theorem 1, on Gemma's block. The rank-1 patches of gate and up make everything inside the MLP as it is with the context; the patch of the scale m absorbs what the context adds to the residual stream.

As written it divides by small entries of a norm's output. `ctxc` shares the change between W_down and m (--update least), which is exact too and far better conditioned; --update naive is the theorem as it stands.

It rests on the scale m: without it, the block falls under `impossibility`.)",
     {gemma, VerdictKind::Controllable, "output-scale"},
     {gemmaWithoutScale, VerdictKind::Rejected, "bounded-output"}},

    {"multi-layer",
     "Multi-Layer Equivalence",
     RuleKind::Theorem,
     "",
     R"(For layers T_1 … T_L, each of which has a patch θ'_k with T_k(C∖Y, x_k; θ'_k) = T_k(C, x_k;
  θ_k):
by induction over k the patched model's x'_k = x_k in every layer, so that
  T_Θ'(C∖Y, x_1) = T_Θ(C, x_1).)",
     R"(Theorem 2. One layer that cannot be patched breaks the induction: the layers above it then get another input than they had with the context. `ctxc check` therefore says that a model can take the context only if every layer from --start-layer on can.

Layers below --start-layer run unpatched; a patched layer that reads their outputs must also absorb what they lack, and its input counts as dependent on the context. No patch of the layers can absorb context that goes past them: see `context-past-layers`.)",
     {twoLayers, VerdictKind::Controllable, "unified"},
     {aFrozenLayer, VerdictKind::Rejected, "nothing-reaches-output"}},

    {"unified",
     "Unified Theorem for Residual Blocks",
     RuleKind::Theorem,
     "",
     R"(T(C, x) = A(C, x) + g(f(A(C, x); θ_f); θ_g), activations not zero.
A patch of θ_f and θ_g that is exact exists if
  f is input-controllable:  for all z, Δz ≠ 0 there is Δθ_f with f(z + Δz; θ_f) = f(z; θ_f
    + Δθ_f), and
  g is output-controllable: for all v ≠ 0, Δy there is Δθ_g with g(v; θ_g) + Δy = g(v; θ_g
    + Δθ_g).)",
     R"(Theorem 3. `ctxc` decides the two properties by dataflow and not by the shape of a block. *f*: a set F of ops that can absorb a change meets every path from the context to what G reads (a minimum vertex cut). *g*: an op G, or one for each goal, feeds the output by a chain that can be solved for its output: sums, known nonzero factors, reshapes.

Both hold: controllable. Only g: output-only (`one-patch-block`). If neither holds, the block is not yet rejected; a rejection needs a separate proof of impossibility.)",
     {gemma, VerdictKind::Controllable},
     {sharedStream, VerdictKind::Rejected, "bounded-output"}},

    {"impossibility",
     "Impossibility of Fixed Post-Normalization",
     RuleKind::Theorem,
     "",
     R"(T(C, x) = A(C, x) + g(f(A(C, x))) with g(z) = m ⊙ z / RMS(z) and m fixed:
  ‖g(z') − g(z)‖₂ ≤ 2 √d ‖m‖_∞   for every change of the parameters before g,
while ‖ΔA_x(Y)‖₂ = ‖A(C, x) − A(C∖Y, x)‖₂ has no bound. So an exact patch cannot be
  guaranteed.)",
     R"(Theorem 4. The bound is of the image of g, so nothing upstream can help. It is printed with each rejection (`bounded-output`, which also has its relatives: caps, tanh, softmax), and `ctxc check --witness` shows weights and a context beyond it.

With a trainable m the scale absorbs the difference (`output-scale`).)",
     {gemma, VerdictKind::Controllable, "output-scale"},
     {gemmaWithoutScale, VerdictKind::Rejected, "bounded-output"}},
};

llvm::ArrayRef<Rule> ctxc::theoremRules() { return theoremTable; }
