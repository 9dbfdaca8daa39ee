#include "lib/Runtime/BothRuns.h"

using namespace mlir;
using namespace ctxc;

llvm::Error ctxc::runDual(KernelCalls &kernels, ProgramStep step, size_t index, Weights &weights,
                          StepCall &call, Values (&values)[2]) {
  for (Values &ofRun : values) // before any address of a value is taken
    for (Value output : step.layer.getOutputs())
      call.outputs.push_back(std::move(ofRun[output]));
  for (Values &ofRun : values)
    for (Value input : step.layer.getInputs())
      call.inputs.push_back(&ofRun[input]);
  if (llvm::Error error = kernels.call(index, step.dual, weights, call))
    return error;
  size_t half = call.outputs.size() / 2;
  for (auto [i, value] : llvm::enumerate(step.layer.getOutputs())) {
    values[0][value] = std::move(call.outputs[i]);
    values[1][value] = std::move(call.outputs[half + i]);
  }
  return llvm::Error::success();
}

llvm::Error ctxc::runTogether(KernelCalls &kernels, ProgramStep step, size_t index,
                              Weights &weights, ArrayRef<Input> given, ArrayRef<int32_t> positions,
                              Values (&values)[2], BothRows &memory) {
  // A step that reads no value gives both runs the same. Of a single token both are computed all the
  // same, as on a GPU: the predicted cost counts them.
  const size_t runs = step.layer.getInputs().empty() && given.size() > 1 ? 1 : 2;
  std::vector<Input> inputs;
  std::vector<int32_t> where;
  for (size_t run = 0; run < runs; ++run) {
    llvm::append_range(inputs, given);
    llvm::append_range(where, positions);
  }
  const std::vector<int32_t> tokens = kernelIds(inputs);
  StepCall call;
  call.rows = inputs.size();
  call.given = inputs;
  call.tokens = tokens;
  call.positions = where;
  memory.inputs.resize(step.layer.getInputs().size());
  for (auto [input, rows] : llvm::zip(step.layer.getInputs(), memory.inputs)) {
    rows.clear();
    for (Values &ofRun : values)
      llvm::append_range(rows, ofRun[input]);
    call.inputs.push_back(&rows);
  }
  call.outputs = std::move(memory.outputs);
  if (llvm::Error error = kernels.call(index, step.block, weights, call))
    return error;
  memory.outputs = std::move(call.outputs);
  for (auto [value, rows] : llvm::zip(step.layer.getOutputs(), memory.outputs))
    for (size_t run : {0, 1}) {
      auto begin = rows.begin() + (run % runs) * (rows.size() / runs);
      values[run][value].assign(begin, begin + rows.size() / runs);
    }
  return llvm::Error::success();
}
