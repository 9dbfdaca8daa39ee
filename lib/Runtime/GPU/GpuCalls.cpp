// What changes from call to call of recorded launches: the tokens that go in, and the results that
// come out.
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/GpuProgram.h"
#include <cstring>

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

Error GpuProgram::put(BufferPtr &buffer, ArrayRef<int32_t> numbers, int64_t at, int64_t capacity) {
  auto made = own(buffer, capacity * sizeof(int32_t));
  if (!made)
    return made.takeError();
  return store.device->upload(**made, at * sizeof(int32_t), asBytes(numbers));
}

/// Uploads the positions of a run's next tokens; where `hides`, the positions that the run holds
/// and that are not before it are hidden until the next call.
Error GpuProgram::putSlots(GpuRun &run, Slots &slots, ArrayRef<int32_t> next, bool hides) {
  hides = hides && run.count > 0 && run.positions[run.count - 1] >= next.front();
  const int64_t held = run.count - slots.first;
  if (!hides && !slots.isHidden)
    return next.empty() ? Error::success() : put(slots.positions, next, held, slots.room);
  std::vector<int32_t> all(run.positions.begin() + slots.first, run.positions.begin() + run.count);
  if (hides)
    for (int32_t &slot : all)
      slot = slot < next.front() ? slot : INT32_MAX;
  llvm::append_range(all, next);
  slots.isHidden = hides;
  return all.empty() ? Error::success() : put(slots.positions, all, 0, slots.room);
}

Error GpuProgram::setTokens(ArrayRef<int32_t> ids, ArrayRef<int32_t> where, GpuRun *full,
                            GpuRun *reduced) {
  std::vector<int32_t> padded(ids), at(where), next(where);
  padded.resize(rows, ids.back());
  at.resize(rows, where.back());
  next.resize(rows, INT32_MAX);
  if (Error error = put(tokens, padded, 0, rows))
    return error;
  if (Error error = put(positions, at, 0, rows))
    return error;
  for (int64_t window : std::set<int64_t>(store.windows.begin(), store.windows.end())) {
    if (Error error = full->makeRoom(window, rows))
      return error;
    Slots &ofFull = full->slotsOf(window);
    if (Error error = putSlots(*full, ofFull, next, /*hides=*/false))
      return error;
    int32_t counts[2] = {int32_t(full->count + rows - ofFull.first), 0};
    // In a reduced run a chunk's tokens do not see each other: each comes alone after the kept
    // tokens, and a kernel for many tokens leaves out those kept tokens that are not before it.
    if (reduced) {
      if (Error error = reduced->makeRoom(window, 1))
        return error;
      Slots &ofReduced = reduced->slotsOf(window);
      if (Error error =
              putSlots(*reduced, ofReduced, rows == 1 ? where : ArrayRef<int32_t>(), rows == 1))
        return error;
      counts[1] = int32_t(reduced->count + 1 - ofReduced.first);
    }
    if (Error error = put(visible[{window, 0}], counts, 0, 2))
      return error;
    if (Error error = put(visible[{window, 1}], {counts[1], counts[1]}, 0, 2))
      return error;
  }
  llvm::copy(where, full->positions.begin() + full->count);
  return Error::success();
}

Error GpuProgram::clearCounts() {
  for (auto &[place, buffer] : dualParts) {
    if (!countParts.count(place))
      continue;
    std::vector<char> zeros(buffer->bytes);
    if (Error error = store.device->upload(*buffer, 0, zeros))
      return error;
  }
  return Error::success();
}

