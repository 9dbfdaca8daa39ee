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
    A kernel has its block's name, and arguments that say what they are (Kernel.h). A block with an
    op that has no compiled form is an error.

    ```mlir
    xf.block @double(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = xf.add %x, %x : tensor<4xf32>
      xf.yield %y : tensor<4xf32>
    }
    ```
    becomes a function of rows on tensors, with a memref for each argument:
    ```mlir
    func.func private @double(%positions: memref<?xi32> {kernel.arg = #kernel.arg<positions>}, …,
                              %x: memref<?x4xf32> {kernel.arg = #kernel.arg<input>}, …)
    ```
  }];
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
    Readers write over what they are given. Of one fill for several of them, bufferisation would make
    copies. It stands directly before bufferisation, since CSE makes one fill of several again.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def CopiesToLinalg : KernelPass<"copies-to-linalg"> {
  let summary = "replace memref.copy by linalg, and drop copies of a memref to itself";
  let description = [{
    The copy of a strided memref would call a run-time library; a linalg op becomes a loop.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def ApproximateFunctions : KernelPass<"approximate-functions"> {
  let summary = "replace exp, tanh, erf, log and log1p of float32 by polynomials";
  let description = [{
    They are within a few units in the last place. They need no library, and loops over them can be
    vectorised. They use fused multiply-adds, so that --ctxc-expand-missing-instructions comes after.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"
  ];
}

//===----------------------------------------------------------------------===//
// Processors
//===----------------------------------------------------------------------===//

// What passes read of CpuTarget. The pipelines take the target by its name.
class Target<string variable, string name, string type, string byDefault, string what>
  : Option<variable, name, type, byDefault, what>;
defvar lanes = Target<"lanes", "lanes", "int64_t", "8", "float32 lanes of a vector register">;
defvar registers = Target<"registers", "registers", "int64_t", "16", "vector registers">;
defvar bfloatPairs = Target<"bfloatPairs", "bfloat-pairs", "bool", "false",
                            "sums of products of pairs of bfloat16 are an instruction">;
defvar fma = Target<"fma", "fma", "bool", "true", "fused multiply-add is an instruction">;
defvar halfPrecision = Target<"halfPrecision", "half-precision", "bool", "true",
                              "conversions from and to float16 are instructions">;

def LowerContractions : KernelPass<"lower-contractions"> {
  let summary = "make contractions with a stored matrix calls of functions that threads share out";
  let description = [{
    A contraction `y[s, m] += W[m, k] x[s, k]` becomes a call of the caller's parallel-for with a
    function of a range of W's rows, one for each shape and storage type, in register tiles
    (Contraction.h). After it these functions depend on nothing else in the module. A remark at each
    contraction that has no such function says why.

    It needs buffers, and comes before --ctxc-share-rows, which would take contractions for ops over
    rows, and before --ctxc-place-buffers, since it allocates. What reads a quantised matrix
    otherwise than by a contraction is an error.
  }];
  let options = [lanes, registers, bfloatPairs];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ShareRows : KernelPass<"share-rows"> {
  let summary = "make functions of a range of rows of what goes over rows, and share them out";
  let description = [{
    Ops on memrefs that go over the rows of a call, and follow each other, become loops of one
    function of a row. From 16 rows on the caller's threads share them out; so they do with the
    groups of heads of one row's attention over many slots.

    It needs buffers. It comes after --ctxc-lower-contractions, and before --ctxc-place-buffers, which
    hides the buffers that a loop has to itself, and --ctxc-linalg-to-loops, of which it makes use.
  }];
  let options = [lanes, registers];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def PlaceBuffers : KernelPass<"place-buffers"> {
  let summary = "place the kernels' buffers in the caller's workspace";
  let description = [{
    Every memref.alloc of a kernel gets its place in the workspace, one after the other and aligned
    to 64 bytes. The function `<kernel>_workspace(rows, visible0, visible1)` gives the bytes. A buffer
    in a loop, or of a size that does not follow from these three numbers, is an error.
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
    --ctxc-place-buffers comes before.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def LinalgToLoops : KernelPass<"linalg-to-loops"> {
  let summary = "replace linalg on memrefs by loops";
  let description = [{
    Products of attention, and reductions along the last dimension, become loops over vectors; all
    else becomes plain loops, which are marked as linalg's: what such a loop reads at other places
    than it writes is other memory. --ctxc-keep-sums-in-registers and --ctxc-mark-parallel-loops look
    for that mark, and leave all other loops as they are.
  }];
  let options = [lanes, registers];
  let dependentDialects = [
    "::ctxc::kernel::KernelDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def KeepSumsInRegisters : KernelPass<"keep-sums-in-registers"> {
  let summary = "carry sums that loops of linalg keep in memory from step to step instead";
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
    LLVM would do neither this nor vectorise the first form, since `a` might be `y`. It needs the
    marks of --ctxc-linalg-to-loops, and places that are computed before the loop: loop-invariant
    code motion stands between the two.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ExpandMissingInstructions : KernelPass<"expand-missing-instructions"> {
  let summary = "write what the target has no instruction for in others";
  let description = [{
    Without fused multiply-add these are two roundings; without conversions of float16 they are
    integers' operations. LLVM would call a library once for each lane. bfloat16 is widened by a
    shift on all targets, since LLVM takes its own conversion for costly.
  }];
  let options = [fma, halfPrecision];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MarkParallelLoops : KernelPass<"mark-parallel-loops"> {
  let summary = "mark the innermost loops of linalg whose steps are independent";
  let description = [{
    A loop that writes y[…, i] at step i and reads y nowhere else gets an access group
    (llvm.loop.parallel_accesses), so that LLVM vectorises it. It needs the marks of
    --ctxc-linalg-to-loops, indices that canonicalisation has made the loops' own, and comes before
    loops become branches; --ctxc-mark-parallel-accesses does the rest afterwards.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def MarkParallelAccesses : KernelPass<"mark-parallel-accesses"> {
  let summary = "give the loads and stores of marked loops the loop's access group";
  let description = [{
    In the LLVM dialect the mark of --ctxc-mark-parallel-loops is at the branch back to the loop's
    begin, under the name that it had. It becomes the branch's own annotation, and memory accesses in
    that block join the group.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

def GpuFixRows : KernelPass<"gpu-fix-rows"> {
  let summary = "give kernels their number of rows";
  let description = [{
    Sizes of rows become fixed. The table of addresses of a bank of experts becomes the bank itself:
    on a GPU experts lie in one buffer, one after the other. Banks of quantised experts, which have no
    kernel, stay tables.
  }];
  let options = [Option<"rows", "rows", "int64_t", "1", "rows of a call">];
  let dependentDialects = ["::ctxc::kernel::KernelDialect", "::mlir::memref::MemRefDialect"];
}

def GpuNumberReads : KernelPass<"gpu-number-reads"> {
  let summary = "number bufferization.to_buffer ops, so that none of them are merged";
  let description = [{
    Two reads of a tensor are kept apart by their sizes while these are unknown. With sizes known
    they would be one op, though what is between them may write to their memory. It comes after the
    simplification that follows --ctxc-gpu-fix-rows, and before bufferisation.
  }];
  let dependentDialects = ["::ctxc::kernel::KernelDialect"];
}

def GpuLaunches : KernelPass<"gpu-launches"> {
  let summary = "turn kernels into launches of functions of a gpu.module";
  let description = [{
    A kernel on memrefs becomes a function of launches, as GPU.h describes. One that has an op
    without a GPU form is left out, with a warning at the op; a remark says at a contraction that it
    goes without its fast form, and why.

    It needs buffers, and numbers of rows that are fixed (--ctxc-gpu-fix-rows with the same rows).
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
  let description = [{So kernels need no library of the device's.}];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def GpuToLLVM : Pass<"ctxc-gpu-to-llvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "convert a gpu.module to the llvm dialect for NVIDIA or AMD";
  let description = [{
    As --convert-gpu-to-nvvm and --convert-gpu-to-rocdl do it, but that functions of numbers which are
    instructions (fma, floor, sqrt) stay such, where those passes call a library of the toolkit's. No
    two arguments of a kernel are the same memory, unless threads exchange values through them. Loops
    are branches before (--convert-scf-to-cf); a target without code from LLVM is an error.
  }];
  let options = [Option<"target", "target", "std::string", "\"cuda:sm_80\"", "the GPU, by its name">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::ROCDL::ROCDLDialect"];
}

def GpuPrepareSpirv : KernelPass<"gpu-prepare-spirv"> {
  let summary = "make a gpu.module what the upstream conversion to SPIR-V reads, and drop launches";
  let description = [{
    Memory that a block shares becomes an allocation, the sizes of blocks and what the device can do
    become attributes, and a loop's results are set where it has no step at all.
  }];
  let options = [Option<"lanes", "lanes", "int64_t", "8", "lanes of a subgroup">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::spirv::SPIRVDialect"];
}

def SpirvOrderBuffers : Pass<"ctxc-spirv-order-buffers", "::mlir::spirv::ModuleOp"> {
  let summary = "make barriers order what is in buffers";
  let description = [{
    A barrier of MLIR's orders what is in the memory that a block shares; kernels exchange values
    through buffers too.
  }];
}

#endif // CTXC_LOWERING_PASSES_TD
