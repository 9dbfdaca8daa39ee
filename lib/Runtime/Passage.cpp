#include "ctxc/Runtime/Passage.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/KernelCalls.h"
#include "lib/Runtime/ParallelFor.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace ctxc;

StepKernels::StepKernels(const Program &program, const CompiledOptions &options)
    : program(program), threads(threadCount(options.threads)) {
  for (auto [i, step] : llvm::enumerate(program.steps))
    numbers[step.layer] = i;
}
StepKernels::~StepKernels() = default;

const ParallelFor &StepKernels::parallelFor() const { return calls->parallelFor(); }

llvm::Expected<std::unique_ptr<StepKernels>> StepKernels::compile(const Program &program,
                                                                  Weights &weights,
                                                                  const CompiledOptions &options,
                                                                  std::function<bool()> interrupt) {
  DialectRegistry registry;
  registerCodegenDialects(registry);
  ModuleOp module = program.module;
  module.getContext()->appendDialectRegistry(registry);
  module.getContext()->loadAllAvailableDialects();
  std::unique_ptr<StepKernels> made(new StepKernels(program, options));
  auto mayGoOn = [interrupt]() -> llvm::Error {
    if (interrupt && interrupt())
      return llvm::make_error<Cancelled>();
    return llvm::Error::success();
  };
  made->calls = std::make_unique<KernelCalls>(
      made->program, wholeStage(made->program), weights, options.prompts,
      options.parallelFor ? *options.parallelFor : ParallelFor{ctxc::parallelFor, &made->threads},
      mayGoOn);
  if (program.steps.empty())
    return made;
  if (llvm::Error error = made->calls->compile(made->threads))
    return std::move(error);
  return made;
}

llvm::Expected<std::vector<Rows>> StepKernels::call(size_t step, Weights &weights, int64_t rows,
                                                    ArrayRef<const Rows *> inputs) {
  const std::vector<int32_t> zeros(rows);
  StepCall frame;
  frame.rows = rows;
  frame.tokens = frame.positions = zeros;
  frame.inputs.assign(inputs.begin(), inputs.end());
  if (llvm::Error error = calls->call(step, program.steps[step].block, weights, frame))
    return std::move(error);
  return std::move(frame.outputs);
}

PassageCache::PassageCache(const StepKernels &kernels) : kernels(&kernels) {}
PassageCache::PassageCache(PassageCache &&) noexcept = default;
PassageCache::~PassageCache() = default;

size_t PassageCache::add(int64_t capacity) {
  runs.push_back(std::make_unique<CompiledRun>(capacity, kernels->program.steps.size()));
  return runs.size() - 1;
}

/// A run with the tokens of `past`, which may be null, but without what steps keep of them.
static std::unique_ptr<CompiledRun> followingRun(const CompiledRun *past, int64_t capacity,
                                                 size_t steps) {
  int64_t before = past ? past->count : 0;
  auto run = std::make_unique<CompiledRun>(before + capacity, steps);
  run->count = before;
  run->begin();
  if (past)
    std::copy_n(past->slots.begin(), before, run->slots.begin());
  return run;
}

size_t PassageCache::fork(size_t number, int64_t capacity) {
  const CompiledRun &past = *runs[number];
  auto run = followingRun(&past, capacity - past.count, past.steps.size());
  for (auto [copy, state] : llvm::zip_equal(run->steps, past.steps))
    copy = state.copy(past.count, capacity);
  runs.push_back(std::move(run));
  return runs.size() - 1;
}

void PassageCache::shrink(size_t count) { runs.resize(count); }
int64_t PassageCache::tokens(size_t number) const { return runs[number]->count; }

int64_t PassageCache::bytesPerToken(size_t number) const {
  int64_t bytes = 0;
  for (const StepState &step : runs[number]->steps)
    for (const SlotMemory &memory : step.memories)
      bytes += memory.bytesOfSlot;
  return bytes;
}

