// No op crashes the program. Every op of xf is written with every type that it cannot have, in each
// operand and in pairs of operands, and with numbers out of range. Each must be refused with a
// diagnostic, or be analysed, planned, tried and proven without harm.
#include "ctxc/Evidence/MakeProof.h"
#include "ctxc/Evidence/Trial.h"
#include "ctxc/Evidence/Witness.h"
#include "ctxc/Proof/CheckProof.h"
#include "dialects/Patch/Patch.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace mlir;

namespace {

/// An op with {0}, {1}, … for its types, and %0, %1, … for operands of the first of these types.
struct Sample {
  const char *name, *text;
  std::vector<std::string> types;
  unsigned operands;
};

const Sample samples[] = {
    {"xf.param", "xf.param \"p\" : {0}", {"tensor<4xf32>"}, 0},
    {"xf.setting", "xf.setting \"s\" : {0}", {"tensor<4xf32>"}, 0},
    {"xf.token", "xf.token : {0}", {"tensor<i32>"}, 0},
    {"xf.token", "xf.token replace [1] by 0 : {0}", {"tensor<i32>"}, 0},
    {"xf.position", "xf.position : {0}", {"tensor<i32>"}, 0},
    {"xf.position", "xf.position plus 1 over 3 : {0}", {"tensor<1xf32>"}, 0},
    {"xf.constant", "xf.constant 1 : {0}", {"tensor<i32>"}, 0},
    {"xf.embed", "xf.embed %0[%1] : {0}, {1}", {"tensor<5x4xf32>", "tensor<i32>"}, 2},
    {"xf.linear", "xf.linear %0 * %1 : {0}, {1}", {"tensor<4x4xf32>", "tensor<4xf32>"}, 2},
    {"xf.linear",
     "xf.linear %0 * %1 transposed : {0}, {1}",
     {"tensor<4x4xf32>", "tensor<4xf32>"},
     2},
    {"xf.bias", "xf.bias %0 + %1 : {0}, {1}", {"tensor<4xf32>", "tensor<4xf32>"}, 2},
    {"xf.scale", "xf.scale %0 by %1 offset -1.0 : {0}, {1}", {"tensor<4xf32>", "tensor<4xf32>"}, 2},
    {"xf.normalize", "xf.normalize rms %0 eps 0.0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.normalize", "xf.normalize layer %0 eps 0.0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.normalize", "xf.normalize sum %0 eps 0.0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.activation", "xf.activation relu %0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.softmax", "xf.softmax %0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.softcap", "xf.softcap %0 at 3.0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.clamp", "xf.clamp %0 to 3.0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.leaky", "xf.leaky %0 by 0.5 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.power", "xf.power %0 to 3 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.power", "xf.power %0 to 2 root : {0}", {"tensor<4xf32>"}, 1},
    {"xf.round", "xf.round %0 to bf16 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.times", "xf.times %0 by 2.0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.add", "xf.add %0, %0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.sub", "xf.sub %0, %0 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.mul", "xf.mul %0, %1 : {0}, {1}", {"tensor<4xf32>", "tensor<4xf32>"}, 2},
    {"xf.div", "xf.div %0, %1 : {0}, {1}", {"tensor<4xf32>", "tensor<4xf32>"}, 2},
    {"xf.reshape", "xf.reshape %0 : {0} to {1}", {"tensor<4xf32>", "tensor<2x2xf32>"}, 1},
    {"xf.transpose", "xf.transpose %0 by [1, 0] : {0}", {"tensor<4x4xf32>"}, 1},
    {"xf.permute", "xf.permute %0 parts [1, 3] by [1, 0] : {0}", {"tensor<4xf32>"}, 1},
    {"xf.permute", "xf.permute %0 parts [1, 3] by [1, 0] along 1 : {0}", {"tensor<4x4xf32>"}, 1},
    {"xf.slice", "xf.slice %0 from 0 : {0} to {1}", {"tensor<4xf32>", "tensor<2xf32>"}, 1},
    {"xf.concat", "xf.concat %0, %1 : {0}, {1}", {"tensor<4xf32>", "tensor<4xf32>"}, 2},
    {"xf.concat", "xf.concat %0, %1 along 1 : {0}, {1}", {"tensor<4x4xf32>", "tensor<4x4xf32>"}, 2},
    {"xf.broadcast", "xf.broadcast %0 : {0} to {1}", {"tensor<1x4xf32>", "tensor<3x4xf32>"}, 1},
    {"xf.rotary", "xf.rotary half %0 by %1 : {0}, {1}", {"tensor<4x4xf32>", "tensor<2xf32>"}, 2},
    {"xf.attention",
     "xf.attention %0, %1, %2 scale 0.5 : {0}, {1}, {2} -> {3}",
     {"tensor<2x4xf32>", "tensor<1x4xf32>", "tensor<1x4xf32>", "tensor<2x4xf32>"},
     3},
    {"xf.attention",
     "xf.attention %0, %1, %1 scale 0.5 slopes %2 : {2} sinks %3 : {3} : {0}, {1}, {1} -> {0}",
     {"tensor<2x4xf32>", "tensor<1x4xf32>", "tensor<2xf32>", "tensor<2xf32>"},
     4},
    {"xf.conv", "xf.conv %0, %1 : {0}, {1}", {"tensor<4x3xf32>", "tensor<4xf32>"}, 2},
    {"xf.scan", "xf.scan %0, %1 : {0}", {"tensor<4xf32>", "tensor<4xf32>"}, 2},
    {"xf.decaying_mean",
     "xf.decaying_mean %0, %1 decay %0 own %1 : {0}",
     {"tensor<4xf32>", "tensor<4xf32>"},
     2},
    {"xf.linear_attention",
     "xf.linear_attention %0, %0, %1 decay %2 : {0}, {0}, {1}, {2}",
     {"tensor<1x4xf32>", "tensor<2x4xf32>", "tensor<2xf32>"},
     3},
    {"xf.linear_attention",
     "xf.linear_attention %0, %0, %1 decay %2 rates %3 : {3} delta %2 : {2} : {0}, {0}, {1}, {2}",
     {"tensor<1x4xf32>", "tensor<2x4xf32>", "tensor<2xf32>", "tensor<2x4xf32>"},
     4},
    {"xf.contextual",
     "xf.contextual \"m\"(%0, %1) : ({0}, {1}) -> {2}",
     {"tensor<4xf32>", "tensor<4xf32>", "tensor<4xf32>"},
     2},
    {"xf.top_k", "xf.top_k %0 k 2 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.top_k", "xf.top_k %0 k 2 groups 2 keep 1 : {0}", {"tensor<4xf32>"}, 1},
    {"xf.gather", "xf.gather %0[%1] : {0}, {1}", {"tensor<4xf32>", "tensor<2xi32>"}, 2},
    {"xf.expert_linear",
     "xf.expert_linear %0[%1] * %2 : {0}, {1}, {2}",
     {"tensor<4x4x4xf32>", "tensor<2xi32>", "tensor<4xf32>"},
     3},
    {"xf.combine", "xf.combine %0, %1 : {0}, {1}", {"tensor<2xf32>", "tensor<2x4xf32>"}, 2},
    {"xf.outer", "xf.outer %0, %1 : {0}, {1}", {"tensor<2xf32>", "tensor<4xf32>"}, 2},
};

const char *const others[] = {
    "tensor<f32>",
    "tensor<i32>",
    "tensor<0xf32>",
    "tensor<?xf32>",
    "tensor<*xf32>",
    "tensor<1xf32>",
    "tensor<4xf32>",
    "tensor<5xf32>",
    "tensor<0xi32>",
    "tensor<?xi32>",
    "tensor<2xi32>",
    "tensor<4x4xf32>",
    "tensor<0x4xf32>",
    "tensor<4x0xf32>",
    "tensor<?x4xf32>",
    "tensor<4x?xf32>",
    "tensor<1x1xf32>",
    "tensor<2x3x4xf32>",
    "tensor<0x4x4xf32>",
    "tensor<?x?x?xf32>",
    "tensor<4xbf16>",
    "tensor<4xf64>",
    "index",
    "f32",
    "i32",
    "none",
    "vector<4xf32>",
    "memref<4xf32>",
    "tensor<4294967296x4294967296xf32>",
    "tensor<4x32x!xf.quantized<q4_0>>",
    "tensor<0x0x!xf.quantized<q4_0>>",
};

std::string filled(const Sample &sample, ArrayRef<std::string> types) {
  std::string text;
  for (const char *at = sample.text; *at; ++at)
    if (*at == '{') {
      text += types[at[1] - '0'];
      at += 2;
    } else {
      text += *at == '%' ? "%v" : std::string(1, *at);
    }
  return text;
}

class EveryOp : public testing::Test {
protected:
  EveryOp() {
    context.loadDialect<xf::XFDialect, patch::PatchDialect>();
    context.disableMultithreading();
  }

