#include "lib/Runtime/KernelCalls.h"
#include "ctxc/Lowering/ReadingsCache.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Program/TokenKernels.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Memory.h"
#include "lib/Runtime/ParallelFor.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace ctxc;

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

llvm::Error KernelCalls::compile(int threadCount) {
  target.readings = ReadingsCache::ofUser().find(target, threadCount).value_or(target.readings);
  settings.resize(program.steps.size());
  for (ProgramStep step : program.steps)
    windows.push_back(windowOf(step));
  Program part = program;
  part.steps.assign(program.steps.begin() + stage.first, program.steps.begin() + stage.end);
  if (llvm::Error error = compile(kernelBlocks(part)))
    return error;
  return copyParts();
}

llvm::Error KernelCalls::compile(ArrayRef<xf::BlockOp> blocks, bool alone) {
  if (prompts == PromptProducts::Split && !target.tiles)
    return makeError("split prompts need tile registers for bfloat16 (amx_bf16), which this "
                     "processor lacks or the system does not give; read prompts without them");
  if (prompts == PromptProducts::Rounded && !target.bfloatPairs)
    return makeError("this processor has no instruction for pairs of bfloat16 (avx512_bf16, or "
                     "bf16 of AArch64): "
                     "prompts are read as fast without rounding");
  std::vector<OwningOpRef<xf::BlockOp>> clones;
  std::vector<OwningOpRef<ModuleOp>> owned;
  SmallVector<ModuleOp> modules;
  std::vector<std::pair<std::string, Kernel>> made; // in the order of `all`
  std::vector<std::pair<xf::BlockOp, bool>> all;    // and whether it reads prompts
  for (xf::BlockOp asked : blocks)
    for (xf::BlockOp block : compiledFor(asked))
      all.push_back({block, readsPrompts(program, asked)});
  for (auto [asked, isOfPrompts] : all) {
    xf::BlockOp block = asked;
    if (alone) {
      block = asked.clone();
      clones.emplace_back(block);
      block.setSymName((asked.getSymName() + "_alone").str());
      block.walk([](xf::AttentionOp attention) { kernel::mark<kernel::Alone>(attention); });
    }
    FailureOr<OwningOpRef<ModuleOp>> module =
        buildKernelModule(block, "ctxc", StateLayout::ByGroup);
    if (failed(module))
      return makeError("the model has no compiled form; the reference engine runs it");
    std::string name = kernelName(block);
    auto function = (*module)->lookupSymbol<func::FuncOp>(name);
    if (isOfPrompts)
      markProducts(function, prompts);
    modules.push_back(**module);
    owned.push_back(std::move(*module));
    made.push_back({name, {nullptr, nullptr, kernelArguments(function)}});
  }
  auto objects = compileKernels(modules, target, KernelCache::ofUser(),
                                [&] { return llvm::errorToBool(mayGoOn()); });
  if (!objects)
    return objects.takeError();
  auto loaded = KernelLibrary::load(std::move(*objects));
  if (!loaded)
    return loaded.takeError();
  libraries.push_back(std::move(*loaded));
  for (auto &[name, kernel] : made) {
    auto function = libraries.back()->kernel(name);
    if (!function)
      return function.takeError();
    auto size = libraries.back()->workspace(name);
    if (!size)
      return size.takeError();
    kernel.function = *function;
    kernel.workspace = *size;
  }
  for (auto [block, kernel] : llvm::zip(llvm::make_first_range(all), llvm::make_second_range(made)))
    kernels[{block, alone}] = std::move(kernel);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------===//

void *KernelCalls::setting(size_t step, const KernelArg &arg) {
  std::vector<char> &bytes = settings[step][arg.name];
  if (bytes.empty())
    bytes = settingBytes(program.steps[step], arg.name);
  return bytes.data();
}

llvm::Expected<KernelCalls::Binding> KernelCalls::bind(size_t step, const Kernel &kernel,
                                                       Weights &weights,
                                                       const shard::LocalBlock *local) {
  xf::LayerOp layer = program.steps[step].layer;
  Binding binding;
  for (const KernelArg &arg : kernel.args) {
    void *argument = nullptr;
    if (local && local->sources.count(arg.name)) {
      const shard::LocalSource &source = local->sources.find(arg.name)->second;
      if (llvm::Error error = bindPart(step, arg, source, weights, binding))
        return std::move(error);
      continue;
    }
    if (arg.kind == KernelArgKind::Param) {
      auto type = cast<MemRefType>(arg.type);
      auto stored =
          arg.stored ? arg.stored : RankedTensorType::get(type.getShape(), type.getElementType());
      auto data = weights.get(layer.getStoredName(arg.name), stored);
      if (!data)
        return data.takeError();
      argument = const_cast<void *>(*data);
    } else if (arg.kind == KernelArgKind::Bank) {
      auto slices = getSlices(weights, layer.getStoredName(arg.name), arg.stored);
      if (!slices)
        return slices.takeError();
      binding.banks.push_back(std::move(*slices));
      argument = binding.banks.back().data();
    } else if (arg.kind == KernelArgKind::Setting) {
      argument = setting(step, arg);
    }
    binding.arguments.push_back(argument);
  }
  return binding;
}

std::vector<int32_t> ctxc::kernelIds(ArrayRef<Input> inputs) {
  std::vector<int32_t> ids;
  for (const Input &input : inputs)
    ids.push_back(input.isEmbedding() ? 0 : int32_t(input.token()));
  return ids;
}

/// The first step where some inputs are embeddings: one call for these and one for the tokens, and
/// the results put in order.
llvm::Error KernelCalls::embed(size_t step, Weights &weights, StepCall &call) {
  ProgramStep at = program.steps[step];
  if (!kernels.count({at.ofEmbedding, false}))
    if (llvm::Error error = compile(at.ofEmbedding))
      return error;
  ArrayRef<Input> given = call.given;
  call.outputs.resize(at.block.getNumResults());
  for (bool ofEmbeddings : {false, true}) {
    std::vector<size_t> places;
    std::vector<int32_t> ids, positions;
    Rows numbers;
    for (auto [i, input] : llvm::enumerate(given)) {
      if (input.isEmbedding() != ofEmbeddings)
        continue;
      places.push_back(i);
      ids.push_back(call.tokens[i]);
      positions.push_back(call.positions[i]);
      numbers.insert(numbers.end(), input.embedding().begin(), input.embedding().end());
    }
    if (places.empty())
      continue;
    StepCall part;
    part.rows = places.size();
    part.tokens = ids;
    part.positions = positions;
    if (ofEmbeddings)
      part.inputs.push_back(&numbers);
    if (llvm::Error error =
            this->call(step, ofEmbeddings ? at.ofEmbedding : at.block, weights, part))
      return error;
    for (auto [whole, some] : llvm::zip(call.outputs, part.outputs)) {
      size_t width = some.size() / places.size();
      whole.resize(width * given.size());
      for (auto [i, place] : llvm::enumerate(places))
        std::copy_n(some.begin() + i * width, width, whole.begin() + place * width);
    }
  }
  call.obligations.assign(call.rows, LayerObligations());
  return llvm::Error::success();
}

llvm::Expected<const PatchArgs *> KernelCalls::patchArgs(size_t step, xf::BlockOp block) {
  auto found = patches.find({step, block});
  if (found == patches.end()) {
    auto made = ctxc::patchArgs(program.steps[step], patchArguments(block));
    if (!made)
      return made.takeError();
    found = patches.try_emplace({step, block}, std::move(*made)).first;
  }
  return &found->second;
}

std::array<int64_t, 2> KernelCalls::makeRoom(size_t step, StepCall &call) {
  std::array<int64_t, 2> visible = {0, 0};
  for (int which : {0, 1})
    if (CompiledRun *run = call.runs[which]) {
      int64_t rows = which == 0 ? call.rows : 1;
      StepState &state = run->steps[step];
      if (run->keeps() == Keeps::Seen)
        state.window = windows[step];
      state.makeRoom(run->count, rows, run->capacity);
      visible[which] = run->count + rows - state.first;
    }
  return visible;
}

/// What a recurrence carries to the rows of a call, or on from them.
float *KernelCalls::carriedMemory(size_t step, const KernelArg &arg, StepCall &call,
                                  Progress &progress) {
  CompiledRun &run = *call.runs[arg.run];
  StepState &state = run.steps[step];
  std::optional<std::pair<size_t, size_t>> &places = progress.carried[arg.run];
  if (!places) // the reduced run of a dual block carries nothing on
    places = arg.run == 0 ? state.carry(run.count, call.rows, run.held)
                          : std::pair(state.carriedFrom(run.count), size_t(0));
  size_t &next = progress.recurrence[arg.run];
  return arg.kind == KernelArgKind::Before
             ? state.memoryOf(places->first, next++, elementsOf(arg.type))
             : state.memoryOf(places->second, next - 1, elementsOf(arg.type));
}

/// Sets the arguments that change from call to call.
void KernelCalls::setArguments(size_t step, const Kernel &kernel, StepCall &call,
                               Progress &progress) {
  std::vector<Rows> &parts = call.parts ? *call.parts : stores;
  counts.clear();

  for (auto [i, arg] : llvm::enumerate(kernel.args)) {
    void *&argument = arguments[i];
    switch (arg.kind) {
    case KernelArgKind::Positions:
      argument = const_cast<int32_t *>(call.positions.data());
      break;
    case KernelArgKind::Tokens:
      argument = const_cast<int32_t *>(call.tokens.data());
      break;
    case KernelArgKind::Input:
      argument = const_cast<float *>(call.inputs[arg.index]->data());
      break;
    case KernelArgKind::Output:
      call.outputs[arg.index].resize(call.rows * elementsOf(arg.type));
      argument = call.outputs[arg.index].data();
      break;
    case KernelArgKind::Param:
    case KernelArgKind::Bank:
    case KernelArgKind::Setting:
      break;
    case KernelArgKind::State: {
      StepState &state = call.runs[arg.run]->steps[step];
      argument = state.memory(progress.state[arg.run]++, bytesOfSlot(arg), groupsOfState(arg));
      break;
    }
    case KernelArgKind::Room:
      argument = &call.runs[arg.run]->steps[step].room;
      break;
    case KernelArgKind::Before:
    case KernelArgKind::After:
      argument = carriedMemory(step, arg, call, progress);
      break;
    case KernelArgKind::Slots: {
      CompiledRun &run = *call.runs[arg.run];
      argument = run.slots.data() + run.steps[step].first;
      break;
    }
    case KernelArgKind::Store:
      if (parts.size() <= progress.part)
        parts.resize(progress.part + 1);
      parts[progress.part].resize(call.rows * elementsOf(arg.type));
      argument = parts[progress.part++].data();
      break;
    case KernelArgKind::Load:
      argument = progress.local ? loadedPart(arg, progress) : loaded[progress.load++].data();
      break;
    case KernelArgKind::Counts:
      counts.assign(call.rows * elementsOf(arg.type), 0);
      argument = counts.data();
      break;
    case KernelArgKind::Replay:
      call.replayError.resize(call.rows);
      argument = call.replayError.data();
      break;
    }
  }
}

llvm::Error KernelCalls::call(size_t step, xf::BlockOp block, Weights &weights, StepCall &call) {
  if (llvm::Error error = mayGoOn())
    return error;
  ProgramStep at = program.steps[step];
  if (at.ofEmbedding && block == at.block && hasEmbeddings(call.given))
    return embed(step, weights, call);
  if (call.alone && !kernels.count({compiledFor(block).front(), true}))
    if (llvm::Error error = compile(block, /*alone=*/true))
      return error;
  call.outputs.resize(block.getNumResults());
  call.obligations.assign(call.rows, LayerObligations());
  if (call.loads) {
    auto args = patchArgs(step, block);
    if (!args)
      return args.takeError();
    if (llvm::Error error = loadParts((*args)->loads, *call.loads, loaded))
      return error;
  }
  Progress progress;
  progress.local = localOf(block);
  llvm::Error error = progress.local
                          ? runSegments(step, block, *progress.local, weights, call)
                          : run(step, kernels.at({block, call.alone}), weights, call, progress);
  if (error || call.parts)
    return error;
  return readParts(step, block, stores, 0, call.stores);
}

llvm::Error KernelCalls::run(size_t step, const Kernel &kernel, Weights &weights, StepCall &call,
                             Progress &progress) {
  auto found = bindings.find({step, &kernel});
  Binding changed; // for weights other than the original ones
  if (&weights != &original || found == bindings.end()) {
    llvm::Expected<Binding> made = bind(step, kernel, weights, progress.local);
    if (!made)
      return made.takeError();
    if (&weights == &original)
      found = bindings.try_emplace({step, &kernel}, std::move(*made)).first;
    else
      changed = std::move(*made);
  }
  arguments = (&weights == &original ? found->second : changed).arguments;
  const std::array<int64_t, 2> visible = makeRoom(step, call);
  setArguments(step, kernel, call, progress);
  int64_t bytes = kernel.workspace(call.rows, visible[0], visible[1]);
  void *memory = workspace.take(bytes);
  if (!memory)
    return makeError("there is no memory for the " + llvm::Twine(bytes) +
                     " bytes in which a kernel computes " + llvm::Twine(call.rows) +
                     " tokens; free some, or shorten the context");
  ctxc_call frame{call.rows,   {visible[0], visible[1]}, arguments.data(), memory,
                  threads.run, threads.context};
  kernel.function(&frame);

  for (size_t i = 0, each = counts.size() / call.rows; i + 1 < counts.size(); i += 2) {
    call.obligations[i / each].harmless += counts[i];
    call.obligations[i / each].harmful += counts[i + 1];
  }
  return llvm::Error::success();
}

llvm::Error KernelCalls::readParts(size_t step, xf::BlockOp block, ArrayRef<Rows> rows, int64_t row,
                                   Patch &patch) {
  auto args = patchArgs(step, block);
  return args ? ctxc::readParts((*args)->stores, rows, row, patch) : args.takeError();
}

int64_t KernelCalls::partsSize(xf::BlockOp block) {
  int64_t size = 0;
  for (const KernelArg &arg : patchArguments(block))
    if (arg.kind == KernelArgKind::Store)
      size += elementsOf(arg.type);
  return size;
}