std::vector<Rows> PassageCache::rows(size_t number, size_t step) const {
  const CompiledRun &run = *runs[number];
  const StepState &state = run.steps[step];
  assert(state.first == 0 && "a later passage has moved a window's slots");
  std::vector<Rows> all;
  for (const SlotMemory &memory : state.memories) {
    Rows &rows = all.emplace_back(run.count * memory.bytesOfSlot / sizeof(float));
    const size_t width = memory.bytesOfGroup();
    auto *row = reinterpret_cast<char *>(rows.data());
    for (int64_t slot = 0; slot < run.count; ++slot)
      for (int64_t group = 0; group < memory.groups; ++group, row += width)
        std::memcpy(row, memory.bytes.data() + (group * memory.room() + slot) * width, width);
  }
  return all;
}

/// Whether each token leaves something of its own, which later ones see wherever they stand.
static llvm::Error checkPins(const Program &program) {
  for (ProgramStep step : program.steps) {
    Operation *other = nullptr;
    step.block.walk([&](xf::ContextualOpInterface op) {
      if (!isa<xf::AttentionOp>(op))
        other = op;
    });
    if (other)
      return makeError(
          "'" + other->getName().getStringRef() +
          "' does not keep tokens one by one, so that neither some of them nor entries "
          "in their place can stand alone; keep tokens as text");
  }
  return llvm::Error::success();
}

/// The position behind a sequence.
static int64_t endOf(const PassageSequence &sequence) {
  return sequence.entries ? sequence.entries->count() : sequence.positions.back() + 1;
}

llvm::Expected<Passage> Passage::start(StepKernels &kernels, Weights &weights,
                                       std::vector<PassageSequence> sequences,
                                       PassageCache *cache) {
  const Program &program = kernels.program;
  if (isBidirectional(program))
    return makeError("tokens of this model see those behind them; its sequences cannot be run one "
                     "after the other");
  Passage passage(kernels, weights);
  passage.cache = cache;
  for (const PassageSequence &sequence : sequences) {
    if (sequence.entries) {
      if (llvm::Error error = checkPins(program))
        return std::move(error);
      passage.first.push_back(passage.ids.size());
      passage.held.push_back(0);
      continue;
    }
    int64_t last = -1;
    if (sequence.after)
      last = endOf(sequences[*sequence.after]) - 1;
    else if (!sequence.positions.empty())
      last = std::min<int64_t>(sequence.positions.front(), 0) - 1;
    int64_t held = 0, capacity = sequence.tokens.size();
    if (sequence.cached) {
      const CompiledRun &run = *cache->runs[*sequence.cached];
      last = run.last();
      held = run.count;
      capacity = run.capacity;
    }
    std::vector<Input> inputs = toInputs(sequence.tokens);
    if (llvm::Error error = checkStep(program, held, last, capacity, inputs, sequence.positions))
      return std::move(error);
    if (llvm::Error error = checkIds(program, inputs, sequence.positions))
      return std::move(error);
    passage.first.push_back(passage.ids.size());
    passage.held.push_back(held);
    passage.ids.insert(passage.ids.end(), sequence.tokens.begin(), sequence.tokens.end());
    passage.positions.insert(passage.positions.end(), sequence.positions.begin(),
                             sequence.positions.end());
  }
  passage.first.push_back(passage.ids.size());
  passage.sequences = std::move(sequences);
  return passage;
}

/// The rows of `all`, of `count` rows, from `from` on.
static Rows sliceRows(const Rows &all, int64_t count, int64_t from, int64_t size) {
  int64_t width = all.size() / count;
  return Rows(all.begin() + from * width, all.begin() + (from + size) * width);
}

