#include "lib/Runtime/GPU/GpuPrompts.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Program/TokenKernels.h"

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

/// Chunks of fewer tokens than this are not faster than running token by token.
static constexpr int64_t fewestRows = 8;

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

GpuProgram &GpuPrompts::programOf(int64_t rows) {
  auto &program = programs[rows];
  if (!program)
    program = std::make_unique<GpuProgram>(store, rows, "ctxc_rows" + std::to_string(rows),
                                           roundsPrompts);
  return *program;
}

static bool fits(const MemoryNeed &need, const Device &device) {
  size_t has = device.memory();
  return need.bytes <= has - has / 16 && need.largest <= device.largestBuffer();
}

/// On every rank's device, where several share the layers: all run the same chunks.
Expected<bool> GpuPrompts::fitsAll(const MemoryNeed &need) {
  const bool mine = fits(need, *store.device);
  return store.ranks ? store.ranks->all(mine) : mine;
}

Expected<RecordedChunk *> GpuPrompts::choose(MutableArrayRef<RecordedChunk> shortAndLong,
                                             ArrayRef<StepKernel> kernels, int64_t left) {
  // Chunks of both sizes need room for less than `fewer` tokens of padding.
  const bool isLong = fewer < most && int64_t(llvm::divideCeil(left, fewer)) * fewer >= most;
  for (bool takesLong : {true, false}) {
    if (takesLong && !isLong)
      continue;
    RecordedChunk &chunk = shortAndLong[takesLong];
    if (!chunk.isKnown)
      if (Error error = takesLong ? recordChunk(chunk, kernels, most, 2 * fewer)
                                  : recordChunk(chunk, kernels, fewer, fewestRows)) {
        chunk = RecordedChunk();
        return std::move(error);
      }
    if (chunk.program)
      return &chunk;
  }
  return nullptr;
}

/// Records a chunk of `rows` tokens, or of the most from `least` on for which there is memory.
Error GpuPrompts::recordChunk(RecordedChunk &chunk, ArrayRef<StepKernel> kernels, int64_t rows,
                              int64_t least) {
  chunk.isKnown = true;
  SmallVector<xf::BlockOp> blocks;
  for (const StepKernel &at : kernels)
    if (!llvm::is_contained(blocks, at.block))
      blocks.push_back(at.block);
  least = std::min(rows, least);
  while (rows >= least) {
    GpuProgram &program = programOf(rows);
    if (Error error = program.compile(blocks))
      return error;
    for (xf::BlockOp block : blocks)
      if (Error error = program.check(block)) {
        llvm::consumeError(std::move(error));
        return Error::success();
      }
    MemoryNeed need = program.needOf(kernels);
    Expected<bool> isEnough = fitsAll(need);
    if (!isEnough)
      return isEnough.takeError();
    if (*isEnough) {
      if (Error error = program.record(kernels, chunk.steps))
        return error;
      chunk.program = &program;
      return Error::success();
    }
    // Memory shrinks about in proportion to the rows; the compiled kernels are counted again.
    do {
      rows /= 2;
      need = {need.bytes / 2, need.largest / 2};
      isEnough = fitsAll(need);
      if (!isEnough)
        return isEnough.takeError();
    } while (rows > least && !*isEnough);
  }
  return Error::success();
}

Expected<RecordedChunk *> GpuPrompts::forward(GpuRun &run, bool isPatched, int64_t left) {
  if (most == 1)
    return nullptr;
  SmallVector<StepKernel> kernels;
  for (const TokenKernel &each : forwardKernels(store.program, isPatched, /*withHead=*/false))
    if (store.stage.has(each.step))
      kernels.push_back({each.step, each.block, 0, {&run, nullptr}});
  return choose(run.chunk[isPatched], kernels, left);
}

Expected<RecordedChunk *> GpuPrompts::patch(GpuRun &full, GpuRun &reduced, int64_t startLayer,
                                            int64_t left) {
  if (most == 1)
    return nullptr;
  SmallVector<StepKernel> kernels;
  GpuRun *runs[2] = {&full, &reduced};
  for (const TokenKernel &each : patchKernels(store.program, startLayer)) {
    if (store.program.head() == each.step || !store.stage.has(each.step))
      continue;
    bool isDual = each.block == store.program.steps[each.step].dual;
    if (!isDual && each.run == 1 && readsContext(each.block))
      return nullptr;
    kernels.push_back({each.step,
                       each.block,
                       each.run,
                       {isDual ? &full : runs[each.run], isDual ? &reduced : nullptr}});
  }
  return choose(full.patchChunk[{reduced.id, startLayer}], kernels, left);
}

//===----------------------------------------------------------------------===//
// The head
//===----------------------------------------------------------------------===//

/// How many tokens' logits fit in the bounded memory, a power of two.
static int64_t headRows(const Program &program, const Device &device) {
  const size_t most = std::min(size_t(64) << 20, device.largestBuffer());
  int64_t rows = 32;
  while (rows > 1 && rows * program.vocabulary * sizeof(float) > most)
    rows /= 2;
  return rows;
}

GpuHead::GpuHead(GpuStore &store, GpuProgram &one)
    : store(store), one(one), many(store, headRows(store.program, *store.device), "ctxc_head"),
      none(store.device, -1, 1, 0, 1, {}) {}

Error GpuHead::add(GpuProgram &program, RecordedSteps &record, ArrayRef<Rows> inputs, int64_t from,
                   int64_t count, Rows &logits) {
  size_t head = *store.program.head();
  ProgramStep step = store.program.steps[head];
  if (!record.isRecorded())
    if (Error error = program.record(StepKernel{head, step.block, 0, {&none, nullptr}}, record))
      return error;
  for (auto [input, numbers] : llvm::zip(step.layer.getInputs(), inputs)) {
    size_t width = cast<ShapedType>(input.getType()).getNumElements();
    if (Error error =
            program.setValue(input, 0, ArrayRef(numbers).slice(from * width, count * width)))
      return error;
  }
  if (Error error = program.run(record))
    return error;
  Value result = store.program.logits();
  auto numbers = program.value(result, 0, 0, count);
  if (!numbers)
    return numbers.takeError();
  llvm::append_range(logits, *numbers);
  return Error::success();
}

Expected<Rows> GpuHead::logitsOf(ArrayRef<Rows> inputs, int64_t count) {
  Rows logits;
  bool byMany = count >= GpuPrompts::kShortest && many.rows > 1;
  if (byMany) {
    xf::BlockOp block = store.program.steps[*store.program.head()].block;
    if (Error error = many.compile(block))
      return std::move(error);
    if (Error error = many.check(block)) {
      llvm::consumeError(std::move(error));
      byMany = false;
    }
  }
  for (int64_t from = 0; from < count;) {
    int64_t size = byMany ? std::min(many.rows, count - from) : 1;
    if (Error error = add(byMany ? many : one, byMany ? ofMany : ofOne, inputs, from, size, logits))
      return std::move(error);
    from += size;
  }
  return logits;
}
