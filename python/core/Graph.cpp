// The program of a model as Python's own values, and patches in the parts that its blocks make and
// read: what ctxc.torch runs.
#include "Core.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/TypeSwitch.h"
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace ctxc;
using namespace ctxc::python;
using llvm::StringRef;

namespace {

nb::str toStr(StringRef text) { return nb::str(text.data(), text.size()); }

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Numbers of values, in the order in which they are first named.
class Values {
public:
  int64_t operator[](mlir::Value value) {
    return numbers.try_emplace(value, int64_t(numbers.size())).first->second;
  }
  template <typename Range> nb::list list(Range &&values) {
    nb::list all;
    for (mlir::Value value : values)
      all.append((*this)[value]);
    return all;
  }

private:
  llvm::DenseMap<mlir::Value, int64_t> numbers;
};

/// An enumerated attribute by its keyword, as the op's own text has it; empty for any other.
StringRef keywordOf(mlir::Operation &op, StringRef attribute) {
  return llvm::TypeSwitch<mlir::Operation *, StringRef>(&op)
      .Case<xf::NormalizeOp>([&](auto op) {
        return attribute == "kind" ? stringifyNormKind(op.getKind()) : StringRef();
      })
      .Case<xf::ActivationOp>([&](auto op) {
        return attribute == "kind" ? stringifyActivationKind(op.getKind()) : StringRef();
      })
      .Case<xf::RoundOp>([&](auto op) {
        return attribute == "narrow" ? stringifyNarrowType(op.getNarrow()) : StringRef();
      })
      .Case<xf::RotaryOp>([&](auto op) {
        return attribute == "style" ? stringifyRotaryStyle(op.getStyle()) : StringRef();
      })
      .Case<patch::InvertRmsNormOp, patch::SolveScaleOp>([&](auto op) {
        return attribute == "update" ? stringifyUpdateKind(op.getUpdate()) : StringRef();
      })
      .Case<patch::ObligationOp>([&](auto op) {
        return attribute == "condition" ? stringifyCondition(op.getCondition()) : StringRef();
      })
      .Default([&](mlir::Operation *op) {
        auto contextual = llvm::dyn_cast<xf::ContextualOpInterface>(op);
        std::optional<xf::Run> run =
            contextual && attribute == "run" ? contextual.getStateRun() : std::nullopt;
        return run ? xf::stringifyRun(*run) : StringRef();
      });
}

/// Numbers, texts, and lists of integers; None for what a run needs not.
nb::object toPython(mlir::Attribute attribute) {
  return llvm::TypeSwitch<mlir::Attribute, nb::object>(attribute)
      .Case<mlir::UnitAttr>([](auto) { return nb::cast(true); })
      .Case<mlir::BoolAttr>([](auto a) { return nb::cast(a.getValue()); })
      .Case<mlir::IntegerAttr>([](auto a) { return nb::cast(a.getValue().getSExtValue()); })
      .Case<mlir::FloatAttr>([](auto a) { return nb::cast(a.getValueAsDouble()); })
      .Case<mlir::StringAttr>([](auto a) { return nb::object(toStr(a.getValue())); })
      .Case<mlir::DenseI32ArrayAttr, mlir::DenseI64ArrayAttr>([](auto a) {
        nb::list all;
        for (int64_t each : a.asArrayRef())
          all.append(each);
        return nb::object(std::move(all));
      })
      .Default([](mlir::Attribute) { return nb::none(); });
}

/// (name, operands, results, attributes, shapes of the results).
nb::tuple toTuple(mlir::Operation &op, Values &values) {
  nb::dict attributes;
  for (mlir::NamedAttribute each : op.getAttrDictionary()) {
    StringRef keyword = keywordOf(op, each.getName());
    attributes[toStr(each.getName())] =
        keyword.empty() ? toPython(each.getValue()) : nb::object(toStr(keyword));
  }
  nb::list shapes;
  for (mlir::Type type : op.getResultTypes()) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    shapes.append(tensor ? nb::tuple(nb::cast(tensor.getShape().vec())) : nb::tuple());
  }
  nb::list operands = values.list(op.getOperands()), results = values.list(op.getResults());
  return nb::make_tuple(toStr(op.getName().getStringRef()), operands, results, attributes, shapes);
}

