// The values between a program's steps, and those that cross the ends of a stage.
#ifndef CTXC_LIB_RUNTIME_STREAMS_H
#define CTXC_LIB_RUNTIME_STREAMS_H

#include "ctxc/Runtime/Shard/Stage.h"
#include "lib/Runtime/KernelArguments.h"
#include "llvm/ADT/DenseMap.h"

namespace ctxc {

using Values = llvm::DenseMap<mlir::Value, Rows>;

/// What enters `stage`, of one run or of both, from the stage before; nothing where it is the
/// first.
inline llvm::Error receiveStreams(const Stage &stage, Neighbours *neighbours,
                                  llvm::MutableArrayRef<Values> runs) {
  if (stage.in.empty())
    return llvm::Error::success();
  for (Values &values : runs) // so that no address changes below
    for (mlir::Value value : stage.in)
      values.try_emplace(value);
  llvm::SmallVector<Rows *> streams;
  for (Values &values : runs)
    for (mlir::Value value : stage.in)
      streams.push_back(&values[value]);
  return neighbours->receive(streams);
}

/// What leaves it, to the stage after; nothing where it is the last.
inline llvm::Error sendStreams(const Stage &stage, Neighbours *neighbours,
                               llvm::MutableArrayRef<Values> runs) {
  if (stage.out.empty())
    return llvm::Error::success();
  llvm::SmallVector<const Rows *> streams;
  for (Values &values : runs)
    for (mlir::Value value : stage.out)
      streams.push_back(&values[value]);
  return neighbours->send(streams);
}

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_STREAMS_H
