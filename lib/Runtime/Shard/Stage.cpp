#include "ctxc/Runtime/Shard/Stage.h"
#include "ctxc/Program/Weights.h"
#include "ctxc/Shard/Balance.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ctxc;

/// The index of the step that is `layer`'s; the number of steps where it is none.
static size_t stepOf(const Program &program, Operation *layer) {
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    xf::LayerOp each = step.layer;
    if (each == layer)
      return i;
  }
  return program.steps.size(); // what ends the model
}

/// The values that steps before `cut` compute and later ones read.
static SmallVector<Value> valuesAcross(const Program &program, size_t cut) {
  SmallVector<Value> across;
  for (size_t i = 0; i < cut; ++i) {
    xf::LayerOp layer = program.steps[i].layer;
    for (Value value : layer.getOutputs())
      if (llvm::any_of(value.getUsers(),
                       [&](Operation *user) { return stepOf(program, user) >= cut; }))
        across.push_back(value);
  }
  return across;
}

Stage ctxc::wholeStage(const Program &program) {
  Stage whole;
  whole.end = program.steps.size();
  for (int64_t bytes : bytesOfSteps(program))
    whole.bytes += bytes;
  return whole;
}

int64_t ctxc::bytesRead(xf::ParamOp param) {
  const bool isTable =
      llvm::all_of(param->getUsers(), [](Operation *user) { return isa<xf::EmbedOp>(user); });
  auto type = cast<RankedTensorType>(param.getType());
  return isTable ? 0 : bytesOf(storageOf(type.getElementType()), type.getNumElements());
}

std::vector<int64_t> ctxc::bytesOfSteps(const Program &program) {
  std::vector<int64_t> all;
  for (const ProgramStep &step : program.steps) {
    xf::BlockOp block = step.block;
    int64_t bytes = 0;
    for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>())
      bytes += bytesRead(param);
    all.push_back(bytes);
  }
  return all;
}

llvm::Expected<std::vector<Stage>> ctxc::cutIntoStages(const Program &program, int64_t count) {
  if (count > program.layers)
    return makeError("the model has " + counted(program.layers, "layer") + ", which " +
                     llvm::Twine(count) +
                     " ranks cannot share; expected no more ranks than layers");
  // What stands before the first layer goes with it.
  const std::vector<int64_t> ofSteps = bytesOfSteps(program);
  const size_t front =
      llvm::find_if(program.steps, [](const ProgramStep &step) { return step.index.has_value(); }) -
      program.steps.begin();
  std::vector<double> units(ofSteps.begin() + front, ofSteps.end());
  for (size_t i = 0; i < front; ++i)
    units.front() += ofSteps[i];
  std::vector<Stage> stages;
  size_t first = 0;
  for (size_t end : shard::leastLargest(units, count)) {
    Stage stage;
    stage.first = first;
    stage.end = end + front;
    stage.in = valuesAcross(program, stage.first);
    if (stage.end < program.steps.size())
      stage.out = valuesAcross(program, stage.end);
    for (size_t i = stage.first; i < stage.end; ++i)
      stage.bytes += ofSteps[i];
    first = stage.end;
    stages.push_back(std::move(stage));
  }
  return stages;
}
