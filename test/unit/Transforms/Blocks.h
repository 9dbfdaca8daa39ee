// Small blocks for the tests of transforms, and plans for them, written by hand.
#ifndef CTXC_TEST_UNIT_TRANSFORMS_BLOCKS_H
#define CTXC_TEST_UNIT_TRANSFORMS_BLOCKS_H

#include "ctxc/Planning/BlockPlan.h"
#include "dialects/Patch/Patch.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace ctxc::test {

/// Attention on %h, with two heads that share a key head; its result is %a (6 wide).
inline const char *const attention = R"(
    %Wq = xf.param "q.weight" : tensor<8x6xf32>
    %Wk = xf.param "k.weight" : tensor<4x6xf32>
    %Wv = xf.param "v.weight" : tensor<4x6xf32>
    %Wo = xf.param "o.weight" : tensor<6x8xf32>
    %q = xf.linear %Wq * %h : tensor<8x6xf32>, tensor<6xf32>
    %k = xf.linear %Wk * %h : tensor<4x6xf32>, tensor<6xf32>
    %v = xf.linear %Wv * %h : tensor<4x6xf32>, tensor<6xf32>
    %Q = xf.reshape %q : tensor<8xf32> to tensor<2x4xf32>
    %K = xf.reshape %k : tensor<4xf32> to tensor<1x4xf32>
    %V = xf.reshape %v : tensor<4xf32> to tensor<1x4xf32>
    %f = xf.setting "rope" : tensor<2xf32> = #xf.rope<base = 1.000000e+04, dims = 4>
    %Qr = xf.rotary half %Q by %f : tensor<2x4xf32>, tensor<2xf32>
    %Kr = xf.rotary half %K by %f : tensor<1x4xf32>, tensor<2xf32>
    %A = xf.attention %Qr, %Kr, %V scale 5.000000e-01 : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
    %c = xf.reshape %A : tensor<2x4xf32> to tensor<8xf32>
    %a = xf.linear %Wo * %c : tensor<6x8xf32>, tensor<8xf32>
)";

/// A gated MLP on %z; its result is %d.
inline const char *const gatedMlp = R"(
    %Wg = xf.param "gate.weight" : tensor<10x6xf32>
    %Wu = xf.param "up.weight" : tensor<10x6xf32>
    %Wd = xf.param "down.weight" : tensor<6x10xf32>
    %g = xf.linear %Wg * %z : tensor<10x6xf32>, tensor<6xf32>
    %u = xf.linear %Wu * %z : tensor<10x6xf32>, tensor<6xf32>
    %s = xf.activation gelu_tanh %g : tensor<10xf32>
    %p = xf.mul %s, %u : tensor<10xf32>, tensor<10xf32>
    %d = xf.linear %Wd * %p : tensor<6x10xf32>, tensor<10xf32>
)";

inline std::string rmsNorm(llvm::StringRef from, llvm::StringRef to, llvm::StringRef name) {
  return ("    %m_" + to + " = xf.param \"" + name + "\" : tensor<6xbf16>\n    %n_" + to +
          " = xf.normalize rms %" + from + " eps 1.000000e-06 : tensor<6xf32>\n    %" + to +
          " = xf.scale %n_" + to + " by %m_" + to +
          " offset 1.000000e+00 : tensor<6xf32>, tensor<6xbf16>\n")
      .str();
}

inline std::string block(llvm::StringRef name, const std::string &body) {
  return ("  xf.block @" + name + "(%x: tensor<6xf32>) -> tensor<6xf32> {\n" + body +
          "    xf.yield %y : tensor<6xf32>\n  }\n")
      .str();
}

inline std::string add(llvm::StringRef to, llvm::StringRef a, llvm::StringRef b) {
  return ("    %" + to + " = xf.add %" + a + ", %" + b + " : tensor<6xf32>\n").str();
}

/// x + norm(attn(norm x)), then v + norm(mlp(norm v)).
inline std::string gemma() {
  return block("gemma", rmsNorm("x", "h", "in.norm") + attention + rmsNorm("a", "b", "attn.norm") +
                            add("w", "x", "b") + rmsNorm("w", "z", "pre.norm") + gatedMlp +
                            rmsNorm("d", "r", "post.norm") + add("y", "w", "r"));
}