/// (arguments, ops, values that it yields).
nb::tuple toTuple(xf::BlockOp block) {
  Values values;
  mlir::Block &body = block.getBody().front();
  nb::list arguments = values.list(body.getArguments()), ops;
  for (mlir::Operation &op : body.without_terminator())
    ops.append(toTuple(op, values));
  return nb::make_tuple(arguments, ops, values.list(body.getTerminator()->getOperands()));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

nb::dict toDict(const ProgramStep &constStep, Values &values, nb::dict &blocks) {
  ProgramStep step = constStep;
  nb::dict result, names, settings;
  auto nameOf = [&](xf::BlockOp block) -> nb::object {
    if (!block)
      return nb::none();
    nb::str name = toStr(block.getSymName());
    if (!blocks.contains(name))
      blocks[name] = toTuple(block);
    return nb::object(name);
  };
  result["block"] = nameOf(step.block);
  result["dual"] = nameOf(step.dual);
  result["applied"] = nameOf(step.applied);
  result["index"] = step.index;
  result["inputs"] = values.list(step.layer.getInputs());
  result["outputs"] = values.list(step.layer.getOutputs());
  for (xf::BlockOp block : {step.block, step.dual, step.applied}) {
    if (!block)
      continue;
    for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>())
      names[toStr(param.getName())] = step.layer.getStoredName(param.getName());
    for (xf::SettingOp setting : block.getBody().getOps<xf::SettingOp>())
      if (mlir::Attribute value = step.layer.getSettingValue(setting)) {
        llvm::SmallVector<double> numbers = xf::SettingOp::numbers(setting.getType(), value);
        settings[toStr(setting.getName())] =
            nb::cast(std::vector<double>(numbers.begin(), numbers.end()));
      }
  }
  result["names"] = names;
  result["settings"] = settings;
  return result;
}

nb::dict graphOf(BoundModel &model) {
  const Program &program = model.take(unlocked([&]() { return model.get().program(); }));
  Values values;
  nb::dict result, blocks;
  nb::list steps;
  for (const ProgramStep &step : program.steps)
    steps.append(toDict(step, values, blocks));
  result["blocks"] = blocks;
  result["steps"] = steps;
  std::optional<size_t> head = program.head();
  result["head"] = head ? nb::cast(*head) : nb::none();
  result["logits"] = values[program.logits()];
  result["bidirectional"] = isBidirectional(program);
  result["start_layer"] = model.get().options().planning.startLayer;
  result["positions"] = program.positions;
  return result;
}

//===----------------------------------------------------------------------===//
// Patches in parts
//===----------------------------------------------------------------------===//

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

/// The patch whose parts are given as (step, the block's name of the parameter, arrays).
std::shared_ptr<BoundPatch> patchOfParts(BoundModel &model, const std::vector<int64_t> &tokens,
                                         const std::vector<int64_t> &kept, const nb::list &stores) {
  const Program &program = model.take(model.get().program());
  Patch patch;
  for (nb::handle each : stores) {
    auto fields = nb::cast<nb::tuple>(each);
    auto index = nb::cast<size_t>(fields[0]);
    if (index >= program.steps.size())
      raiseError(makeError("a patch of step " + llvm::Twine(index) + "; the model has " +
                           llvm::Twine(program.steps.size())));
    const ProgramStep &step = program.steps[index];
    PatchParts parts;
    for (nb::handle array : nb::cast<nb::sequence>(fields[2])) {
      auto numbers = nb::cast<Numbers>(array);
      parts.emplace_back(numbers.data(), numbers.data() + numbers.size());
    }
    PatchedParameter parameter =
        model.take(findPatched(step.block, step.layer, nb::cast<std::string>(fields[1])));
    patch.add(model.take(toStored(parameter, std::move(parts))));
  }
  RunRequest request;
  request.tokens = python::toInputs(tokens);
  request.kept = kept;
  PatchMetadata metadata;
  if (model.get().checkpoint())
    metadata = model.take(
        unlocked([&] { return model.get().metadata(request, int64_t(tokens.size()) - 1); }));
  return std::make_shared<BoundPatch>(BoundPatch{std::make_shared<const Patch>(std::move(patch)),
                                                 std::move(metadata), model.adapter()});
}

nb::object owned(std::vector<double> numbers) {
  auto *kept = new std::vector<double>(std::move(numbers));
  nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<double> *>(p); });
  return view(*kept, {int64_t(kept->size())}, owner);
}

/// For each step, the parts of the patch that its applied block loads: {parameter: arrays}.
nb::list partsOf(BoundModel &model, const BoundPatch &patch) {
  const Program &program = model.take(model.get().program());
  nb::list all;
  for (const ProgramStep &constStep : program.steps) {
    ProgramStep step = constStep;
    nb::dict loads;
    if (step.applied)
      for (patch::LoadOp load : step.applied.getBody().getOps<patch::LoadOp>()) {
        auto sizes = llvm::map_to_vector(load.getParts(), [](mlir::Value part) {
          return llvm::cast<mlir::RankedTensorType>(part.getType()).getNumElements();
        });
        PatchedParameter parameter =
            model.take(findPatched(step.block, step.layer, load.getParameter()));
        PatchParts parts = model.take(fromStored(parameter, *patch.patch, sizes));
        nb::list arrays;
        for (std::vector<double> &part : parts)
          arrays.append(owned(std::move(part)));
        if (!parts.empty())
          loads[toStr(load.getParameter())] = arrays;
      }
    all.append(loads);
  }
  return all;
}

} // namespace

void python::addGraph(nb::class_<BoundModel> &model) {
  model.def("graph", &graphOf).def("patch_of_parts", &patchOfParts).def("parts_of_patch", &partsOf);
}
