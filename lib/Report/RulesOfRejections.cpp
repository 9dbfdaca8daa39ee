// Reasons why no patch can exist.
#include "RuleTable.h"
#include "ctxc/Distil/Joint.h"

using namespace ctxc;

static constexpr llvm::StringLiteral matrixForAll = R"(
xf.block @matrix_for_all(%x: tensor<8xf32>) -> tensor<8xf32> {
  %k = xf.param "conv" : tensor<8x3xf32>
  %a = xf.conv %k, %x : tensor<8x3xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral biasForAll = R"(
xf.block @bias_for_all(%x: tensor<8xf32>) -> tensor<8xf32> {
  %k = xf.param "conv" : tensor<8x3xf32>
  %a = xf.conv %k, %x : tensor<8x3xf32>, tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %W = xf.param "w" frozen : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %b = xf.param "bias" : tensor<8xf32>
  %e = xf.bias %d + %b : tensor<8xf32>, tensor<8xf32>
  %y = xf.add %v, %e : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral uncapped = R"(
xf.block @uncapped(%x: tensor<8xf32>) -> tensor<8xf32> {
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

static constexpr llvm::StringLiteral softcap = R"(
xf.block @softcap(%x: tensor<8xf32>) -> tensor<8xf32> {
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

static constexpr llvm::StringLiteral narrow = R"(
xf.block @narrow(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<2x8xf32>
  %u = xf.linear %W_up * %v : tensor<2x8xf32>, tensor<8xf32>
  %W_out = xf.param "out" frozen : tensor<8x2xf32>
  %d = xf.linear %W_out * %u : tensor<8x2xf32>, tensor<2xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral matrixAfterRelu = R"(
xf.block @matrix_after_relu(%x: tensor<8xf32>) -> tensor<8xf32> {
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

static constexpr llvm::StringLiteral reluAfterMatrix = R"(
xf.block @relu_after_matrix(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %r = xf.activation relu %d : tensor<8xf32>
  %y = xf.add %v, %r : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral frozenMlp = R"(
xf.block @frozen_mlp(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" frozen : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W_down = xf.param "down" frozen : tensor<8x16xf32>
  %d = xf.linear %W_down * %h : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral twoMatrices = R"(
xf.block @two_matrices(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W = xf.param "w" : tensor<8x16xf32>
  %d = xf.linear %W * %h : tensor<8x16xf32>, tensor<16xf32>
  %W2 = xf.param "w2" : tensor<8x16xf32>
  %e = xf.linear %W2 * %h : tensor<8x16xf32>, tensor<16xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  %z = xf.sub %v, %e : tensor<8xf32>
  xf.yield %y, %z : tensor<8xf32>, tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral mixedStreams = R"(
xf.block @mixed_streams(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %W_up = xf.param "up" : tensor<16x8xf32>
  %u = xf.linear %W_up * %v : tensor<16x8xf32>, tensor<8xf32>
  %h = xf.activation gelu %u : tensor<16xf32>
  %W = xf.param "w" : tensor<8x16xf32>
  %d = xf.linear %W * %h : tensor<8x16xf32>, tensor<16xf32>
  %B = xf.param "mix" : tensor<1x8xf32>
  %l = xf.linear %B * %v : tensor<1x8xf32>, tensor<8xf32>
  %t = xf.activation tanh %l : tensor<1xf32>
  %e = xf.mul %d, %t : tensor<8xf32>, tensor<1xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  %z = xf.sub %v, %e : tensor<8xf32>
  xf.yield %y, %z : tensor<8xf32>, tensor<8xf32>
}
)";

static constexpr llvm::StringLiteral oneMatrixForTwoStreams = R"(
xf.block @one_matrix_for_two_streams(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  %r = xf.mul %d, %v : tensor<8xf32>, tensor<8xf32>
  %z = xf.sub %v, %r : tensor<8xf32>
  xf.yield %y, %z : tensor<8xf32>, tensor<8xf32>
}
)";

static const Rule rejectionTable[] = {
    {rules::BoundedOutput,
     "The Output Is Bounded",
     RuleKind::Rejection,
     "",
     R"(T(C, x) = v_C + g(…) where, whatever the parameters before it, g's image lies in a bounded
  set of diameter D:
  ‖ΔA_x(Y)‖₂ > D is possible, and then no patch exists.
  RMS norm with fixed scale m: D = 2 √d ‖m‖_∞ (Theorem 4). Soft cap at c: 2 c √d. tanh: 2
    √d. Sigmoid, softmax alike.)",
     R"(The diagnostic points to the op that bounds the output, and gives the bound. Ways out: a trainable scale after a norm, or a single trainable number that multiplies the result of an RMS or L2 norm, if the matrix before the norm may be patched (`no-solvable-chain`); a cap moved before the outer matrix, or dropped; an outer bias; the attention output (`attention-output`).)",
     {uncapped, VerdictKind::Controllable, "output-matrix"},
     {softcap, VerdictKind::Rejected}},

    {rules::ThinOutput,
     "Too Few Directions",
     RuleKind::Rejection,
     "",
     R"(Patches move the output in an affine subspace of k < d dimensions only (or keep entries at
  zero, on an open set of activations):
  ΔA_x(Y) lies outside of it for almost all contexts.)",
     R"(A frozen narrow matrix, one parameter that serves several vectors, a scale after a relu. Sites are taken together: several narrow ones that jointly supply all dimensions are not rejected.

Ways out: make the named matrix trainable, or give the block a bias or matrix of full width after it.)",
     {uncapped, VerdictKind::Controllable, "output-matrix"},
     {narrow, VerdictKind::Rejected}},

    {rules::FewVectors,
     "Fewer Vectors Than Streams",
     RuleKind::Rejection,
     "",
     R"(The outputs are o_i = Σ_k c_ik v_k. Whatever numbers c_ik patches make, they move r of the
  vectors v_k and leave the others, F. With P onto what is orthogonal to F, and the full run's
  outputs T(C, x) as rows, there is a context C with
  rank (T(C, x) P) > r, and then, for the singular values σ of that matrix,
  ‖T(C, x) − T'(C∖Y, x)‖ ≥ √(Σ_{i > r} σ_i²) for every patch.)",
     R"(One outer matrix writes to several residual streams, which are mixed in proportions that depend on them (hyper-connections). The context changes two vectors, attention's output and the MLP's, but behind the attention, patches can change only one, and no proportions can make up for the other. A counterexample in the same run must show that the context does more than one vector can; without one, the block is undecided.

Ways out: a separate matrix or bias for each stream; or the attention's output matrix (--sites all), which absorbs the context before it reaches the streams.)",
     {twoMatrices, VerdictKind::Controllable, "output-matrix"},
     {mixedStreams, VerdictKind::Rejected}},

    {rules::OneSidedOutput,
     "One Side Only",
     RuleKind::Rejection,
     "",
     R"(Patches move the output to one side of some direction only: u ≥ 0 for u = relu(…).
  ΔA_x(Y) has either sign, so a context exists that no patch follows.)",
     R"(An output that ends in relu, relu², softplus or exp. With a matrix, scale or bias after the activation, the output can have either sign.)",
     {matrixAfterRelu, VerdictKind::Controllable, "output-matrix"},
     {reluAfterMatrix, VerdictKind::Rejected}},

    {rules::NothingReachesOutput,
     "Nothing Reaches the Output",
     RuleKind::Rejection,
     "",
     R"(No parameter that a patch may change lies on a path to the output:
  T'(C∖Y, x) = T(C∖Y, x) for every patch.)",
     R"(Every parameter is frozen, shared (tied within the block, or with another layer), or belongs to the contextual part. The notes list each with its reason; unfreeze one, or let plans use the attention output (--sites all).)",
     {uncapped, VerdictKind::Controllable, "output-matrix"},
     {frozenMlp, VerdictKind::Rejected}},

    {rules::Counterexample,
     "A Counterexample",
     RuleKind::Rejection,
     "",
     R"(There are weights θ, a context C and a token x, found by a search and evaluated in float64,
  for which
  ‖T(C, x; θ) − T(C∖Y, x; θ′)‖ ≥ ε > 0 for every change θ′ of what may be patched.)",
     R"(No rule decides the block, so `ctxc check` searches for a counterexample before it says undecided. A direction in which no patch moves the outputs far enough certifies the one that it found; --witness writes it, and --replay evaluates it again.)",
     {uncapped, VerdictKind::Controllable, "output-matrix"},
     {oneMatrixForTwoStreams, VerdictKind::Undecided, "no-solvable-chain"}},

    {rules::JointCapacity,
     "One Change for Several Tokens",
     RuleKind::Rejection,
     "",
     R"(Tokens t_1 … t_k, with W z_i in the reduced run and W z_i + δ_i wanted.
  One ΔW serves all iff ΔW [z_1 … z_k] = [δ_1 … δ_k]: independent z_i suffice, so that there
  are at most as many tokens as W reads numbers. One Δb serves all iff δ_1 = … = δ_k.)",
     R"(Only asked by `ctxc check --joint K`: whether one change of each layer can be exact for K tokens at once, as `ctxc patch --joint` and `ctxc verify --joint` make it. A block whose only trainable parameter is a bias or a scale serves one token; the rejection comes with the error that the first token's change, the only one that is exact for it, leaves at a second token. Where all matrices are too narrow the block is undecided, since several parameters together may still do it.

Two tokens for which a matrix reads the same, and should write different things, collide, whatever its width; a run names them.

Ways out: a trainable matrix through whose product the whole effect of the context passes, such as attention's output projection; a patch for each token; ctxc distil, which is approximate.)",
     {matrixForAll, VerdictKind::OutputOnly, "output-matrix", "--joint 2"},
     {biasForAll, VerdictKind::Rejected, "", "--joint 2"}},
};

llvm::ArrayRef<Rule> ctxc::rejectionRules() { return rejectionTable; }
