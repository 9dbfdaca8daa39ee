// The manifest: what a program that calls generated kernels needs to know, as JSON.
#include "ctxc/Lowering/Codegen.h"
#include "dialects/Kernel/IntegerProducts.h"
#include "lib/Lowering/Library/ArgumentLayout.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace ctxc;
using llvm::json::OStream;

static void writeTarget(const CpuTarget &target, OStream &json) {
  json.attributeObject("target", [&] {
    json.attribute("triple", target.triple.empty() ? llvm::sys::getProcessTriple() : target.triple);
    json.attribute("cpu", target.cpu);
    json.attributeArray("needed_features", [&] {
      for (StringRef feature : target.needed)
        json.value(feature);
    });
    json.attribute("float32_lanes", target.lanes);
  });
}

static void writeStatus(OStream &json) {
  json.attributeObject("status", [&] {
    json.attribute(std::to_string(CTXC_GOOD), "all is written");
    json.attribute(std::to_string(CTXC_INEXACT),
                   "all is written, and a harmful count went up: a condition under which the patch "
                   "is exact does not hold for these data");
    json.attribute(std::to_string(CTXC_WRONG_CPU),
                   "nothing is written: this machine lacks what the code needs");
  });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static void writeArray(const ArrayLayout &array, OStream &json) {
  json.attribute("type", array.type);
  json.attributeArray("shape", [&] {
    for (StringRef size : array.shape)
      if (int64_t number; !size.getAsInteger(10, number))
        json.value(number);
      else
        json.value(size);
  });
  if (array.strides.empty())
    json.attribute("layout", array.alignment == 8 ? "a ctxc_scaled_matrix" : "blocks, row by row");
  else
    json.attributeArray("strides", [&] {
      for (int64_t stride : array.strides)
        json.value(stride);
    });
  json.attribute("alignment", array.alignment);
}

static void writeArgument(const ArgumentLayout &argument, OStream &json) {
  json.object([&] {
    json.attribute("identifier", argument.identifier);
    json.attribute("kind", kernel::stringifyArgKind(argument.arg.kind));
    if (!argument.arg.name.empty())
      json.attribute("name", argument.arg.name);
    if (!argument.part.empty())
      json.attribute("part", argument.part);
    json.attribute("index", argument.arg.index);
    json.attribute("stream", argument.arg.run);
    json.attribute("access", argument.access);
    writeArray(argument.array, json);
    if (argument.slice)
      json.attributeObject("slice", [&] { writeArray(*argument.slice, json); });
  });
}

/// What each entry of a token's counts is about.
static void writeObligations(xf::BlockOp block, OStream &json) {
  auto obligation = [&](int64_t index, StringRef condition, StringRef lemma) {
    json.object([&] {
      json.attribute("index", index);
      json.attribute("condition", condition);
      if (!lemma.empty())
        json.attribute("lemma", lemma);
    });
  };
  json.attributeArray("obligations", [&] {
    block.walk([&](Operation *op) {
      if (auto solve = dyn_cast<patch::SolveScaleOp>(op))
        obligation(solve.getIndex(), "nonzero_elements", "");
      else if (auto zero = dyn_cast<patch::ObligationOp>(op))
        obligation(zero.getIndex(), patch::stringifyCondition(zero.getCondition()),
                   zero.getLemma());
      else if (auto same = dyn_cast<patch::SameSelectionOp>(op))
        obligation(same.getIndex(), "same_selection", same.getLemma());
    });
  });
}

static void writeKernel(func::FuncOp kernel, xf::BlockOp block, OStream &json) {
  json.object([&] {
    json.attribute("name", kernel.getName());
    json.attribute("workspace", (kernel.getName() + "_workspace").str());
    json.attribute("workspace_alignment", 64);
    if (kernel::isMarked<kernel::Rounded>(kernel))
      json.attribute("rounds_prompts", true);
    if (kernel::isMarked<kernel::Split>(kernel))
      json.attribute("splits_prompts", true);
    bool inIntegers = false;
    kernel.walk([&](Operation *op) { inIntegers |= kernel::isInteger(op); });
    if (inIntegers)
      json.attribute("integer_products", true);
    json.attributeArray("arguments", [&] {
      for (const ArgumentLayout &argument : argumentLayouts(kernel))
        writeArgument(argument, json);
    });
    writeObligations(block, json);
  });
}

//===----------------------------------------------------------------------===//
// The model's layers
//===----------------------------------------------------------------------===//

static void writeSettings(ProgramStep step, OStream &json) {
  llvm::StringSet<> seen;
  json.attributeObject("settings", [&] {
    for (xf::BlockOp block : {step.block, step.dual, step.applied}) {
      if (!block)
        continue;
      for (auto setting : block.getBody().getOps<xf::SettingOp>()) {
        if (!seen.insert(setting.getName()).second)
          continue;
        bool integer = isa<IndexType>(setting.getType());
        json.attributeArray(setting.getName(), [&] {
          for (double x :
               xf::SettingOp::numbers(setting.getType(), step.layer.getSettingValue(setting)))
            if (integer)
              json.value(int64_t(x));
            else
              json.value(x);
        });
      }
    }
  });
}

/// Values that pass from layer to layer are numbered in the order in which layers return them.
static void writeStep(ProgramStep step, StringRef prefix, llvm::DenseMap<Value, int64_t> &numbers,
                      OStream &json) {
  json.object([&] {
    if (step.index)
      json.attribute("layer", *step.index);
    json.attributeArray("inputs", [&] {
      for (Value input : step.layer->getOperands())
        json.value(numbers.lookup(input));
    });
    json.attributeArray("outputs", [&] {
      for (Value output : step.layer->getResults())
        json.value(numbers.try_emplace(output, numbers.size()).first->second);
    });
    json.attributeObject("kernels", [&] {
      json.attribute("plain", kernelName(step.block, prefix));
      if (step.dual)
        json.attribute("dual", kernelName(step.dual, prefix));
      if (step.applied)
        json.attribute("applied", kernelName(step.applied, prefix));
    });
    json.attributeObject("parameters", [&] {
      llvm::StringSet<> seen;
      for (xf::BlockOp block : {step.block, step.dual, step.applied})
        if (block)
          block.walk([&](xf::ParamOp param) {
            if (seen.insert(param.getName()).second)
              json.attribute(param.getName(), step.layer.getStoredName(param.getName()));
          });
    });
    writeSettings(step, json);
  });
}

void ctxc::writeKernelManifest(const LibraryInterface &library, llvm::raw_ostream &os) {
  OStream json(os, 2);
  ModuleOp kernels = library.kernels;
  json.object([&] {
    json.attribute("format", "ctxc-kernels");
    json.attribute("abi_version", CTXC_KERNEL_ABI_VERSION);
    json.attribute("refusal", library.prefix + "_refusal");
    writeTarget(library.target, json);
    writeStatus(json);
    json.attributeArray("support_functions", [&] {
      for (auto function : kernels.getOps<func::FuncOp>())
        if (function.isExternal())
          json.value(function.getName());
    });
    json.attributeArray("kernels", [&] {
      for (xf::BlockOp block : kernelBlocks(library.program))
        writeKernel(kernels.lookupSymbol<func::FuncOp>(kernelName(block, library.prefix)), block,
                    json);
    });
    json.attributeArray("steps", [&] {
      llvm::DenseMap<Value, int64_t> numbers;
      for (const ProgramStep &step : library.program.steps)
        writeStep(step, library.prefix, numbers, json);
    });
  });
  os << "\n";
}
