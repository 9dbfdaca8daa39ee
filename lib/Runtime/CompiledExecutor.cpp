// The executor over compiled kernels. A run owns the state of each step's
// contextual ops as one flat float buffer a state, written in place by kernels.
#include "ctxc/Runtime/CompiledExecutor.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Runtime/MaterializedWeights.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/ParallelFor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

namespace {

using Rows = std::vector<float>;
using Values = llvm::DenseMap<Value, Rows>;

int64_t elementsOf(Type type) {
  int64_t n = 1;
  for (int64_t d : cast<ShapedType>(type).getShape())
    n *= ShapedType::isDynamic(d) ? 1 : d;
  return n;
}

class CompiledRun : public Run {
public:
  int64_t size() const override { return count; }

  int64_t capacity = 0, count = 0;
  std::vector<int32_t> slots;           ///< positions of the tokens held
  std::vector<std::vector<Rows>> states; ///< a step's states: capacity × elements
};

/// A kernel and its arguments.
struct CompiledKernel {
  KernelLibrary::Kernel function = nullptr;
  KernelLibrary::Workspace workspace = nullptr;
  llvm::SmallVector<KernelArg> args;
};

/// What one call of a kernel reads and writes beside weights and settings.
struct StepCall {
  int64_t rows = 1;
  llvm::ArrayRef<int32_t> tokens, positions;
  CompiledRun *runs[2] = {nullptr, nullptr};
  std::vector<const Rows *> inputs;
  std::vector<Rows> outputs;
  const Patch *loads = nullptr;
  Patch stores;
  LayerObligations obligations;
  double replayError = 0;
};

class CompiledExecutor : public Executor {
public:
  CompiledExecutor(const Program &program, Weights &weights, int threads)
      : program(program), weights(weights), threads(threads) {}

  llvm::Error compile();

  std::unique_ptr<Run> start(int64_t capacity) override;
  llvm::Expected<std::vector<double>> forward(Run &run, ArrayRef<int64_t> tokens,
                                              ArrayRef<int64_t> positions,
                                              const ForwardOptions &options) override;
  llvm::Expected<PatchStep> patch(Run &full, Run &reduced, int64_t token, int64_t position,
                                  const PatchOptions &options) override;
  int64_t vocabulary() const override { return program.vocabulary; }
  int64_t layers() const override { return program.layers; }

private:
  llvm::Error call(size_t step, xf::BlockOp block, Weights &from, StepCall &call);
  llvm::Expected<void *> setting(size_t step, const KernelArg &arg);
  llvm::Expected<void *> load(size_t step, const KernelArg &arg, const Patch &patch);
  void readStores(size_t step, const CompiledKernel &kernel, ArrayRef<Rows> parts, StepCall &call);
  llvm::Error checkStep(const CompiledRun &run, ArrayRef<int64_t> tokens, ArrayRef<int64_t> positions) const;
  llvm::Error checkPatch(const Patch &patch, bool materialize);
  llvm::Error runInto(size_t step, xf::BlockOp block, Weights &from, StepCall &call, Values &values);
  static void observe(const LayerObserver &observer, const ProgramStep &step, bool first,
                      const Values &values, int64_t rows);