  /// Checks the block of `body`, whose output is its last value where `output` is empty.
  void meet(const std::string &inputs, const std::string &body) {
    SCOPED_TRACE(inputs + "\n" + body);
    unsigned told = 0;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &) {
      ++told;
      return success();
    });
    std::string text = "xf.block @b(%x: tensor<4xf32>" + inputs + ") -> tensor<4xf32> {\n" + body +
                       "\n  xf.yield %x : tensor<4xf32>\n}\n";
    ParserConfig config(&context, /*verifyAfterParse=*/false);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, config);
    if (module)
      yieldLast(*module);
    if (!module || failed(verify(*module))) {
      EXPECT_GT(told, 0u) << "is refused without a word";
      ++refused;
      return;
    }
    analyse(*module);
    ++analysed;
  }

  static void yieldLast(ModuleOp module) {
    for (auto block : module.getOps<xf::BlockOp>()) {
      Operation *yield = &block.getBody().front().back(), *last = yield->getPrevNode();
      if (!last || last->getNumResults() != 1)
        continue;
      yield->setOperands(last->getResults());
      block.setFunctionType(
          FunctionType::get(block.getContext(), block.getArgumentTypes(), last->getResultTypes()));
    }
  }

  void analyse(ModuleOp module) {
    for (SiteScope scope : {SiteScope::MLP, SiteScope::All}) {
      ModelOptions options;
      options.scope = scope;
      options.refute = refuteByWitness;
      options.confirm = confirmByTrial;
      std::vector<VerdictGroup> groups = groupVerdicts(checkModel(module, options));
      for (VerdictGroup &group : groups) {
        findWarnings(group);
        enumeratePlans(group.block, *group.options);
        if (group.verdict->isSuccess())
          if (auto trial = tryPlan(group.block, group.verdict->plan, {}); !trial)
            llvm::consumeError(trial.takeError());
      }
      auto proof = makeProof(module, groups, options);
      if (proof)
        proof::checkProof(module, *proof);
      else
        llvm::consumeError(proof.takeError());
    }
  }

  /// Checks the sample with inputs as operands, and with parameters and values that depend on the
  /// context.
  void meet(const Sample &sample, ArrayRef<std::string> types) {
    std::string inputs, params, dependent;
    for (unsigned i = 0; i < sample.operands; ++i) {
      std::string v = "%v" + std::to_string(i);
      inputs += ", " + v + ": " + types[i];
      if (i == 0)
        params += "  " + v + " = xf.param \"p\" : " + types[i] + "\n";
      else
        params += "  " + v + " = xf.contextual \"c\"(%x) : (tensor<4xf32>) -> " + types[i] + "\n";
    }
    std::string op = "  %r = " + filled(sample, types);
    meet(inputs, op);
    if (sample.operands)
      meet("", params + op);
  }

  MLIRContext context;
  unsigned refused = 0, analysed = 0;
};