Error GpuProgram::setPatch(const Patch &patch) {
  for (auto [i, step] : llvm::enumerate(store.program.steps)) {
    if (!step.applied || !store.stage.has(i))
      continue;
    if (Error error = check(step.applied))
      return error;
    std::vector<StepArgument> loads = argumentsOf(i, step.applied);
    llvm::erase_if(loads,
                   [](const StepArgument &each) { return each.arg.kind != KernelArgKind::Load; });
    if (Error error = store.setPatch(loads, loadArguments(step.applied), patch))
      return error;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The replay error of a block is that of one segment.
bool GpuProgram::predictsReplay(const StepArgument &argument, xf::BlockOp block) const {
  for (const Part &part : partsOf(block))
    if (part.kernel && argument.index >= part.first &&
        argument.index < part.first + int64_t(part.kernel->args.size()))
      return !part.segment || part.segment->predictsReplay;
  return false;
}

Error GpuProgram::readChecks(size_t step, int64_t count, std::vector<LayerObligations> &obligations,
                             std::vector<double> &replayError) {
  obligations.assign(count, {});
  replayError.assign(count, 0);
  const xf::BlockOp dual = store.program.steps[step].dual;
  for (const StepArgument &each : argumentsOf(step, dual)) {
    auto found = dualParts.find({step, each.index});
    if (found == dualParts.end() || each.arg.kind == KernelArgKind::Store ||
        (each.arg.kind == KernelArgKind::Replay && !predictsReplay(each, dual)))
      continue;
    size_t bytes = found->second->bytes / rows;
    std::vector<char> content(bytes * count);
    if (Error error = store.device->download(content, *found->second, 0))
      return error;
    if (each.arg.kind == KernelArgKind::Replay) {
      memcpy(replayError.data(), content.data(), content.size());
      continue;
    }
    std::vector<int64_t> counts(content.size() / sizeof(int64_t));
    memcpy(counts.data(), content.data(), content.size());
    for (int64_t row = 0; row < count; ++row)
      for (size_t i = 0; i + 1 < bytes / sizeof(int64_t); i += 2) {
        const int64_t *pair = counts.data() + row * bytes / sizeof(int64_t) + i;
        obligations[row].harmless += pair[0];
        obligations[row].harmful += pair[1];
      }
  }
  return Error::success();
}

void GpuProgram::findParts(size_t step, int64_t from, int64_t count, std::vector<Rows> &parts,
                           std::vector<Device::Piece> &pieces) {
  size_t next = 0;
  for (const StepArgument &argument : argumentsOf(step, store.program.steps[step].dual)) {
    if (argument.arg.kind != KernelArgKind::Store)
      continue;
    const BufferPtr &buffer = dualParts.find({step, argument.index})->second;
    size_t each = buffer->bytes / rows;
    if (parts.size() <= next)
      parts.resize(next + 1);
    Rows &part = parts[next++];
    part.resize(count * each / sizeof(float));
    pieces.push_back(
        {buffer.get(), from * each, {reinterpret_cast<char *>(part.data()), count * each}});
  }
}

/// The arguments that store patches, of one token.
static SmallVector<KernelArg> ofOneRow(ArrayRef<StepArgument> args) {
  SmallVector<KernelArg> made;
  for (const StepArgument &each : args)
    if (each.arg.kind == KernelArgKind::Store) {
      KernelArg &arg = made.emplace_back(each.arg);
      auto type = cast<MemRefType>(arg.type);
      SmallVector<int64_t> shape(type.getShape());
      shape[0] = 1;
      arg.type = MemRefType::get(shape, type.getElementType());
    }
  return made;
}

Error GpuProgram::readParts(size_t step, ArrayRef<Rows> parts, int64_t row, Patch &patch) {
  const ProgramStep &at = store.program.steps[step];
  auto args = patchArgs(at, ofOneRow(argumentsOf(step, at.dual)));
  return args ? ctxc::readParts(args->stores, parts, row, patch) : args.takeError();
}

size_t GpuProgram::patchBytes(size_t step) const {
  size_t bytes = 0;
  for (const StepArgument &each : argumentsOf(step, store.program.steps[step].dual))
    if (each.arg.kind == KernelArgKind::Store)
      bytes += argumentBytes(each.arg.type) / rows;
  return bytes;
}

Expected<Rows> GpuProgram::value(Value value, int64_t run, int64_t from, int64_t count) {
  BufferPtr &buffer = values[{value.getAsOpaquePointer(), run}];
  if (!buffer)
    return makeError("a value of the model was not computed");
  size_t each = buffer->bytes / rows;
  Rows numbers(count * each / sizeof(float));
  llvm::MutableArrayRef<char> into(reinterpret_cast<char *>(numbers.data()), count * each);
  if (Error error = store.device->download(into, *buffer, from * each))
    return std::move(error);
  return numbers;
}

Error GpuProgram::setValue(Value value, int64_t run, ArrayRef<float> numbers) {
  BufferPtr &buffer = values[{value.getAsOpaquePointer(), run}];
  if (!buffer || buffer->bytes < numbers.size() * sizeof(float))
    return makeError("a value of the model has another size");
  return store.device->upload(*buffer, 0, asBytes(numbers));
}