  Program program;
  Weights &weights;
  int threads;
  std::unique_ptr<KernelLibrary> library;
  llvm::StringMap<CompiledKernel> kernels;
  std::vector<char> workspace;
  /// Numbers of settings by step and name.
  std::vector<llvm::StringMap<std::vector<char>>> settings;
  llvm::StringMap<Rows> loaded; ///< parts of the patch at hand, in float32
};

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

llvm::Error CompiledExecutor::compile() {
  FailureOr<OwningOpRef<ModuleOp>> module = buildKernelModule(program);
  if (failed(module))
    return makeError("the model has no compiled form; run it with --backend reference");
  for (auto function : (*module)->getOps<func::FuncOp>())
    if (!function.isExternal())
      kernels[function.getName()].args = kernelArguments(function);
  CpuTarget target = CpuTarget::host();
  if (failed(lowerKernelsToLLVM(**module, target)))
    return makeError("the kernels could not be lowered");
  auto compiled = KernelLibrary::compile(**module, target);
  if (!compiled)
    return compiled.takeError();
  library = std::move(*compiled);
  for (auto &entry : kernels) {
    auto kernel = library->kernel(entry.first());
    if (!kernel)
      return kernel.takeError();
    auto size = library->workspace(entry.first());
    if (!size)
      return size.takeError();
    entry.second.function = *kernel;
    entry.second.workspace = *size;
  }
  settings.resize(program.steps.size());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------===//

llvm::Expected<void *> CompiledExecutor::setting(size_t step, const KernelArg &arg) {
  std::vector<char> &bytes = settings[step][arg.name];
  if (!bytes.empty())
    return bytes.data();
  xf::SettingOp op;
  xf::LayerOp layer = program.steps[step].layer;
  for (xf::BlockOp block : {program.steps[step].block, program.steps[step].dual, program.steps[step].applied})
    if (block && !op)
      block.walk([&](xf::SettingOp s) {
        if (s.getName() == arg.name)
          op = s;
      });
  llvm::SmallVector<double> numbers = xf::SettingOp::numbers(op.getType(), layer.getSettingValue(op));
  bool integer = isa<IndexType>(op.getType());
  bytes.resize(numbers.size() * (integer ? sizeof(int64_t) : sizeof(float)));
  for (auto [i, x] : llvm::enumerate(numbers))
    if (integer)
      reinterpret_cast<int64_t *>(bytes.data())[i] = int64_t(x);
    else
      reinterpret_cast<float *>(bytes.data())[i] = float(x);
  return bytes.data();
}

/// Whether the block reads the stored matrix `name` transposed, so that the factors
/// of its patch change places in the file.
static bool isTransposed(xf::BlockOp block, StringRef name) {
  bool transposed = false;
  block.walk([&](xf::LinearOp linear) {
    auto param = linear.getWeight().getDefiningOp<xf::ParamOp>();
    transposed |= param && param.getName() == name && linear.getTransposed();
  });
  return transposed;
}

llvm::Expected<void *> CompiledExecutor::load(size_t step, const KernelArg &arg, const Patch &patch) {
  std::string stored = program.steps[step].layer.getStoredName(arg.name);
  Rows &numbers = loaded[stored + "#" + std::to_string(arg.index)];
  int64_t size = elementsOf(arg.type);
  numbers.assign(size, 0.0f); // a parameter that is not in the patch is unpatched
  for (const ParameterPatch &entry : patch.parameters) {
    if (entry.parameter != stored)
      continue;
    bool first = (arg.index == 0) != isTransposed(program.steps[step].block, arg.name);
    const std::vector<double> &part =
        entry.kind == ParameterPatch::Kind::Delta ? entry.delta : first ? entry.u : entry.v;
    if (int64_t(part.size()) != size)
      return makeError(entry.parameter + ": the patch has " + llvm::Twine(part.size()) +
                       " numbers where the model's parameter needs " + llvm::Twine(size));
    std::copy(part.begin(), part.end(), numbers.begin());
  }
  return numbers.data();
}

llvm::Error CompiledExecutor::call(size_t step, xf::BlockOp block, Weights &from, StepCall &call) {
  const CompiledKernel &kernel = kernels[kernelName(block)];
  ProgramStep &at = program.steps[step];
  std::vector<void *> arguments;
  std::vector<Rows> stores;
  std::vector<int64_t> counts;
  stores.reserve(kernel.args.size());
  call.outputs.resize(block.getNumResults());
  int64_t nextState[2] = {0, 0};
  int64_t visible[2] = {0, 0};
  for (int stream : {0, 1})
    if (CompiledRun *run = call.runs[stream])
      visible[stream] = run->count + call.rows;

  for (const KernelArg &arg : kernel.args) {
    switch (arg.kind) {
    case KernelArgKind::Positions:
      arguments.push_back(const_cast<int32_t *>(call.positions.data()));
      break;
    case KernelArgKind::Tokens:
      arguments.push_back(const_cast<int32_t *>(call.tokens.data()));
      break;
    case KernelArgKind::Input:
      arguments.push_back(const_cast<float *>(call.inputs[arg.index]->data()));
      break;
    case KernelArgKind::Output:
      call.outputs[arg.index].resize(call.rows * elementsOf(arg.type));
      arguments.push_back(call.outputs[arg.index].data());
      break;
    case KernelArgKind::Param: {
      auto type = cast<MemRefType>(arg.type);
      auto data = from.get(at.layer.getStoredName(arg.name),
                           RankedTensorType::get(type.getShape(), type.getElementType()));
      if (!data)
        return data.takeError();
      arguments.push_back(const_cast<void *>(*data));
      break;
    }
    case KernelArgKind::Setting: {
      auto data = setting(step, arg);
      if (!data)
        return data.takeError();
      arguments.push_back(*data);
      break;
    }
    case KernelArgKind::State: {
      CompiledRun &run = *call.runs[arg.stream];
      auto &states = run.states[step];
      size_t index = nextState[arg.stream]++;
      if (states.size() <= index)
        states.resize(index + 1);
      states[index].resize(run.capacity * elementsOf(arg.type));
      arguments.push_back(states[index].data());
      break;
    }
    case KernelArgKind::Slots:
      arguments.push_back(call.runs[arg.stream]->slots.data());
      break;
    case KernelArgKind::Store:
      stores.emplace_back(call.rows * elementsOf(arg.type));
      arguments.push_back(stores.back().data());
      break;
    case KernelArgKind::Load: {
      auto data = load(step, arg, *call.loads);
      if (!data)
        return data.takeError();
      arguments.push_back(*data);
      break;
    }
    case KernelArgKind::Counts:
      counts.assign(elementsOf(arg.type), 0);
      arguments.push_back(counts.data());
      break;
    case KernelArgKind::Replay:
      arguments.push_back(&call.replayError);
      break;
    }
  }
  int64_t bytes = kernel.workspace(call.rows, visible[0], visible[1]);
  if (int64_t(workspace.size()) < bytes + 64)
    workspace.resize(bytes + 64);
  auto address = reinterpret_cast<uintptr_t>(workspace.data());
  ctxc_call frame{call.rows, {visible[0], visible[1]}, arguments.data(),
                  reinterpret_cast<void *>((address + 63) / 64 * 64), parallelFor, &threads};
  kernel.function(&frame);

  for (size_t i = 0; i + 1 < counts.size(); i += 2) {
    call.obligations.harmless += counts[i];
    call.obligations.harmful += counts[i + 1];
  }
  readStores(step, kernel, stores, call);
  return llvm::Error::success();
}

void CompiledExecutor::readStores(size_t step, const CompiledKernel &kernel, ArrayRef<Rows> parts,
                                  StepCall &call) {
  ProgramStep &at = program.steps[step];
  size_t next = 0;
  for (const KernelArg &arg : kernel.args) {
    if (arg.kind != KernelArgKind::Store)
      continue;
    const Rows &part = parts[next++];
    std::vector<double> numbers(part.begin(), part.end());
    if (arg.index == 1) { // v, of the entry that u began
      ParameterPatch &entry = call.stores.parameters.back();
      entry.kind = ParameterPatch::Kind::Rank1;
      entry.u = std::move(entry.delta);
      entry.delta.clear();
      entry.v = std::move(numbers);
      if (isTransposed(at.block, arg.name))
        std::swap(entry.u, entry.v);
      continue;
    }
    ParameterPatch entry;
    entry.parameter = at.layer.getStoredName(arg.name);
    entry.kind = ParameterPatch::Kind::Delta;
    for (const KernelArg &param : kernel.args)
      if (param.kind == KernelArgKind::Param && param.name == arg.name)
        entry.shape.assign(cast<MemRefType>(param.type).getShape().begin(),
                           cast<MemRefType>(param.type).getShape().end());
    entry.delta = std::move(numbers);
    call.stores.parameters.push_back(std::move(entry));
  }
}

/// Calls the kernel of `block` on the layer's values and binds its outputs.
llvm::Error CompiledExecutor::runInto(size_t step, xf::BlockOp block, Weights &from, StepCall &frame,
                                      Values &values) {
  xf::LayerOp layer = program.steps[step].layer;
  if (frame.inputs.empty())
    for (Value input : layer.getInputs())
      frame.inputs.push_back(&values[input]);
  if (llvm::Error error = call(step, block, from, frame))
    return error;
  for (auto [value, rows] : llvm::zip(layer.getOutputs(), frame.outputs))
    values[value] = std::move(rows);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

std::unique_ptr<Run> CompiledExecutor::start(int64_t capacity) {
  auto run = std::make_unique<CompiledRun>();
  run->capacity = capacity;
  run->slots.resize(capacity);
  run->states.resize(program.steps.size());
  return run;
}

llvm::Error CompiledExecutor::checkStep(const CompiledRun &run, ArrayRef<int64_t> tokens,
                                        ArrayRef<int64_t> positions) const {
  if (tokens.empty())
    return makeError("there is no token to run");
  if (tokens.size() != positions.size())
    return makeError(llvm::Twine(tokens.size()) + " tokens are given " + llvm::Twine(positions.size()) +
                     " positions");
  int64_t last = run.count ? run.slots[run.count - 1] : -1;
  for (int64_t position : positions) {
    if (position <= last || position > INT32_MAX)
      return makeError("position " + llvm::Twine(position) + " follows position " + llvm::Twine(last) +
                       "; positions of a run must increase from 0");
    last = position;
  }
  if (run.count + int64_t(tokens.size()) > run.capacity)
    return makeError("the run has room for " + llvm::Twine(run.capacity) + " tokens and is given " +
                     llvm::Twine(run.count + tokens.size()));
  for (int64_t token : tokens)
    if (token < 0 || token > INT32_MAX)
      return makeError("token id " + llvm::Twine(token) + " is out of range");
  return llvm::Error::success();
}

llvm::Error CompiledExecutor::checkPatch(const Patch &patch, bool materialize) {
  llvm::StringSet<> all, loadable, seen;
  for (ProgramStep &step : program.steps) {
    step.block.walk([&](xf::ParamOp p) { all.insert(step.layer.getStoredName(p.getName())); });
    if (step.applied)
      step.applied.walk([&](patch::LoadOp l) { loadable.insert(step.layer.getStoredName(l.getParameter())); });
  }
  for (const ParameterPatch &entry : patch.parameters) {
    if (!seen.insert(entry.parameter).second)
      return makeError(entry.parameter + ": the patch changes it twice");
    if (!all.contains(entry.parameter))
      return makeError(entry.parameter + ": the patch changes it, but the model has no such parameter");
    if (!materialize && !loadable.contains(entry.parameter))
      return makeError(entry.parameter + ": the patch changes it, but the plan patches it nowhere; "
                                         "materialize the patch to run it");
  }
  return llvm::Error::success();
}

void CompiledExecutor::observe(const LayerObserver &observer, const ProgramStep &constStep, bool first,
                               const Values &values, int64_t rows) {
  ProgramStep step = constStep;
  if (!observer || (!step.index && !first))
    return;
  // Several residual streams stand side by side, row by row.
  std::vector<double> seen;
  for (int64_t r = 0; r < rows; ++r)
    for (Value output : step.layer.getOutputs()) {
      const Rows &x = values.find(output)->second;
      size_t width = x.size() / rows;
      seen.insert(seen.end(), x.begin() + r * width, x.begin() + (r + 1) * width);
    }
  observer(step.index.value_or(-1), seen, rows);
}

static llvm::Expected<std::vector<double>> finiteLogits(ArrayRef<float> logits) {
  for (float x : logits)
    if (!std::isfinite(x))
      return makeError("the logits are not finite; the weights or the patch are too large for float32");
  return std::vector<double>(logits.begin(), logits.end());
}

static bool readsContext(xf::BlockOp block) {
  return block.walk([](xf::ContextualOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
}

llvm::Expected<std::vector<double>> CompiledExecutor::forward(Run &opaqueRun, ArrayRef<int64_t> tokens,
                                                              ArrayRef<int64_t> positions,
                                                              const ForwardOptions &options) {
  auto &run = static_cast<CompiledRun &>(opaqueRun);
  if (llvm::Error error = checkStep(run, tokens, positions))
    return std::move(error);
  static const Patch none;
  const Patch &patch = options.patch ? *options.patch : none;
  if (llvm::Error error = checkPatch(patch, options.materialize))
    return std::move(error);
  MaterializedWeights patched(weights, options.materialize ? patch : none);
  bool factored = options.patch && !options.materialize;

  std::vector<int32_t> ids(tokens.begin(), tokens.end()), at(positions.begin(), positions.end());
  std::copy(at.begin(), at.end(), run.slots.begin() + run.count);
  Values values;
  int64_t rows = ids.size();
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    StepCall frame;
    frame.rows = rows;
    frame.tokens = ids;
    frame.positions = at;
    frame.runs[0] = &run;
    frame.loads = &patch;
    // The head can be as large as all layers together: only tokens whose logits
    // are asked for go there.
    std::vector<Rows> last;
    bool head = i > 0 && i + 1 == program.steps.size() && !step.index && !readsContext(step.block);
    if (head && !options.allLogits && rows > 1) {
      for (Value input : step.layer.getInputs()) {
        const Rows &x = values[input];
        last.emplace_back(x.end() - x.size() / rows, x.end());
      }
      for (const Rows &x : last)
        frame.inputs.push_back(&x);
      frame.tokens = frame.tokens.take_back(1);
      frame.positions = frame.positions.take_back(1);
      frame.rows = 1;
    }
    xf::BlockOp block = factored && step.applied ? step.applied : step.block;
    if (llvm::Error error = runInto(i, block, patched, frame, values))
      return std::move(error);
    observe(options.observer, step, i == 0, values, rows);
  }
  if (options.append)
    run.count += rows;
  Value logits = program.steps.back().layer->getBlock()->back().getOperand(0);
  ArrayRef<float> numbers = values[logits];
  return finiteLogits(options.allLogits ? numbers : numbers.take_back(program.vocabulary));
}

//===----------------------------------------------------------------------===//
// Algorithm 1
//===----------------------------------------------------------------------===//

llvm::Expected<PatchStep> CompiledExecutor::patch(Run &opaqueFull, Run &opaqueReduced, int64_t token,
                                                  int64_t position, const PatchOptions &options) {
  auto &full = static_cast<CompiledRun &>(opaqueFull);
  auto &reduced = static_cast<CompiledRun &>(opaqueReduced);
  if (&full == &reduced)
    return makeError("the full and the reduced run are one; they need a run each");
  for (CompiledRun *run : {&full, &reduced}) {
    if (llvm::Error error = checkStep(*run, token, position))
      return std::move(error);
    run->slots[run->count] = position;
  }
  if (options.startLayer < 0 || options.startLayer > program.layers)
    return makeError("layer " + llvm::Twine(options.startLayer) +
                     " is to be the first that is patched; the model has layers 0 to " +
                     llvm::Twine(program.layers - 1));

  PatchStep result;
  result.obligations.resize(program.layers);
  result.replayError.resize(program.layers);
  const int32_t id = token, at = position;
  Values values[2];
  auto frameFor = [&](CompiledRun *first, CompiledRun *second) {
    StepCall frame;
    frame.tokens = id;
    frame.positions = at;
    frame.runs[0] = first;
    frame.runs[1] = second;
    return frame;
  };
  auto plain = [&](size_t i, int stream, Weights &from) {
    StepCall frame = frameFor(stream == 0 ? &full : &reduced, nullptr);
    return runInto(i, program.steps[i].block, from, frame, values[stream]);
  };

  for (auto [i, step] : llvm::enumerate(program.steps)) {
    bool end = !step.index && !readsContext(step.block);
    if (step.dual && *step.index >= options.startLayer) {
      StepCall frame = frameFor(&full, &reduced);
      for (Values &stream : values)
        for (Value input : step.layer.getInputs())
          frame.inputs.push_back(&stream[input]);
      if (llvm::Error error = call(i, step.dual, weights, frame))
        return std::move(error);
      size_t half = frame.outputs.size() / 2;
      for (auto [j, value] : llvm::enumerate(step.layer.getOutputs())) {
        values[0][value] = std::move(frame.outputs[j]);
        values[1][value] = std::move(frame.outputs[half + j]);
      }
      result.obligations[*step.index] = frame.obligations;
      result.replayError[*step.index] = frame.replayError;
      if (options.materialize) { // what the rounded weights really give
        MaterializedWeights patched(weights, frame.stores);
        if (llvm::Error error = plain(i, 1, patched))
          return std::move(error);
      }
      llvm::append_range(result.patch.parameters, std::move(frame.stores.parameters));
    } else if (end) { // both streams in one sweep over its weights
      std::vector<Rows> packed;
      for (Value input : step.layer.getInputs()) {
        packed.push_back(values[0][input]);
        packed.back().insert(packed.back().end(), values[1][input].begin(), values[1][input].end());
      }
      const int32_t ids[2] = {id, id}, positions[2] = {at, at};
      StepCall frame = frameFor(nullptr, nullptr);
      frame.rows = 2;
      frame.tokens = ids;
      frame.positions = positions;
      for (const Rows &x : packed)
        frame.inputs.push_back(&x);
      if (llvm::Error error = call(i, step.block, weights, frame))
        return std::move(error);
      for (auto [value, x] : llvm::zip(step.layer.getOutputs(), frame.outputs)) {
        values[0][value] = Rows(x.begin(), x.begin() + x.size() / 2);
        values[1][value] = Rows(x.begin() + x.size() / 2, x.end());
      }
    } else {
      for (int stream : {0, 1})
        if (llvm::Error error = plain(i, stream, weights))
          return std::move(error);
    }
    observe(options.fullObserver, step, i == 0, values[0], 1);
    observe(options.reducedObserver, step, i == 0, values[1], 1);
  }
  ++full.count;
  Value logits = program.steps.back().layer->getBlock()->back().getOperand(0);
  auto fullLogits = finiteLogits(values[0][logits]);
  if (!fullLogits)
    return fullLogits.takeError();
  auto reducedLogits = finiteLogits(values[1][logits]);
  if (!reducedLogits)
    return reducedLogits.takeError();
  result.fullLogits = std::move(*fullLogits);
  result.reducedLogits = std::move(*reducedLogits);
  return result;
}

} // namespace

llvm::Expected<std::unique_ptr<Executor>>
ctxc::createCompiledExecutor(const Program &program, Weights &weights, const CompiledOptions &options) {
  DialectRegistry registry;
  registerCodegenDialects(registry);
  ModuleOp module = program.module;
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();
  auto executor = std::make_unique<CompiledExecutor>(program, weights, threadCount(options.threads));
  if (llvm::Error error = executor->compile())
    return std::move(error);
  return executor;
}