TEST_F(EveryOp, IsWritten) {
  std::set<std::string> known{"xf.block", "xf.model", "xf.layer", "xf.yield"};
  for (const Sample &sample : samples)
    known.insert(sample.name);
  unsigned count = 0;
  for (RegisteredOperationName op : context.getRegisteredOperations())
    if (op.getDialectNamespace() == "xf") {
      EXPECT_TRUE(known.count(op.getStringRef().str())) << op.getStringRef().str();
      ++count;
    }
  EXPECT_EQ(count, known.size());
  for (const Sample &sample : samples)
    meet(sample, sample.types);
  EXPECT_GT(analysed, std::size(samples));
}

TEST_F(EveryOp, OfAnyTypeIsRefusedOrAnalysed) {
  for (const Sample &sample : samples)
    for (size_t i = 0; i < sample.types.size(); ++i)
      for (const char *other : others) {
        std::vector<std::string> types = sample.types;
        types[i] = other;
        meet(sample, types);
      }
  std::printf("%u refused, %u analysed\n", refused, analysed);
  EXPECT_GT(refused, analysed);
}

TEST_F(EveryOp, OfAnyTwoTypesIsRefusedOrAnalysed) {
  for (const Sample &sample : samples)
    for (size_t i = 0; i < sample.types.size(); ++i)
      for (size_t j = i + 1; j < sample.types.size(); ++j)
        for (const char *one : others)
          for (const char *other : others) {
            std::vector<std::string> types = sample.types;
            types[i] = one;
            types[j] = other;
            meet(sample, types);
          }
  std::printf("%u refused, %u analysed\n", refused, analysed);
  EXPECT_GT(refused, 100u);
}

