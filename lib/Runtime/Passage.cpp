#include "ctxc/Runtime/Passage.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/CompiledExecutor.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace ctxc;

StepKernels::StepKernels(const Program &program, std::unique_ptr<Executor> elsewhere,
                         const CompiledOptions &options)
    : program(program), threads(threadCount(options.threads)),
      ownThreads(options.parallelFor ? *options.parallelFor
                                     : ParallelFor{ctxc::parallelFor, &threads}),
      executor(std::move(elsewhere)) {
  for (auto [i, step] : llvm::enumerate(program.steps))
    numbers[step.layer] = i;
}
StepKernels::~StepKernels() = default;

KernelCalls *StepKernels::calls() const { return local ? &local->calls() : nullptr; }

llvm::Expected<std::unique_ptr<StepKernels>>
StepKernels::compile(const Program &program, Weights &weights, const CompiledOptions &options) {
  auto made = std::make_unique<StepKernels>(program, nullptr, options);
  if (program.steps.empty())
    return made;
  if (llvm::Error error =
          createCompiledExecutor(program, weights, options).moveInto(made->executor))
    return std::move(error);
  made->local = static_cast<CompiledExecutor *>(made->executor.get());
  return made;
}

llvm::Expected<std::vector<Rows>> StepKernels::call(size_t step, Weights &weights, int64_t rows,
                                                    ArrayRef<const Rows *> inputs) {
  const std::vector<int32_t> zeros(rows);
  std::vector<Rows> outputs;
  if (llvm::Error error = executor->runStep(
          {step, zeros, zeros, {inputs.begin(), inputs.end()}, &weights}, nullptr, outputs))
    return std::move(error);
  return std::move(outputs);
}

PassageCache::PassageCache(const StepKernels &kernels) : kernels(&kernels) {}

size_t PassageCache::add(int64_t capacity) {
  all.push_back({kernels->executor->start(capacity), capacity});
  return all.size() - 1;
}

llvm::Expected<size_t> PassageCache::fork(size_t number, int64_t capacity) {
  auto run = kernels->executor->copy(*all[number].run, capacity);
  if (!run)
    return run.takeError();
  all.push_back({std::move(*run), capacity, all[number].last});
  return all.size() - 1;
}

void PassageCache::shrink(size_t count) { all.resize(count); }

int64_t PassageCache::bytesPerToken(size_t number) const {
  assert(kernels->local && "an executor elsewhere keeps them");
  int64_t bytes = 0;
  for (const StepState &step : static_cast<const CompiledRun &>(*all[number].run).steps)
    for (const SlotMemory &memory : step.memories)
      bytes += memory.bytesOfSlot;
  return bytes;
}

std::vector<Rows> PassageCache::rows(size_t number, size_t step) const {
  assert(kernels->local && "an executor elsewhere keeps them");
  const auto &run = static_cast<const CompiledRun &>(*this->all[number].run);
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
      const PassageCache::Sequence &kept = cache->all[*sequence.cached];
      last = kept.last;
      held = kept.run->size();
      capacity = kept.capacity;
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
                                     Run &opaque) const {
  if (!kernels->local)
    return makeError("virtual entries are read by kernels of this processor alone");
  auto &run = static_cast<CompiledRun &>(opaque);
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

/// A run for one step of a sequence that is in no cache: with what the one that it continues has
/// left of this step.
llvm::Expected<std::unique_ptr<Run>> Passage::startRun(const PassageSequence &sequence,
                                                       ArrayRef<Run *> runs) const {
  const int64_t size = sequence.entries ? sequence.entries->count() : sequence.tokens.size();
  if (!sequence.after)
    return kernels->executor->start(size);
  const Run &past = *runs[*sequence.after];
  return kernels->executor->copy(past, past.size() + size);
}

/// Each sequence by itself.
llvm::Error Passage::runContextual(size_t step) {
  ProgramStep &at = kernels->program.steps[step];
  std::vector<std::unique_ptr<Run>> owned(sequences.size());
  std::vector<Run *> runs;
  auto outputs = llvm::to_vector(at.layer.getOutputs());
  std::vector<Rows> results(outputs.size()), some;
  for (auto [i, sequence] : llvm::enumerate(sequences)) {
    if (sequence.cached) {
      PassageCache::Sequence &kept = cache->all[*sequence.cached];
      kept.last = endOf(sequence) - 1;
      kept.run->truncate(held[i]);
      runs.push_back(kept.run.get());
    } else {
      if (llvm::Error error = startRun(sequence, runs).moveInto(owned[i]))
        return error;
      runs.push_back(owned[i].get());
    }
    if (sequence.entries) {
      if (llvm::Error error = fillWithEntries(step, *sequence.entries, *runs[i]))
        return error;
      continue;
    }
    const int64_t size = sequence.tokens.size();
    std::vector<Rows> inputs;
    inputs.reserve(at.layer.getInputs().size());
    for (Value input : at.layer.getInputs())
      inputs.push_back(sliceRows(known.find(input)->second, rows(), first[i], size));
    StepRows given = rowsOf(step, first[i], size);
    for (const Rows &input : inputs)
      given.inputs.push_back(&input);
    if (llvm::Error error = kernels->executor->runStep(given, runs[i], some))
      return error;
    for (auto [all, own] : llvm::zip(results, some))
      all.insert(all.end(), own.begin(), own.end());
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

/// `count` of the rows, without their inputs.
StepRows Passage::rowsOf(size_t step, int64_t from, int64_t count) const {
  return {
      step, ArrayRef(ids).slice(from, count), ArrayRef(positions).slice(from, count), {}, weights};
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
  std::vector<Rows> outputs;
  for (Value output : at.layer.getOutputs())
    outputs.push_back(std::move(known[output])); // before any address of a value is taken
  StepRows given = rowsOf(step, 0, rows());
  for (Value input : at.layer.getInputs())
    given.inputs.push_back(&known.find(input)->second);
  if (llvm::Error error = kernels->executor->runStep(given, nullptr, outputs))
    return error;
  for (auto [value, numbers] : llvm::zip(at.layer.getOutputs(), outputs))
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
