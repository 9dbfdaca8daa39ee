//===- GPU.h - kernels for GPUs: linalg to MLIR's gpu dialect to code -----===//
//
// A kernel in linalg becomes a function of launches (gpu.launch_func), one after the other, of
// functions in one gpu.module. A GPU kernel is made for a fixed number of tokens S: one token for
// decoding, more for a chunk of a prompt. The launches read and write flat buffers: the kernel's
// arguments, the buffers that the function allocates, and
//
//   %visible: memref<2xi32>   how many tokens each of the two runs sees, read by the kernels
//
// so that nothing else about a launch changes from token to token. Allocations have the sizes for
// %capacity0 and %capacity1, the largest values of the two numbers. The full run sees the S tokens,
// which are the last of its visible0 tokens. In a reduced run the last slot is not read.
//
// The executor pads a chunk that is not full: kernels always compute S tokens. The slots of the
// padding have the position INT32_MAX, so that no other token sees them.
//
// A target (cuda:sm_90, rocm:gfx942, vulkan) is a class in a folder of its own
// (lib/Lowering/GPU/…). It tells the size of its subgroups, and turns a gpu.module into code.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_GPU_H
#define CTXC_LOWERING_GPU_H

#include "ctxc/Lowering/Kernel.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>

namespace mlir {
class OpBuilder;
class OpPassManager;
} // namespace mlir

namespace ctxc {

namespace gpu_lowering {
class LlvmKernels;
} // namespace gpu_lowering

class GpuTarget {
public:
  virtual ~GpuTarget() = default;

  /// The target of that name; `vulkan:N` has subgroups of N lanes (default 8, as lavapipe has). An
  /// unknown name is an error that lists all names.
  static llvm::Expected<std::unique_ptr<GpuTarget>> named(llvm::StringRef name);
  /// All names, for messages.
  static std::string names();
  /// Whether `name` begins with the name of a GPU target.
  static bool isOne(llvm::StringRef name);

  virtual std::string name() const = 0;
  /// The --emit stage of its code: ptx, hsaco, spirv.
  virtual llvm::StringRef stage() const = 0;
  /// How many lanes exchange values by shuffles; a power of two.
  virtual int64_t subgroup() const = 0;
  /// How many rows a chunk of a prompt has. There are as many rows as make computing with a weight
  /// take longer than reading it once for all of them; more would only add padding to the last
  /// chunk. With weights of two bytes, n rows need n operations for each byte. Matrix units of
  /// server GPUs compute some 200 to 250 operations in the time in which memory delivers a byte
  /// (256 rows), float32 multiply-adds some 10 to 40 (32 rows).
  virtual int64_t promptRows() const = 0;
  /// Whether kernels may read float16 from memory.
  virtual bool readsFloat16() const = 0;
  /// How many bytes of shared memory a block may use; every device has 16 KiB.
  virtual int64_t sharedBytes() const { return 16384; }
  /// Whether subgroups multiply matrices of bfloat16 (mma.sync).
  virtual bool multipliesBfloat16() const { return false; }
  /// Whether math.fma rounds once.
  virtual bool fusesMultiplyAdd() const { return false; }
  /// Whether the target has an instruction for `selectBytes`.
  virtual bool selectsBytes() const { return false; }
  /// Four bytes (i32) of the eight of `low` and `high`, by the four low halves of bytes of
  /// `selector`; a half of 8 and more takes the sign of byte half − 8, eight times.
  virtual mlir::Value selectBytes(mlir::OpBuilder &, mlir::Location, mlir::Value /*low*/,
                                  mlir::Value /*high*/, mlir::Value /*selector*/) const {
    return {};
  }
  /// Limits a kernel's registers to what lets `blocks` of its blocks run on a multiprocessor at
  /// once.
  virtual void limitRegisters(mlir::Operation * /*kernel*/, int64_t /*blocks*/) const {}
  /// Adds the passes that bring the one gpu.module of a module to the llvm or the spirv dialect.
  virtual void addCodePasses(mlir::OpPassManager &pm) const = 0;
  /// How LLVM makes the code; null if another tool makes it.
  virtual const gpu_lowering::LlvmKernels *llvmKernels() const { return nullptr; }
  /// The code of the one gpu.module in `module`. The module is not changed.
  virtual llvm::Expected<std::string> emit(mlir::ModuleOp module) const = 0;
};

/// A kernel that has no GPU form. The message was also given as a warning at the op.
struct GpuRefusal {
  std::string kernel, reason;
};

/// Registers the dialects and translations that lowering to GPUs needs.
void registerGpuDialects(mlir::DialectRegistry &registry);

/// Why no GPU has a kernel of `block`, whose op reads the context otherwise than by attention;
/// empty where nothing is known to be in the way.
std::string obstacleToGpu(xf::BlockOp block);

/// Lowers a module of linalg kernels, as buildKernelModule makes them, to launches and a gpu.module
/// named `kernels`, with `rows` rows each (at least 1). A kernel with an op that has no GPU form is
/// left out, with a warning at the op, and is returned as a refusal. Fails, with a diagnostic, if
/// the IR itself cannot be lowered.
mlir::FailureOr<std::vector<GpuRefusal>>
lowerKernelsToGPU(mlir::ModuleOp module, const GpuTarget &target, int64_t rows = 1);

//===----------------------------------------------------------------------===//
// The launches of a kernel, as an executor needs them
//===----------------------------------------------------------------------===//

/// a + b·visible0 + c·visible1.
struct Extent {
  int64_t fixed = 0, visible[2] = {0, 0};

  bool isFixed() const { return !visible[0] && !visible[1]; }
  int64_t at(int64_t visible0, int64_t visible1) const {
    return fixed + visible[0] * visible0 + visible[1] * visible1;
  }
  bool operator==(const Extent &o) const {
    return fixed == o.fixed && visible[0] == o.visible[0] && visible[1] == o.visible[1];
  }
};

struct GpuBuffer {
  enum Kind { Argument, Temporary, Visible } kind;
  int64_t index = 0; ///< among the kernel's arguments, or its temporaries
};

/// How many bytes a launch must move between the device and its memory, and how many operations it
/// computes. The count assumes that a launch reads or writes each element of a buffer once, and
/// does not read what it wrote itself. A support function touches all elements of a vector, with
/// one operation for each.
struct GpuCost {
  Extent weights;     ///< stored parameters
  Extent cache;       ///< states, and the positions of their tokens
  Extent patch;       ///< parts of a patch, read or written
  Extent activations; ///< everything else
  Extent operations;  ///< floating point: a multiply-add counts as two, any function as one
};

struct GpuLaunch {
  std::string function; ///< in the gpu.module
  int64_t blocks = 1, threads = 1;
  std::vector<GpuBuffer> buffers; ///< one for each argument of the function
  /// None if the cost is not a linear function of the numbers of visible tokens.
  std::optional<GpuCost> cost = {};
};

struct GpuKernel {
  std::string name;
  int64_t rows = 1;
  llvm::SmallVector<KernelArg> args; ///< with types of fixed numbers of rows
  std::vector<Extent> temporaries;   ///< their sizes in bytes
  std::vector<GpuLaunch> launches;   ///< in order; each sees what those before it wrote
};

/// The kernels of a module that lowerKernelsToGPU has made.
std::vector<GpuKernel> gpuKernels(mlir::ModuleOp module);

} // namespace ctxc

#endif // CTXC_LOWERING_GPU_H