TEST_F(EveryOp, WithNumbersOutOfRangeIsRefused) {
  const char *const bodies[] = {
      "xf.slice %x from -1 : tensor<4xf32> to tensor<2xf32>",
      "xf.slice %x from 9223372036854775807 : tensor<4xf32> to tensor<2xf32>",
      "xf.slice %x from 0 along 1 : tensor<4xf32> to tensor<4xf32>",
      "xf.slice %x from 0 along -1 : tensor<4xf32> to tensor<4xf32>",
      "xf.slice %x from 4 : tensor<4xf32> to tensor<0xf32>",
      "xf.transpose %x by [] : tensor<4xf32>",
      "xf.transpose %x by [1] : tensor<4xf32>",
      "xf.transpose %x by [-1] : tensor<4xf32>",
      "xf.transpose %x by [0, 1] : tensor<4xf32>",
      "xf.permute %x parts [4] by [0] along 1 : tensor<4xf32>",
      "xf.permute %x parts [4] by [0] along -1 : tensor<4xf32>",
      "xf.permute %x parts [] by [] : tensor<4xf32>",
      "xf.permute %x parts [2, 1] by [1, 0] : tensor<4xf32>",
      "xf.permute %x parts [5, -1] by [1, 0] : tensor<4xf32>",
      "xf.permute %x parts [9223372036854775807, 5] by [1, 0] : tensor<4xf32>",
      "xf.permute %x parts [2, 2] by [0] : tensor<4xf32>",
      "xf.permute %x parts [2, 2] by [0, 2] : tensor<4xf32>",
      "xf.concat %x, %x along 9 : tensor<4xf32>, tensor<4xf32>",
      "xf.concat %x, %x along -9 : tensor<4xf32>, tensor<4xf32>",
      "xf.top_k %x k 0 : tensor<4xf32>",
      "xf.top_k %x k -1 : tensor<4xf32>",
      "xf.top_k %x k 9223372036854775807 : tensor<4xf32>",
      "xf.top_k %x k 1 groups 0 keep 1 : tensor<4xf32>",
      "xf.top_k %x k 1 groups -2 keep 1 : tensor<4xf32>",
      "xf.top_k %x k 1 groups 2 keep 0 : tensor<4xf32>",
      "xf.normalize rms %x eps -1.0 : tensor<4xf32>",
      "xf.normalize rms %x eps 0x7FF0000000000000 : tensor<4xf32>",
      "xf.times %x by 0x7FC00000 : tensor<4xf32>",
      "xf.softcap %x at 0.0 : tensor<4xf32>",
      "xf.clamp %x to -1.0 : tensor<4xf32>",
      "xf.setting \"s\" : index = -1",
      "xf.setting \"s\" : index = 5 : i128",
      "xf.setting \"s\" : f32 = 0x7FC00000 : f32",
      "xf.setting \"s\" : tensor<4xf32> = dense<0x7FC00000> : tensor<4xf32>",
      "xf.setting \"s\" : tensor<1099511627776xf32> = dense<1.0> : tensor<1099511627776xf32>",
      "xf.setting \"s\" : tensor<4xf32> = dense<1.0> : tensor<5xf32>",
      "xf.setting \"s\" : tensor<4xf32> = #xf.rope<base = 1.0e4, dims = 6>",
      "xf.setting \"s\" : tensor<2xi32>",
      "xf.param \"a\\1B[2J\" : tensor<4xf32>",
      "xf.param \"a\\C2\\9B\" : tensor<4xf32>",
      "xf.param \"a\\FF\" : tensor<4xf32>",
      "xf.setting \"a\\07\" : tensor<4xf32>",
      "xf.contextual \"a\\1B[2J\"(%x) : (tensor<4xf32>) -> tensor<4xf32>",
      "\"xf.transpose\"(%x) : (tensor<4xf32>) -> tensor<4xf32>",
      "\"xf.permute\"(%x) : (tensor<4xf32>) -> tensor<4xf32>",
      "\"xf.linear\"() : () -> tensor<4xf32>",
      "\"xf.add\"(%x) : (tensor<4xf32>) -> tensor<4xf32>",
      "\"xf.add\"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<0xf32>",
      "\"xf.concat\"() : () -> tensor<4xf32>",
      "\"xf.top_k\"(%x) {k = \"two\"} : (tensor<4xf32>) -> tensor<2xi32>",
  };
  for (const char *body : bodies) {
    unsigned before = refused;
    meet("", std::string("  %r = ") + body);
    EXPECT_EQ(refused, before + 1) << body;
  }
}

