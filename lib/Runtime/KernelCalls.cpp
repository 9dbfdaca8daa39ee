#include "lib/Runtime/KernelCalls.h"
#include "ctxc/Runtime/StepChecks.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/ParallelFor.h"

using namespace mlir;
using namespace ctxc;

static int64_t elementsOf(Type type) {
  int64_t n = 1;
  for (int64_t d : cast<ShapedType>(type).getShape())
    n *= ShapedType::isDynamic(d) ? 1 : d;
  return n;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

llvm::Error KernelCalls::compile() {
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

void *KernelCalls::setting(size_t step, const KernelArg &arg) {
  std::vector<char> &bytes = settings[step][arg.name];
  if (!bytes.empty())
    return bytes.data();
  xf::SettingOp op;
  xf::LayerOp layer = program.steps[step].layer;
  for (xf::BlockOp block :
       {program.steps[step].block, program.steps[step].dual, program.steps[step].applied})
    if (block && !op)
      for (xf::SettingOp s : block.getBody().getOps<xf::SettingOp>())
        if (s.getName() == arg.name)
          op = s;
  llvm::SmallVector<double> numbers =
      xf::SettingOp::numbers(op.getType(), layer.getSettingValue(op));
  bool integer = isa<IndexType>(op.getType());
  bytes.resize(numbers.size() * (integer ? sizeof(int64_t) : sizeof(float)));
  for (auto [i, x] : llvm::enumerate(numbers))
    if (integer)
      reinterpret_cast<int64_t *>(bytes.data())[i] = int64_t(x);
    else
      reinterpret_cast<float *>(bytes.data())[i] = float(x);
  return bytes.data();
}

llvm::Expected<void *> KernelCalls::load(size_t step, const KernelArg &arg, const Patch &patch) {
  std::string stored = ProgramStep(program.steps[step]).layer.getStoredName(arg.name);
  Rows &numbers = loaded[stored + "#" + std::to_string(arg.index)];
  int64_t size = elementsOf(arg.type);
  numbers.assign(size, 0.0f); // a parameter that is not in the patch is unpatched
  for (const ParameterPatch &entry : patch.parameters) {
    if (entry.parameter != stored)
      continue;
    bool first = (arg.index == 0) != isTransposed(program.steps[step].block, arg.name);
    const std::vector<double> &part = entry.kind == ParameterPatch::Kind::Delta ? entry.delta
                                      : first                                   ? entry.u
                                                                                : entry.v;
    if (int64_t(part.size()) != size)
      return makeError(entry.parameter + ": the patch has " + llvm::Twine(part.size()) +
                       " numbers where the model's parameter needs " + llvm::Twine(size));
    std::copy(part.begin(), part.end(), numbers.begin());
  }
  return numbers.data();
}

llvm::Error KernelCalls::call(size_t step, xf::BlockOp block, Weights &weights, StepCall &call) {
  const Kernel &kernel = kernels[kernelName(block)];
  ProgramStep at = program.steps[step];
  std::vector<void *> arguments;
  std::vector<Rows> stores;
  std::vector<std::vector<const void *>> banks;
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
      auto data = weights.get(at.layer.getStoredName(arg.name),
                              RankedTensorType::get(type.getShape(), type.getElementType()));
      if (!data)
        return data.takeError();
      arguments.push_back(const_cast<void *>(*data));
      break;
    }
    case KernelArgKind::Bank: {
      auto slices = getSlices(weights, at.layer.getStoredName(arg.name), arg.stored);
      if (!slices)
        return slices.takeError();
      banks.push_back(std::move(*slices));
      arguments.push_back(banks.back().data());
      break;
    }
    case KernelArgKind::Setting:
      arguments.push_back(setting(step, arg));
      break;
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
  ctxc_call frame{
      call.rows,        {visible[0], visible[1]},
      arguments.data(), workspaceOf(kernel.workspace(call.rows, visible[0], visible[1])),
      parallelFor,      &threads};
  kernel.function(&frame);

  for (size_t i = 0; i + 1 < counts.size(); i += 2) {
    call.obligations.harmless += counts[i];
    call.obligations.harmful += counts[i + 1];
  }
  readStores(step, kernel, stores, call);
  return llvm::Error::success();
}

/// At least `bytes` of memory, aligned to 64.
void *KernelCalls::workspaceOf(int64_t bytes) {
  if (int64_t(workspace.size()) < bytes + 64)
    workspace.resize(bytes + 64);
  auto address = reinterpret_cast<uintptr_t>(workspace.data());
  return reinterpret_cast<void *>((address + 63) / 64 * 64);
}

void KernelCalls::readStores(size_t step, const Kernel &kernel, ArrayRef<Rows> parts,
                             StepCall &call) {
  ProgramStep at = program.steps[step];
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
