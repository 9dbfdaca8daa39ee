// One contraction of many rows, as a kernel of its own.
#ifndef CTXC_TEST_UNIT_GPU_TILEKERNEL_H
#define CTXC_TEST_UNIT_GPU_TILEKERNEL_H

#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Lowering/Kernel.h"
#include "lib/Lowering/GPU/TileContraction.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace ctxc::test {

/// y[s, m] (+)= Σ_k W[m, k] x[s, k], where row s of x begins at offset + s · stride.
struct TileKernel {
  int64_t rows, out, in;
  std::string element;
  bool accumulates = false;
  int64_t offset = 0, stride = 0;
  bool rounded = false; ///< kernel.rounded

  int64_t xStride() const { return stride ? stride : in; }
  std::string text() const {
    return std::to_string(rows) + " x " + std::to_string(out) + " x " + std::to_string(in) + " " +
           element + (accumulates ? ", added" : "") + ", from " + std::to_string(offset) +
           (rounded ? ", rounded" : "");
  }

  static void loadDialects(mlir::MLIRContext &context) {
    mlir::DialectRegistry registry;
    registerCodegenDialects(registry);
    registerGpuDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Writes the kernel in a module of its own, and the indices of W, x and y among its arguments.
  gpu_lowering::WrittenKernel write(mlir::ModuleOp module, const GpuTarget &target,
                                    std::vector<unsigned> &arguments) const {
    using namespace gpu_lowering;
    mlir::OpBuilder b(module.getContext());
    auto loc = b.getUnknownLoc();
    b.setInsertionPointToEnd(module.getBody());
    auto kernels = mlir::gpu::GPUModuleOp::create(b, loc, "kernels");
    mlir::Type f32 = b.getF32Type();
    mlir::Type stored = element == "f32"   ? f32
                        : element == "f16" ? mlir::Type(b.getF16Type())
                                           : b.getBF16Type();
    mlir::Block block; // its arguments stand for the memory
    auto access = [&](mlir::Type element, int64_t height, int64_t width, int64_t from,
                      llvm::SmallVector<Extent> steps) {
      mlir::Value root = block.addArgument(mlir::MemRefType::get({height, width}, element), loc);
      return Access{{root, {}, {fixedExtent(width), fixedExtent(1)}}, fixedExtent(from), steps};
    };
    Extent none, one = fixedExtent(1);
    Step step{Step::Contraction, {}, {}, accumulates};
    step.ops.emplace_back();
    RowOp &row = step.ops.back();
    auto function = mlir::func::FuncOp::create(b, loc, "kernel", b.getFunctionType({}, {}));
    if (rounded)
      kernel::mark<kernel::Rounded>(function);
    b.setInsertionPointToStart(function.addEntryBlock());
    row.op = mlir::func::ReturnOp::create(b, loc);
    row.loops = {fixedExtent(rows), fixedExtent(out), fixedExtent(in)};
    row.isReduction = {false, false, true};
    row.accesses.push_back(access(stored, out, in, 0, {none, fixedExtent(in), one}));
    row.accesses.push_back(
        access(f32, rows, xStride(), offset, {fixedExtent(xStride()), none, one}));
    row.accesses.push_back(access(f32, rows, out, 0, {fixedExtent(out), one, none}));
    row.inputs = 2;
    WrittenKernel written = writeTiles(kernels, "tiles", step, target);
    for (mlir::Value root : written.roots)
      arguments.push_back(mlir::cast<mlir::BlockArgument>(root).getArgNumber());
    return written;
  }
};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_GPU_TILEKERNEL_H