TEST_F(EveryOp, ContainersOfAnythingAreRefused) {
  const char *const modules[] = {
      "xf.block @b() -> () {\n  xf.yield\n}",
      "xf.block @b(%x: tensor<4xf32>) -> () {\n  xf.yield\n}",
      "xf.block @b(%x: tensor<0xf32>) -> tensor<0xf32> {\n  xf.yield %x : tensor<0xf32>\n}",
      "xf.block @b(%x: tensor<?xf32>) -> tensor<?xf32> {\n  xf.yield %x : tensor<?xf32>\n}",
      "xf.block @b(%x: i32) -> i32 {\n  xf.yield %x : i32\n}",
      "xf.block @b(%x: tensor<f32>) -> tensor<f32> {\n  xf.yield %x : tensor<f32>\n}",
      "xf.block @b(%x: tensor<4xf32>) -> tensor<4xf32>",
      "xf.block @\"b\\1B\"(%x: tensor<4xf32>) -> tensor<4xf32> {\n  xf.yield %x : tensor<4xf32>\n}",
      "\"xf.block\"() ({}) {sym_name = \"b\", function_type = () -> ()} : () -> ()",
      "\"xf.block\"() ({^a:\n}) {sym_name = \"b\", function_type = () -> ()} : () -> ()",
      "xf.model @m {\n}",
      "xf.model @m {\n  xf.yield\n}",
      "\"xf.model\"() ({^a(%x: tensor<4xf32>):\n  \"xf.yield\"(%x) : (tensor<4xf32>) -> ()\n}) "
      "{sym_name = \"m\"} : () -> ()",
      "xf.block @s(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %a = xf.setting \"s\" : index\n"
      "  %b = xf.setting \"s\" : tensor<4xf32>\n  xf.yield %x : tensor<4xf32>\n}\n"
      "xf.model @m {\n  %E = xf.param \"e\" : tensor<3x4xf32>\n  %id = xf.token : tensor<i32>\n"
      "  %x = xf.embed %E[%id] : tensor<3x4xf32>, tensor<i32>\n"
      "  %y = xf.layer @s(%x) at \"l\" settings {s = 3 : index} : (tensor<4xf32>) -> "
      "tensor<4xf32>\n"
      "  xf.yield %y : tensor<4xf32>\n}",
  };
  for (const char *text : modules) {
    SCOPED_TRACE(text);
    unsigned told = 0;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &) {
      ++told;
      return success();
    });
    EXPECT_FALSE(parseSourceString<ModuleOp>(text, ParserConfig(&context)));
    EXPECT_GT(told, 0u);
  }
}

} // namespace
