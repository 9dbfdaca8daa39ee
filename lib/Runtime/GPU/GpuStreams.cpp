#include "lib/Runtime/GPU/GpuStreams.h"

using namespace mlir;
using namespace ctxc;
using llvm::Error;
using llvm::Expected;

static int64_t widthOf(Value value) { return cast<ShapedType>(value.getType()).getNumElements(); }

const Rows *GpuStreams::find(Value value, int64_t run) const {
  auto found = came.find({value.getAsOpaquePointer(), run});
  return found == came.end() ? nullptr : &found->second;
}

Expected<int64_t> GpuStreams::await(int64_t left) {
  if (store.stage.in.empty())
    return left;
  if (here == 0) {
    llvm::SmallVector<Rows *> streams;
    for (int64_t run = 0; run < runs; ++run)
      for (Value value : store.stage.in)
        streams.push_back(&came[{value.getAsOpaquePointer(), run}]);
    if (Error error = store.neighbours->receive(streams))
      return std::move(error);
    here = int64_t(streams.front()->size()) / widthOf(store.stage.in.front());
    next = 0;
  }
  return std::min(here, left);
}

Error GpuStreams::put(GpuProgram &program, int64_t count) {
  for (int64_t run = 0; run < runs; ++run)
    for (Value value : store.stage.in) {
      if (!program.hasValue(value, run)) // it is read by a later rank, or by the head alone
        continue;
      const int64_t width = widthOf(value);
      const Rows &all = *find(value, run);
      Rows rows(all.begin() + next * width, all.begin() + (next + count) * width);
      for (int64_t row = count; row < program.rows; ++row)
        rows.insert(rows.end(), rows.begin() + (count - 1) * width, rows.begin() + count * width);
      if (Error error = program.setValue(value, run, rows))
        return error;
    }
  return Error::success();
}

Error GpuStreams::pass(GpuProgram &program, int64_t count) {
  last = next;
  if (!store.stage.in.empty()) {
    next += count;
    here -= count;
  }
  if (store.stage.out.empty())
    return Error::success();
  std::vector<Rows> numbers;
  for (int64_t run = 0; run < runs; ++run)
    for (Value value : store.stage.out) {
      auto rows = this->value(program, value, run, 0, count);
      if (!rows)
        return rows.takeError();
      numbers.push_back(std::move(*rows));
    }
  llvm::SmallVector<const Rows *> streams;
  for (const Rows &rows : numbers)
    streams.push_back(&rows);
  return store.neighbours->send(streams);
}

Expected<Rows> GpuStreams::value(GpuProgram &program, Value value, int64_t run, int64_t from,
                                 int64_t count) const {
  const Rows *all = find(value, run);
  if (!all)
    return program.value(value, run, from, count);
  const int64_t width = widthOf(value);
  auto begin = all->begin() + (last + from) * width;
  return Rows(begin, begin + count * width);
}
