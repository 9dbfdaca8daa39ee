#include "ctxc/Proof/Structure.h"
#include "Claims.h"
#include "ctxc/Proof/Body.h"
#include "dialects/XF/BlockFacts.h"
#include "mlir/IR/AsmState.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;

//===----------------------------------------------------------------------===//
// Structures
//===----------------------------------------------------------------------===//

/// The stored tensors of each of the block's parameters.
static std::map<std::string, SmallVector<std::string>> parametersOf(xf::BlockOp block,
                                                                    xf::LayerOp layer) {
  std::map<std::string, SmallVector<std::string>> names;
  block.walk([&](xf::ParamOp param) {
    llvm::append_range(names[param.getName().str()], xf::storedTensors(param, layer));
  });
  return names;
}

/// How many layers use a tensor of each name; one that the model itself reads counts
/// as used by many.
static llvm::StringMap<unsigned> storedUses(xf::ModelOp model, ModuleOp module) {
  llvm::StringMap<unsigned> uses;
  for (Operation &op : model.getBody().front()) {
    if (auto param = dyn_cast<xf::ParamOp>(op))
      for (const std::string &tensor : xf::storedTensors(param, {}))
        uses[tensor] += 2;
    if (auto layer = dyn_cast<xf::LayerOp>(op)) {
      std::set<std::string> stored;
      for (const auto &[name, tensors] :
           parametersOf(module.lookupSymbol<xf::BlockOp>(layer.getBlock()), layer))
        stored.insert(tensors.begin(), tensors.end());
      for (const std::string &name : stored)
        ++uses[name];
    }
  }
  return uses;
}

std::vector<Structure> proof::structuresOf(ModuleOp module, int64_t startLayer) {
  std::vector<Structure> structures;
  auto add = [&](Structure found, unsigned layer) {
    for (Structure &known : structures)
      if (known.block == found.block && known.inputsDepend == found.inputsDepend &&
          known.equalInputs == found.equalInputs && known.frozen == found.frozen &&
          known.shared == found.shared && known.settings == found.settings &&
          known.facts == found.facts) {
        known.layers.push_back(layer);
        return;
      }
    found.layers = {layer};
    structures.push_back(std::move(found));
  };
  if (module.getOps<xf::ModelOp>().empty()) {
    for (auto [i, block] : llvm::enumerate(module.getOps<xf::BlockOp>()))
      add({block}, i);
    return structures;
  }
  xf::ModelOp model = *module.getOps<xf::ModelOp>().begin();
  llvm::StringMap<unsigned> uses = storedUses(model, module);
  Body flow(module, startLayer);
  for (auto [i, layer] : llvm::enumerate(model.getBody().getOps<xf::LayerOp>())) {
    if (int64_t(i) < startLayer)
      continue;
    Structure found{module.lookupSymbol<xf::BlockOp>(layer.getBlock())};
    found.layer = layer;
    for (auto [number, input] : llvm::enumerate(layer.getInputs()))
      if (flow.depends(input))
        found.inputsDepend = true;
      else
        found.equalInputs.insert(number);
    if (!found.inputsDepend)
      found.equalInputs.clear();
    if (ArrayAttr frozen = layer.getFrozenAttr())
      for (Attribute name : frozen)
        found.frozen.insert(cast<StringAttr>(name).str());
    for (const auto &[name, tensors] : parametersOf(found.block, layer))
      if (llvm::any_of(tensors, [&](const std::string &tensor) { return uses.lookup(tensor) > 1; }))
        found.shared.insert(name);
    found.settings = xf::settingValues(found.block, layer);
    found.facts = xf::BlockFacts(found.block, layer).signature();
    add(std::move(found), i);
  }
  return structures;
}

std::string proof::layersText(const Structure &structure) {
  std::string text;
  const std::vector<unsigned> &layers = structure.layers;
  for (size_t i = 0; i < layers.size();) {
    size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1)
      ++last;
    text += (i ? ", " : "") + std::to_string(layers[i]);
    if (last > i)
      text += "-" + std::to_string(layers[last]);
    i = last + 1;
  }
  return text;
}

std::string proof::titleOf(const Structure &structure) {
  xf::BlockOp block = structure.block;
  return "block '" + block.getSymName().str() + "', layers " + layersText(structure);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

BlockText::BlockText(xf::BlockOp block) {
  OpPrintingFlags flags;
  flags.printNameLocAsPrefix().assumeVerified(); // else each text verifies the whole module
  AsmState state(block, flags);
  std::string printed;
  llvm::raw_string_ostream os(printed);
  block->print(os, state);
  SmallVector<StringRef> lines;
  StringRef(printed).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    text.push_back(line.rtrim().str());
  auto add = [&](Value value) {
    std::string name;
    llvm::raw_string_ostream stream(name);
    value.printAsOperand(stream, state);
    names[value] = name;
    values[name] = value;
  };
  for (Value argument : block.getBody().getArguments())
    add(argument);
  for (Operation &op : block.getBody().front())
    for (Value result : op.getResults())
      add(result);
}

std::string proof::digestOf(const Structure &structure, const BlockText &text) {
  llvm::SHA256 sum;
  auto add = [&](StringRef part) {
    sum.update(part);
    sum.update(StringRef("\n"));
  };
  for (const std::string &line : text.lines())
    add(line);
  for (const std::string &name : structure.frozen)
    add("frozen " + name);
  for (const std::string &name : structure.shared)
    add("shared " + name);
  if (!structure.settings.empty())
    add("settings " + structure.settings);
  add(structure.inputsDepend ? "inputs depend" : "inputs equal");
  for (unsigned input : structure.equalInputs)
    add("input " + std::to_string(input) + " equal");
  return "sha256:" + llvm::toHex(sum.final(), /*LowerCase=*/true);
}

std::string proof::ruleOfLemma(StringRef lemma) {
  static constexpr std::pair<StringRef, StringRef> rules[] = {
      {"input controllability of MLPs", "input-mlp"},
      {"input controllability of pre-norm MLPs", "input-pre-norm"},
      {"input controllability of biases", "norm-bias-input"},
      {"input controllability of scales", "norm-scale-input"},
      {"output controllability of outer bias", "output-bias"},
      {"output controllability of outer weight matrix", "output-matrix"},
      {"output controllability of outer element-wise multiply", "output-scale"},
      {"output controllability of mixture of experts", "mixture"},
      {"a known factor of the output chain", "known-factor"}};
  for (auto [known, rule] : rules)
    if (known == lemma)
      return rule.str();
  return lemma.str();
}

StringRef proof::textOf(xf::Obligation needs) {
  switch (needs) {
  case xf::Obligation::None:
    return "nothing";
  case xf::Obligation::NonzeroVector:
    return "nonzero-vector";
  case xf::Obligation::NonzeroElements:
    return "nonzero-elements";
  case xf::Obligation::NonzeroSum:
    return "nonzero-sum";
  case xf::Obligation::FiniteElements:
    return "finite-elements";
  case xf::Obligation::SameSelection:
    return "same-selection";
  }
  llvm_unreachable("an obligation of no known kind");
}

StringRef proof::textOf(xf::Zeros zeros) {
  switch (zeros) {
  case xf::Zeros::Never:
    return "never";
  case xf::Zeros::NullSet:
    return "null-set";
  case xf::Zeros::OpenSet:
    return "open-set";
  }
  llvm_unreachable("zeros of no known kind");
}