/// x + attn(norm x), then v + mlp(norm v).
inline std::string llama() {
  return block("llama", rmsNorm("x", "h", "in.norm") + attention + add("w", "x", "a") +
                            rmsNorm("w", "z", "pre.norm") + gatedMlp + add("y", "w", "d"));
}

/// x + attn(norm x) + mlp(norm x), with one norm.
inline std::string parallel() {
  std::string mlp = gatedMlp;
  for (size_t at; (at = mlp.find("%z")) != std::string::npos;)
    mlp.replace(at, 2, "%h");
  return block("parallel", rmsNorm("x", "h", "in.norm") + attention + mlp + add("w", "x", "a") +
                               add("y", "w", "d"));
}

/// A plain MLP of two linears with biases, and a constant factor at its end.
inline std::string biased() {
  return block("biased", rmsNorm("x", "h", "in.norm") + attention + add("w", "x", "a") + R"(
    %W1 = xf.param "fc1.weight" : tensor<6x10xf32>
    %b1 = xf.param "fc1.bias" : tensor<10xf32>
    %W2 = xf.param "fc2.weight" : tensor<6x10xf32>
    %b2 = xf.param "fc2.bias" : tensor<6xf32>
    %l = xf.linear %W1 * %w transposed : tensor<6x10xf32>, tensor<6xf32>
    %e = xf.bias %l + %b1 : tensor<10xf32>, tensor<10xf32>
    %s = xf.activation relu %e : tensor<10xf32>
    %o = xf.linear %W2 * %s : tensor<6x10xf32>, tensor<10xf32>
    %t = xf.bias %o + %b2 : tensor<6xf32>, tensor<6xf32>
    %r = xf.times %t by 5.000000e-01 : tensor<6xf32>
)" + add("y", "w", "r"));
}

/// A model of three layers with a tied embedding.
inline std::string model(llvm::StringRef block) {
  return (R"(
  xf.model @m {
    %id = xf.token : tensor<i32>
    %E = xf.param "embed.weight" : tensor<11x6xf32>
    %e = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
    %x0 = xf.times %e by 2.449490e+00 : tensor<6xf32>
    %x1 = xf.layer @)" +
          block + R"((%x0) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
    %x2 = xf.layer @)" +
          block + R"((%x1) at "layers.1." : (tensor<6xf32>) -> tensor<6xf32>
    %x3 = xf.layer @)" +
          block + R"((%x2) at "layers.2." : (tensor<6xf32>) -> tensor<6xf32>
    %n = xf.normalize rms %x3 eps 1.000000e-06 : tensor<6xf32>
    %y = xf.linear %E * %n : tensor<11x6xf32>, tensor<6xf32>
    xf.yield %y : tensor<11xf32>
  }
)")
      .str();
}

/// A parsed module, and the plans of its blocks.
class Blocks {
public:
  explicit Blocks(const std::string &text) {
    context.loadDialect<xf::XFDialect, patch::PatchDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>("module {\n" + text + "}\n", &context);
  }

  xf::BlockOp block(llvm::StringRef name) { return module->lookupSymbol<xf::BlockOp>(name); }

  /// The op that uses the parameter `name` of `block`.
  mlir::Operation *site(xf::BlockOp block, llvm::StringRef name) {
    mlir::Operation *found = nullptr;
    block.walk([&](xf::ParamOp p) {
      if (p.getName() == name)
        found = *p->user_begin();
    });
    return found;
  }

  /// A plan with the given parameters as F and G; the chain follows single uses from G to the
  /// yield.
  BlockPlan plan(xf::BlockOp block, llvm::ArrayRef<llvm::StringRef> f, llvm::StringRef g,
                 llvm::StringRef normMatrix = "") {
    BlockPlan plan;
    for (llvm::StringRef name : f)
      plan.inputSites.push_back(site(block, name));
    OutputPatch output;
    output.site = site(block, g);
    if (!normMatrix.empty())
      output.normMatrix = site(block, normMatrix);
    output.goal = output.site->getResult(0);
    while (!llvm::isa<xf::YieldOp>(*output.goal.user_begin())) {
      mlir::OpOperand &use = *output.goal.use_begin();
      output.links.push_back({use.getOwner(), use.getOperandNumber()});
      output.goal = use.getOwner()->getResult(0);
    }
    plan.outputs = {output};
    return plan;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

template <typename Op> int countOps(mlir::Operation *root) {
  int count = 0;
  root->walk([&](Op) { ++count; });
  return count;
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_TRANSFORMS_BLOCKS_H