/// Puts the entries of a step's attentions where those keep what they have read.
llvm::Error Passage::fillWithEntries(size_t step, const VirtualEntries &entries,
                                     CompiledRun &run) const {
  const int64_t count = entries.count();
  size_t attention = 0, operand = 0;
  for (size_t before = 0; before < step; ++before)
    kernels->program.steps[before].block.walk([&](xf::AttentionOp) { ++attention; });
  std::iota(run.slots.begin(), run.slots.begin() + count, 0);
  StepState &state = run.steps[step];
  state.makeRoom(0, count, run.capacity);
  auto fill = [&](const std::vector<float> &numbers, int64_t heads, int64_t width) {
    const size_t bytes = width * sizeof(float);
    char *memory = state.memory(operand++, heads * bytes, heads);
    for (int64_t head = 0; head < heads; ++head)
      std::memcpy(memory + head * state.room * bytes, numbers.data() + head * count * width,
                  count * bytes);
  };
  for (xf::AttentionOp op :
       kernels->program.steps[step].block.getBody().getOps<xf::AttentionOp>()) {
    ArrayRef<int64_t> key = op.getKey().getType().getShape(),
                      value = op.getValue().getType().getShape();
    const KeysAndValues *own =
        attention < entries.attentions.size() ? &entries.attentions[attention] : nullptr;
    ++attention;
    auto shape = [&](int64_t heads, int64_t tokens, int64_t keyWidth, int64_t valueWidth) {
      return llvm::formatv("{0} heads of {1} entries with keys of {2} numbers and values of {3}",
                           heads, tokens, keyWidth, valueWidth)
          .str();
    };
    std::string expected = shape(key[0], count, key[1], value[1]),
                found = own ? shape(own->heads, own->tokens, own->keyWidth, own->valueWidth)
                            : "no entries";
    if (found != expected)
      return makeError("attention " + llvm::Twine(attention) + " is given " + found +
                       ", expected " + expected + ", as the model's attention has");
    fill(own->keys, key[0], key[1]);
    fill(own->values, key[0], value[1]);
  }
  run.count = count;
  return llvm::Error::success();
}

/// Each sequence by itself, with a copy of what the one that it continues has left of this step, or
/// in the cache.
llvm::Error Passage::runContextual(size_t step) {
  ProgramStep &at = kernels->program.steps[step];
  std::vector<std::unique_ptr<CompiledRun>> owned(sequences.size());
  std::vector<CompiledRun *> runs;
  auto outputs = llvm::to_vector(at.layer.getOutputs());
  std::vector<Rows> results(outputs.size());
  for (auto [i, sequence] : llvm::enumerate(sequences)) {
    const int64_t size = sequence.entries ? sequence.entries->count() : sequence.tokens.size();
    if (sequence.cached) {
      runs.push_back(cache->runs[*sequence.cached].get());
      runs[i]->count = held[i];
      runs[i]->begin();
    } else {
      const CompiledRun *past = sequence.after ? runs[*sequence.after] : nullptr;
      owned[i] = followingRun(past, size, kernels->program.steps.size());
      runs.push_back(owned[i].get());
      if (past)
        runs[i]->steps[step] = past->steps[step].copy(past->count, runs[i]->capacity);
    }
    CompiledRun *run = runs[i];
    if (sequence.entries) {
      if (llvm::Error error = fillWithEntries(step, *sequence.entries, *run))
        return error;
      continue;
    }
    std::copy_n(positions.begin() + first[i], size, run->slots.begin() + run->count);
    StepCall frame;
    frame.rows = size;
    frame.tokens = ArrayRef(ids).slice(first[i], size);
    frame.positions = ArrayRef(positions).slice(first[i], size);
    frame.runs[0] = run;
    std::vector<Rows> inputs;
    inputs.reserve(at.layer.getInputs().size());
    for (Value input : at.layer.getInputs())
      inputs.push_back(sliceRows(known.find(input)->second, rows(), first[i], size));
    for (const Rows &input : inputs)
      frame.inputs.push_back(&input);
    if (llvm::Error error = kernels->calls->call(step, at.block, *weights, frame))
      return error;
    for (auto [all, some] : llvm::zip(results, frame.outputs))
      all.insert(all.end(), some.begin(), some.end());
    run->count += size;
  }
  for (auto [value, numbers] : llvm::zip(outputs, results))
    known[value] = std::move(numbers);
  return llvm::Error::success();
}

/// The values of pinned tokens are not those that the step has computed, but the given ones.
void Passage::pinOutputs(size_t step) {
  for (auto [i, sequence] : llvm::enumerate(sequences)) {
    if (!sequence.pinned)
      continue;
    for (Value output : kernels->program.steps[step].layer.getOutputs()) {
      auto pinned = sequence.pinned->values.find(output);
      Rows &all = known.find(output)->second;
      if (pinned != sequence.pinned->values.end())
        llvm::copy(pinned->second, all.begin() + first[i] * (all.size() / rows()));
    }
  }
}

