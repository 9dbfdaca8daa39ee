#ifndef CTXC_LOWERING_PASSES_TD
#define CTXC_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

class KernelPass<string name> : Pass<"ctxc-" # name, "::mlir::ModuleOp">;

//===----------------------------------------------------------------------===//
// All targets
//===----------------------------------------------------------------------===//

def BlocksToLinalg : KernelPass<"blocks-to-linalg"> {
  let summary = "turn every block into a kernel in linalg, and drop blocks and models";
  let description = [{
    A kernel has its block's name, and arguments with roles (Kernel.h). A block with an op that has
    no compiled form is an error.

    ```mlir
    xf.block @double(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = xf.add %x, %x : tensor<4xf32>
      xf.yield %y : tensor<4xf32>
    }
    ```
    becomes a function over rows on tensors, with a memref for each argument:
    ```mlir
    func.func private @double(%positions: memref<?xi32> {kernel.arg = #kernel.arg<positions>}, …,
                              %x: memref<?x4xf32> {kernel.arg = #kernel.arg<input>}, …)
    ```
  }];
  let options = [
    Option<"byGroup", "states-by-group", "bool", "false",
           "keys and values of one group of heads lie in line (StateLayout)">
  ];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def UnshareFills : KernelPass<"unshare-fills"> {
  let summary = "give each reader of a filled tensor a fill of its own";
  let description = [{
    An op that uses a filled tensor as its destination writes over it. If several ops share one
    fill, bufferisation makes copies. The pass runs directly before bufferisation, since CSE would
    merge the fills again.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def CopiesToLinalg : KernelPass<"copies-to-linalg"> {
  let summary = "replace memref.copy by linalg, and drop copies of a memref to itself";
  let description = [{
    Copying a strided memref would call a run-time library; a linalg op becomes a loop.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def ApproximateFunctions : KernelPass<"approximate-functions"> {
  let summary = "replace exp, tanh, erf, log and log1p of float32 by polynomials";
  let description = [{
    The polynomials are accurate to a few units in the last place. They need no library, and loops
    over them can be vectorised. They use fused multiply-adds; --ctxc-expand-missing-instructions
    therefore comes later.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"
  ];
}

//===----------------------------------------------------------------------===//
// Processors
//===----------------------------------------------------------------------===//

// The fields of CpuTarget that passes read. The pipelines take the target by its name instead.
class Target<string variable, string name, string type, string byDefault, string what>
  : Option<variable, name, type, byDefault, what>;
defvar lanes = Target<"lanes", "lanes", "int64_t", "8", "float32 lanes of a vector register">;
defvar registers = Target<"registers", "registers", "int64_t", "16", "vector registers">;
defvar bfloatPairs = Target<"bfloatPairs", "bfloat-pairs", "bool", "false",
                            "sums of products of pairs of bfloat16 are an instruction">;
defvar readings = Target<"readings", "readings", "std::string", "\"\"",
                         "how each kind of matrix is read for a token (Readings.h)">;
defvar tiles = Target<"tiles", "tiles", "bool", "false",
                      "products of tiles of bfloat16 are instructions (AMX)">;
defvar bytesAhead = Target<"bytesAhead", "bytes-ahead", "int64_t", "3072",
                           "how far ahead a decoded token asks for keys and values">;
defvar asksInLine = Target<"asksInLine", "asks-in-line", "bool", "true",
                           "also for those that it reads from end to end">;
defvar fma = Target<"fma", "fma", "bool", "true", "fused multiply-add is an instruction">;
defvar halfPrecision = Target<"halfPrecision", "half-precision", "bool", "true",
                              "conversions from and to float16 are instructions">;

def LowerCalls : KernelPass<"lower-calls"> {
  let summary = "make each kernel.call a loop over the rows, with the call of a C function";
  let description = [{
    The loop is marked with kernel.row_loop, and the function is declared.

    The pass needs buffers. It runs before --ctxc-share-rows, which divides the rows among threads.
  }];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def LowerContractions : KernelPass<"lower-contractions"> {
  let summary = "make contractions with a stored matrix calls of functions that threads share";
  let description = [{
    A contraction `y[s, m] += W[m, k] x[s, k]` becomes a call of the caller's parallel-for with a
    function over a range of W's rows. There is one such function for each shape and storage type,
    and it computes in register tiles (Contraction.h). After this pass these functions depend on
    nothing else in the module. A contraction that gets no such function gets a remark that says
    why.

    The pass needs buffers. It comes before --ctxc-share-rows, which would treat contractions as ops
    over rows, and before --ctxc-place-buffers, since it allocates memory. A quantised matrix that
    is read by anything but a contraction is an error.
  }];
  let options = [lanes, registers, bfloatPairs, readings, tiles];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def LowerAttention : KernelPass<"lower-attention"> {
  let summary = "make attention calls of functions that threads share";
  let description = [{
    A kernel.attention on memory becomes calls of the caller's parallel-for. From 2 rows on, a unit
    of work is a block of rows of one group of heads; for a single row it is a tile of slots for
    some groups. The softmax runs along the tiles, so that memory for scores does not grow with the
    number of slots. A result depends neither on the number of threads nor on how many rows a call
    has.

    In a kernel that is marked `kernel.rounded` or `kernel.split`, 16 rows or more are multiplied in
    tile registers where the target has them; their results then have other sums than those of fewer
    rows.

    The pass needs buffers. It comes before --ctxc-place-buffers, since it allocates memory.
  }];
  let options = [lanes, registers, tiles, bytesAhead, asksInLine];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def LowerScans : KernelPass<"lower-scans"> {
  let summary = "make recurrences calls of functions that threads share out";
  let description = [{
    A kernel.scan becomes a call of the caller's parallel-for: a unit of work is some of its parts,
    which go through all rows in order. A function of its own computes a row of a unit, so that a
    result depends neither on the number of threads nor on how many rows a call has.

    The pass needs buffers. It comes before --ctxc-place-buffers, since it allocates memory.
  }];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def ShareRows : KernelPass<"share-rows"> {
  let summary = "make ops that go over rows functions over a range of rows, run by several threads";
  let description = [{
    Consecutive ops on memrefs that go over the rows of a call become loops in one function of a
    row. From 16 rows on, the caller's threads divide the rows.

    The pass needs buffers. It comes after --ctxc-lower-contractions. It comes before
    --ctxc-place-buffers, after which it would not see which buffers only one loop uses, and before
    --ctxc-linalg-to-loops, whose code it calls.
  }];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def PlaceBuffers : KernelPass<"place-buffers"> {
  let summary = "place the kernels' buffers in the caller's workspace";
  let description = [{
    Every memref.alloc of a kernel gets a place in the workspace. Buffers lie one after the other,
    aligned to 64 bytes. The function `<kernel>_workspace(rows, visible0, visible1)` returns the
    size in bytes. A buffer in a loop, or of a size that does not follow from these three numbers,
    is an error.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect"
  ];
}

def AddEntryPoints : KernelPass<"add-entry-points"> {
  let summary = "give each kernel its C entry";
  let description = [{
    The entry has the kernel's name, takes the address of a ctxc_call (ctxc_kernel.h), and returns a
    status; the kernel itself becomes `<kernel>_body`. A kernel that still allocates is an error:
    --ctxc-place-buffers comes before this pass.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def LinalgToLoops : KernelPass<"linalg-to-loops"> {
  let summary = "replace linalg on memrefs by loops";
  let description = [{
    Reductions along the last dimension become vector loops; everything else becomes scalar loops.
    Scalar loops are marked as made from linalg: memory that such a loop reads at other indices than
    it writes does not overlap the memory that it writes.
    --ctxc-keep-sums-in-registers and --ctxc-mark-parallel-loops work only on loops with this mark.
  }];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def KeepSumsInRegisters : KernelPass<"keep-sums-in-registers"> {
  let summary = "keep sums of loops made from linalg in registers instead of in memory";
  let description = [{
    ```mlir
    scf.for %k = %c0 to %n step %c1 {
      %s = memref.load %y[%i] : memref<?xf32>
      %x = memref.load %a[%k] : memref<?xf32>
      %t = arith.addf %s, %x : f32
      memref.store %t, %y[%i] : memref<?xf32>
    }
    ```
    becomes
    ```mlir
    %s = memref.load %y[%i] : memref<?xf32>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%r = %s) -> f32 {
      %x = memref.load %a[%k] : memref<?xf32>
      %t = arith.addf %r, %x : f32
      scf.yield %t : f32
    }
    memref.store %sum, %y[%i] : memref<?xf32>
    ```
    LLVM would neither do this nor vectorise the first form, since `a` might alias `y`. The pass
    needs the marks of --ctxc-linalg-to-loops, and addresses that are computed before the loop:
    loop-invariant code motion runs between the two.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ExpandMissingInstructions : KernelPass<"expand-missing-instructions"> {
  let summary = "replace operations that the target has no instruction for";
  let description = [{
    Without a fused multiply-add instruction, a multiply-add becomes two operations that each round;
    without conversions of float16, a conversion becomes integer operations. LLVM would call a
    library once for each lane. bfloat16 is widened by a shift on all targets, since LLVM's cost
    model overrates its own conversion.
  }];
  let options = [fma, halfPrecision];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MarkParallelLoops : KernelPass<"mark-parallel-loops"> {
  let summary = "mark innermost loops made from linalg whose iterations are independent";
  let description = [{
    A loop that writes y[…, i] in iteration i and reads y nowhere else gets an access group
    (llvm.loop.parallel_accesses), so that LLVM vectorises it. The pass needs the marks of
    --ctxc-linalg-to-loops, and indices that canonicalisation has simplified to the loops' induction
    variables. It comes before loops become branches; --ctxc-mark-parallel-accesses completes its
    work afterwards.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def MarkParallelAccesses : KernelPass<"mark-parallel-accesses"> {
  let summary = "give the loads and stores of marked loops the loop's access group";
  let description = [{
    In the LLVM dialect, the mark of --ctxc-mark-parallel-loops is on the branch back to the loop's
    header, under the same name. It becomes that branch's loop annotation, and the memory accesses
    of the block join the group.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

def GpuExpandAttention : KernelPass<"gpu-expand-attention"> {
  let summary = "write kernel.attention as linalg ops";
  let description = [{
    The products of queries and keys, and the sums of values, are marked with kernel.product, and
    the ops over the slots of causal attention with kernel.causal.
  }];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

def GpuFixRows : KernelPass<"gpu-fix-rows"> {
  let summary = "give kernels their number of rows";
  let description = [{
    Numbers of rows become constants. The table of addresses of a bank of experts becomes the bank
    itself: on a GPU, experts lie in one buffer, one after the other, quantised ones as bytes. A
    quantised matrix gets as many bytes as it has in the device's memory.
  }];
  let options = [Option<"rows", "rows", "int64_t", "1", "rows of a call">];
  let dependentDialects = ["::ctxc::kernel::KernelDialect", "::mlir::memref::MemRefDialect"];
}

def GpuNumberReads : KernelPass<"gpu-number-reads"> {
  let summary = "number bufferization.to_buffer ops, so that none of them are merged";
  let description = [{
    While sizes are unknown, two reads of a tensor are different ops because of their sizes. With
    known sizes they would be merged, although ops between them may write to the memory. The pass
    comes after the simplification that follows --ctxc-gpu-fix-rows, and before bufferisation.
  }];
  let dependentDialects = ["::ctxc::kernel::KernelDialect"];
}

def GpuLaunches : KernelPass<"gpu-launches"> {
  let summary = "turn kernels into launches of functions of a gpu.module";
  let description = [{
    A kernel on memrefs becomes a function of launches, as GPU.h describes. A kernel with an op that
    has no GPU form is left out, with a warning at the op. A contraction that does not get its fast
    form gets a remark that says why.

    The pass needs buffers, and fixed numbers of rows (--ctxc-gpu-fix-rows with the same rows).
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cuda:sm_80\"", "the GPU, by its name">,
    Option<"rows", "rows", "int64_t", "1", "rows of a call">
  ];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::nvgpu::NVGPUDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def GpuExpandRotations : Pass<"ctxc-gpu-expand-rotations", "::mlir::gpu::GPUModuleOp"> {
  let summary = "write cos and sin in arithmetic, within 2e-7 up to 2^20";
  let description = [{Kernels then need no device library.}];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def GpuToLLVM : Pass<"ctxc-gpu-to-llvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "convert a gpu.module to the llvm dialect for NVIDIA or AMD";
  let description = [{
    Converts as --convert-gpu-to-nvvm and --convert-gpu-to-rocdl do, except that math functions
    which are single instructions (fma, floor, sqrt) stay instructions, where those passes call a
    library of the toolkit. No two arguments of a kernel are the same memory, unless threads
    exchange values through them. The pass needs branches instead of loops (--convert-scf-to-cf). A
    target whose code LLVM does not make is an error.
  }];
  let options = [Option<"target", "target", "std::string", "\"cuda:sm_80\"", "the GPU, by its name">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::ROCDL::ROCDLDialect"];
}

def GpuPrepareSpirv : KernelPass<"gpu-prepare-spirv"> {
  let summary = "prepare a gpu.module for the upstream conversion to SPIR-V, and drop launches";
  let description = [{
    Memory that the threads of a block share becomes an allocation; block sizes and device
    capabilities become attributes; and the results of a loop are set where the loop has no
    iterations.
  }];
  let options = [Option<"lanes", "lanes", "int64_t", "8", "lanes of a subgroup">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::spirv::SPIRVDialect"];
}

def SpirvOrderBuffers : Pass<"ctxc-spirv-order-buffers", "::mlir::spirv::ModuleOp"> {
  let summary = "make barriers order accesses to buffers";
  let description = [{
    MLIR's gpu.barrier orders only accesses to memory that a block shares; the threads of these
    kernels also exchange values through buffers.
  }];
}

#endif // CTXC_LOWERING_PASSES_TD
