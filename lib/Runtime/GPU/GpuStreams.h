// What an executor of some of a program's steps takes from the rank before and gives to the one
// after: values of tokens, through the hosts' memory. One object serves one call.
//
// Tokens come in the groups in which the rank before ran them. A rank takes of a group as many
// together as it has memory for, so that ranks need not agree on the size of a chunk.
#ifndef CTXC_LIB_RUNTIME_GPU_GPUSTREAMS_H
#define CTXC_LIB_RUNTIME_GPU_GPUSTREAMS_H

#include "lib/Runtime/GPU/GpuProgram.h"

namespace ctxc {

class GpuStreams {
public:
  /// Of the full run alone, or of both.
  GpuStreams(const GpuStore &store, int64_t runs) : store(store), runs(runs) {}

  /// How many of the next `left` tokens can be run. Waits for the rank before where none can.
  llvm::Expected<int64_t> await(int64_t left);
  /// Gives the next `count` tokens to launches that were recorded; those of a chunk that is not
  /// full are followed by copies of the last.
  llvm::Error put(GpuProgram &program, int64_t count);
  /// After the launches: sends what the tokens became, and goes on to the next tokens.
  llvm::Error pass(GpuProgram &program, int64_t count);
  /// One of the values of the tokens that were passed last, of `count` of them from `from` on.
  llvm::Expected<Rows> value(GpuProgram &program, mlir::Value value, int64_t run, int64_t from,
                             int64_t count) const;

private:
  const Rows *find(mlir::Value value, int64_t run) const;

  const GpuStore &store;
  const int64_t runs;
  int64_t here = 0; ///< tokens that came and were not passed
  int64_t next = 0,
          last = 0; ///< of those that came: which is next, which came before the last pass
  std::map<std::pair<void *, int64_t>, Rows> came; ///< by value and run
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_GPU_GPUSTREAMS_H