llvm::Expected<PinnedTokens> Passage::pin(StepKernels &kernels, Weights &weights,
                                          ArrayRef<int64_t> text, ArrayRef<int64_t> places) {
  if (llvm::Error error = checkPins(kernels.program))
    return std::move(error);
  PinnedTokens pinned;
  pinned.end = text.size();
  for (int64_t place : places) {
    pinned.tokens.push_back(text[place]);
    pinned.positions.push_back(place);
  }
  auto positions = llvm::to_vector_of<int64_t>(llvm::seq<int64_t>(0, text.size()));
  auto passage = start(kernels, weights, {{text.vec(), {positions.begin(), positions.end()}}});
  if (!passage)
    return passage.takeError();
  ArrayRef<ProgramStep> steps = kernels.program.steps;
  for (size_t i = 0, end = kernels.program.head().value_or(steps.size()); i < end; ++i) {
    if (llvm::Error error = passage->run(i))
      return std::move(error);
    ProgramStep step = steps[i];
    for (Value output : step.layer.getOutputs())
      for (int64_t place : places)
        llvm::append_range(pinned.values[output],
                           sliceRows(passage->values(output), text.size(), place, 1));
  }
  return std::move(pinned);
}

llvm::Error Passage::run(size_t step) {
  ProgramStep &at = kernels->program.steps[step];
  if (step > 0 && step == next)
    for (Value input : kernels->program.steps[step - 1].layer.getInputs())
      freeUnread(input, step - 1);
  next = step + 1;
  if (readsContext(at.block)) {
    if (llvm::Error error = runContextual(step))
      return error;
    pinOutputs(step);
    return llvm::Error::success();
  }
  if (rows() == 0) { // entries alone
    for (Value output : at.layer.getOutputs())
      known[output] = {};
    return llvm::Error::success();
  }
  StepCall frame;
  frame.rows = rows();
  frame.tokens = ids;
  frame.positions = positions;
  for (Value output : at.layer.getOutputs())
    frame.outputs.push_back(std::move(known[output])); // before any address of a value is taken
  for (Value input : at.layer.getInputs())
    frame.inputs.push_back(&known.find(input)->second);
  if (llvm::Error error = kernels->calls->call(step, at.block, *weights, frame))
    return error;
  for (auto [value, numbers] : llvm::zip(at.layer.getOutputs(), frame.outputs))
    known[value] = std::move(numbers);
  pinOutputs(step);
  return llvm::Error::success();
}

llvm::Error Passage::runUpTo(size_t end) {
  while (next < end)
    if (llvm::Error error = run(next))
      return error;
  return llvm::Error::success();
}

/// Frees `value` where no step behind `after` reads it, and nobody keeps it.
void Passage::freeUnread(Value value, size_t after) {
  bool isRead = llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto number = kernels->numbers.find(user);
    return number != kernels->numbers.end() && number->second > after;
  });
  if (!isRead && !kept.contains(value))
    known.erase(value);
}

void Passage::release(Value value) {
  kept.erase(value);
  if (next > 1)
    freeUnread(value, next - 2); // the last step may be repeated
}

llvm::Expected<Rows> Passage::logits(ArrayRef<int64_t> wanted) {
  std::optional<size_t> head = kernels->program.head();
  if (!head)
    return makeError("the model has no head that gives each token's logits by itself");
  std::vector<Rows> inputs;
  std::vector<const Rows *> pointers;
  xf::LayerOp layer = kernels->program.steps[*head].layer;
  for (Value input : layer.getInputs()) {
    const Rows &all = known.find(input)->second;
    size_t width = all.size() / rows();
    Rows &some = inputs.emplace_back();
    for (int64_t row : wanted)
      some.insert(some.end(), all.begin() + row * width, all.begin() + (row + 1) * width);
  }
  for (const Rows &input : inputs)
    pointers.push_back(&input);
  auto made = kernels->call(*head, *weights, wanted.size(), pointers);
  if (!made)
    return made.takeError();
  return std::move(made->front());
}
