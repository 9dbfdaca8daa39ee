// Reasons why nothing is shown, and warnings about plans that exist.
#include "RuleTable.h"

using namespace ctxc;

static constexpr llvm::StringLiteral plain = R"(
xf.block @plain(%x: tensor<8xf32>) -> tensor<8xf32> {
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

static constexpr llvm::StringLiteral wideFrozen = R"(
xf.block @wide_frozen(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %W_down = xf.param "down" frozen : tensor<8x16xf32>
  %d = xf.linear %W_down * %u : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral twoStreams = R"(
xf.block @two_streams(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %x : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  %b = xf.param "b" : tensor<8xf32>
  %s = xf.bias %v + %b : tensor<8xf32>, tensor<8xf32>
  xf.yield %y, %s : tensor<8xf32>, tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral productStream = R"(
xf.block @product_stream(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %x : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  %s = xf.mul %y, %v : tensor<8xf32>, tensor<8xf32>
  xf.yield %y, %s : tensor<8xf32>, tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral reluMlp = R"(
xf.block @relu_mlp(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation relu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral scaleAlone = R"(
xf.block @scale_alone(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %n = xf.normalize rms %x eps 1.0e-06 : tensor<8xf32>
  %m = xf.param "scale" : tensor<8xf32>
  %s = xf.scale %n by %m : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %s : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral oneMatrixAlone = R"(
xf.block @one_matrix(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral cancelling = R"(
xf.block @cancelling(%x: tensor<2xf32>) -> tensor<2xf32> {
  %k = xf.param "conv" : tensor<2x3xf32>
  %a = xf.conv %k, %x : tensor<2x3xf32>, tensor<2xf32>
  %v = xf.add %x, %a : tensor<2xf32>
  %n = xf.normalize layer %v eps 1.0e-5 : tensor<2xf32>
  %l = xf.slice %n from 0 : tensor<2xf32> to tensor<1xf32>
  %r = xf.slice %n from 1 : tensor<2xf32> to tensor<1xf32>
  %h = xf.add %l, %r : tensor<1xf32>
  %W = xf.param "w" : tensor<2x1xf32>
  %d = xf.linear %W * %h : tensor<2x1xf32>, tensor<1xf32>
  %y = xf.add %v, %d : tensor<2xf32>
  xf.yield %y : tensor<2xf32>
}
)";

static constexpr llvm::StringLiteral oneDirection = R"(
xf.block @one_direction(%x: tensor<8xf32>) -> tensor<8xf32> {
  %K = xf.param "conv" : tensor<8x3xf32>
  %c = xf.conv %K, %x : tensor<8x3xf32>, tensor<8xf32>
  %A = xf.param "a" : tensor<1x8xf32>
  %a = xf.linear %A * %c : tensor<1x8xf32>, tensor<8xf32>
  %one = xf.setting "ones" : tensor<8xf32> = dense<1.0> : tensor<8xf32>
  %s = xf.mul %one, %a : tensor<8xf32>, tensor<1xf32>
  %v = xf.add %x, %s : tensor<8xf32>
  %W = xf.param "w" : tensor<1x8xf32>
  %d = xf.linear %W * %x : tensor<1x8xf32>, tensor<8xf32>
  %t = xf.mul %one, %d : tensor<8xf32>, tensor<1xf32>
  %y = xf.add %v, %t : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral gateInTheLayer = R"(
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
xf.model @context_before_the_layer {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  %c = xf.contextual "convolution"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %g = xf.activation sigmoid %c : tensor<8xf32>
  %x1 = xf.mul %g, %x : tensor<8xf32>, tensor<8xf32>
  %x2 = xf.layer @layer(%x1) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  xf.yield %x2 : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral gatePastTheLayers = R"(
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
xf.model @context_past_the_layer {
  %E = xf.param "embed" : tensor<31x8xf32>
  %id = xf.token : tensor<i32>
  %x = xf.embed %E[%id] : tensor<31x8xf32>, tensor<i32>
  %c = xf.contextual "convolution"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %g = xf.activation sigmoid %c : tensor<8xf32>
  %x1 = xf.layer @layer(%x) at "0." : (tensor<8xf32>) -> tensor<8xf32>
  %y = xf.mul %g, %x1 : tensor<8xf32>, tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static const Rule planTable[] = {
    {rules::NoSolvableChain,
     "No Chain That Can Be Solved",
     RuleKind::Undecided,
     "",
     R"(No assignable op G has a chain to the output, T(C, x) = chain(G(…)), each link of which can
  be solved for its input; and no bound on what patches reach is shown either.)",
     R"(The walk back from the output met only ops that are not links (a fixed matrix, an op without SolvableOpInterface) or sites that may not be patched (shared, zero on an open set); the diagnostic lists each. A concatenation is a link if each of its parts has its own chain. So is a product g N(d) of a number and an RMS or L2 norm that nothing else reads: N(d) can have any direction, but has a fixed length, and g any length. For a target t, the chain to d gets t/|t|, and the chain to g gets |t| / |N(t/|t|)|, where |·| is the length that the norm divides by.

A fixed matrix is never a link, even if two of them together are square, because solving for their input would take a system of their size for each token.

Several parameters together may still do it, for example a matrix before a frozen wide one: undecided is neither verdict. `ctxc check --witness` looks for a counterexample in numbers.

Ways out: a trainable bias, scale or matrix between the named op and the output; untying the parameter.)",
     {plain, VerdictKind::Controllable, "output-matrix"},
     {wideFrozen, VerdictKind::Undecided}},

    {rules::SeveralOutputs,
     "Several Outputs Carry the Context",
     RuleKind::Undecided,
     "",
     R"(T(C, x) = (T_1, …, T_n), several of which depend on C. A patch for each T_i that leaves the
  others' targets alone, or an F that cuts the others off, was not found.)",
     R"(Blocks with several residual streams, or a side output. The rule compares how many entries can be patched with how many depend on the context: with fewer, the streams cannot all reach their targets at once; the notes show a path on which the context passes the patch.

Ways out: a separate matrix or bias for each output, or one sum through which the whole context passes before the streams split.)",
     {twoStreams, VerdictKind::Controllable, "output-matrix"},
     {productStream, VerdictKind::Undecided}},

    {rules::NoSuchPlan,
     "No Plan Patches Just These Parameters",
     RuleKind::Undecided,
     "",
     R"(--plan P_1,…,P_n: no F and G with {parameters of F ∪ G} = {P_1, …, P_n} is a plan.)",
     R"(The block has plans, and none that patches exactly the parameters that were asked for. `ctxc check --plans` lists what there is.)",
     {plain, VerdictKind::Controllable, "output-matrix", "--plan up,down"},
     {plain, VerdictKind::Undecided, "", "--plan up"}},

    {rules::UnconfirmedPlan,
     "A Plan That Numbers Contradict",
     RuleKind::Undecided,
     "",
     R"(By structure the plan is exact but for a null set of weights and activations. On random
  ones it is not: {(W, x): T'(x) ≠ T(C, x)} is no null set.)",
     R"(The analysis knows which values are constants, which are equal, and what cancels in a sum of such; it does not know every identity, such as that a layer norm's entries add up to zero. So each plan is tried on random weights and activations, three times, before it is called exact almost everywhere. A trial is at the block's own sizes, since some identities hold at one size alone, such as that of a constant 1/512 and a mean of 512 numbers; of a block of more than 200,000 numbers, large matrices are sparse. Where a trial contradicts, another plan is tried; where all are contradicted the block is undecided, and the message says what was found.

`ctxc check --try` repeats the trial on the model's own weights.)",
     {plain, VerdictKind::Controllable, "output-matrix"},
     {cancelling, VerdictKind::Undecided}},

    {rules::UnconfirmedRejection,
     "An Impossibility That No Numbers Show",
     RuleKind::Undecided,
     "",
     R"(By structure, patches move the output within a bounded, thin or one-sided set. Nothing was found
  for which T(C, x) lies outside: no (θ, C, x) with
  ‖T(C, x; θ) − T(C∖Y, x; θ′)‖ ≥ ε > 0 for every change θ′ of what may be patched.)",
     R"(The analysis bounds what patches can do; a counterexample shows that the context does more. `ctxc check` searches for one in the same run, on random weights and activations of several seeds, also with the context's part made larger, and evaluates it again. If none is found, the context may move the output only in the directions that patches have: two branches that end in the same frozen matrix, or in the same half of the stream.

For blocks of more than 200,000 numbers, the search uses smaller sizes of the same structure, at which the same rule rejects them. These sizes keep the relations between the original ones: their order, products, sums and multiples. Numbers of the block that could relate to a size, such as 1/√128 beside heads of 128, follow the sizes in some of the searches and stay in others, and each must find a counterexample; and at the block's own sizes the context must change an output. A contextual op that the float64 reference cannot run is replaced by an attention.)",
     {plain, VerdictKind::Controllable, "output-matrix"},
     {oneDirection, VerdictKind::Undecided}},

    {rules::ContextPastLayers,
     "The Context Goes Past the Layers",
     RuleKind::Undecided,
     "",
     R"(logits = H(x_1, C, T_Θ(C, x_1)), where H is what the model's body makes of its layers:
T_Θ'(C∖Y, x_1) = T_Θ(C, x_1) leaves H(x_1, C∖Y, ·) ≠ H(x_1, C, ·).)",
     R"(This is a verdict on a model as a whole, not on a layer. Theorem 2 makes every layer's output what it is with the context; that is enough if the context reaches the logits only through patched layers. Here an op of the model's body reads the context itself, or an op after the patched layers reads the result of a layer before --start-layer. The notes follow the path to the logits.

An op that reads the context should be part of a block: then the layer's patch absorbs what it reads. Ops before the layers may read the context if every path from there to the logits enters a layer; that layer's input then counts as dependent on the context, and its plan absorbs that too.)",
     {gateInTheLayer, VerdictKind::Controllable, "unified"},
     {gatePastTheLayers, VerdictKind::Undecided}},

    {rules::ConditionalObligation,
     "A Condition That Fails on an Open Set",
     RuleKind::Warning,
     "",
     R"(ΔW = δ hᵀ / ‖h‖² needs h ≠ 0 (Δm = δ ⊘ h: no h_i = 0), and {activations: h = 0} has inner
  points, as h = relu(u) = 0 for all u ≤ 0.)",
     R"(The plan is exact wherever its condition holds, and it can fail for whole regions of activations and not only on a null set. Kernels check it: a zero divisor is replaced by 1, counted, and reported as harmful or harmless by `ctxc verify`.

A relu MLP's hidden vector vanishes only where all of its inputs are negative at once, which is rare in wide layers. Where another plan of the block has no such condition the warning names it.)",
     {plain, VerdictKind::Controllable, "output-matrix"},
     {reluMlp, VerdictKind::Controllable}},

    {rules::FragilePlan,
     "Exact Here, Fragile in Another Program",
     RuleKind::Warning,
     "",
     R"(Δm = δ ⊘ h divides by each entry of h. An entry of size ε turns a rounding error of 2⁻²⁴
  |h| in another program's h into one of 2⁻²⁴ |δ_i| |h| / ε.)",
     R"(A scale that is solved for by itself, without a matrix before its norm to share the change. `ctxc` runs it exactly, since it computes h as it did for the patch; a program that sums in another order does not. The default objective avoids such plans if there is another.

Ways out: --objective no-division; an outer bias; a separate matrix before the norm.)",
     {plain, VerdictKind::Controllable, "output-matrix"},
     {scaleAlone, VerdictKind::Controllable}},

    {rules::OutputOnly,
     "Exact at the Output Alone",
     RuleKind::Warning,
     "",
     R"(f is not input-controllable: some path from C to what G reads meets no op that can absorb a
  change. g is, and G absorbs the whole difference: see one-patch-block.)",
     R"(A remark and not a warning by default, as the patch is exact. The notes follow the path that no patch interrupts. -Woutput-only makes it a warning, -Werror=output-only an error: for models whose internals are read by probes, adapters or early exits.)",
     {plain, VerdictKind::Controllable, "unified"},
     {oneMatrixAlone, VerdictKind::OutputOnly}},
};

llvm::ArrayRef<Rule> ctxc::planRules() { return planTable; }
