#include "Shrink.h"
#include "SizeSearch.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace ctxc;

static xf::BlockOp blockOf(ModuleOp module) { return *module.getOps<xf::BlockOp>().begin(); }

static SizeProblem problemOf(xf::BlockOp block, int64_t mostNumbers) {
  SizeProblem problem;
  problem.mostNumbers = mostNumbers;
  auto add = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      problem.ordered.insert(tensor.getShape().begin(), tensor.getShape().end());
  };
  llvm::for_each(block.getArgumentTypes(), add);
  block.walk([&](Operation *op) {
    llvm::for_each(op->getResultTypes(), add);
    if (auto param = dyn_cast<xf::ParamOp>(op))
      problem.tensors.emplace_back(cast<RankedTensorType>(param.getType()).getShape());
    auto sized = dyn_cast<xf::SizesOpInterface>(op);
    if (!sized)
      return;
    for (xf::SizeRelation &relation : sized.getSizeRelations()) {
      problem.others.insert(relation.left.begin(), relation.left.end());
      if (!relation.fixed)
        problem.others.insert(relation.right.begin(), relation.right.end());
      problem.relations.push_back(std::move(relation));
    }
  });
  return problem;
}

/// The module with a block of these sizes.
static OwningOpRef<ModuleOp> resized(ModuleOp module, const NewSizes &sizes) {
  OwningOpRef<ModuleOp> result = cast<ModuleOp>(module->clone());
  xf::BlockOp block = blockOf(*result);
  auto map = [&](int64_t size) {
    auto known = sizes.find(size);
    return known == sizes.end() ? size : known->second;
  };
  auto typeOf = [&](Type type) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return type;
    Type element = tensor.getElementType();
    if (isa<xf::QuantizedType>(element))
      element = Float32Type::get(type.getContext());
    return RankedTensorType::get(llvm::map_to_vector(tensor.getShape(), map), element);
  };
  block.walk([&](xf::SizesOpInterface op) { op.resize(map); });
  block.walk([&](Operation *op) {
    if (op != block)
      for (Value value : op->getResults())
        value.setType(typeOf(value.getType()));
  });
  for (Value argument : block.getBody().getArguments())
    argument.setType(typeOf(argument.getType()));
  block.setFunctionType(FunctionType::get(block.getContext(),
                                          llvm::map_to_vector(block.getArgumentTypes(), typeOf),
                                          llvm::map_to_vector(block.getResultTypes(), typeOf)));
  return result;
}

Shrunk ctxc::shrink(ModuleOp module, int64_t mostNumbers,
                    llvm::function_ref<bool(xf::BlockOp)> accept) {
  Shrunk shrunk;
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
  auto found = findSizes(problemOf(blockOf(module), mostNumbers), [&](const NewSizes &sizes) {
    OwningOpRef<ModuleOp> smaller = resized(module, sizes);
    if (failed(verify(*smaller)) || !accept(blockOf(*smaller)))
      return false;
    shrunk.module = std::move(smaller);
    return true;
  });
  if (found)
    shrunk.becomes = *found;
  if (found)
    for (auto [size, to] : llvm::reverse(*found))
      if (size != to)
        shrunk.sizes += (shrunk.sizes.empty() ? "" : ", ") + std::to_string(to) + " for " +
                        std::to_string(size);
  return shrunk;
}
