#ifndef CTXC_KERNEL_DIALECT_TD
#define CTXC_KERNEL_DIALECT_TD

include "mlir/IR/DialectBase.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::ctxc::kernel";
  let summary = "products with stored matrices, and attributes of the kernels that blocks become";
  let description = [{
    A kernel is a `func.func` made from an `xf.block`, in `linalg` and related dialects. This
    dialect adds what those cannot express: products with stored matrices, attention, the role of
    each argument (`kernel.arg`), and marks on ops.

    - `kernel.product`, on a `linalg.generic`: which product of attention the op is.
    - `kernel.causal`, on a product of attention, or on a linalg op whose first loop goes over S
      rows and whose last goes over slots: the rows are the last S slots, in order, and no row sees
      a slot behind its own. Results for such slots need not be computed, and are not read.
    - `kernel.row_loop`, on a loop over rows whose iterations are independent of each other.
    - `kernel.linalg_loop`, on the loops made from a linalg op.
    - `kernel.read`, on an op that reads the memory of a tensor: a unique number, so that
      common-subexpression elimination does not merge it with another read. Bufferisation would then
      keep the tensor alive until that read.
    - `kernel.rounded`, on a kernel: in a call of many rows, vectors are rounded to bfloat16 where
      they are multiplied with a bfloat16 matrix and the target has an instruction for it. On
      processors whose instruction is for tiles, so are all factors of attention.
    - `kernel.split`, on a kernel: in a call of many rows, vectors and matrices, and all factors of
      attention, are split into bfloat16 numbers where the target multiplies in tile registers.
    - `kernel.integer`, on a quantised matrix or a bank of them: it is multiplied in integers
      (IntegerProducts.h).
    - `kernel.alone`, on attention in the reduced run: no tokens of the context are kept, so that a
      row sees only itself.
    - `kernel.rounded_state`, on attention: keys and values are rounded to bfloat16, and their state
      is stored in bfloat16.
    - `kernel.rows_from`, on `xf.embed`: the table is a part of a larger one, and its first row has
      this id; for an id without a row, the result is zeros.
    - `kernel.cost`, on a launch: how many bytes it moves and how many operations it computes.
  }];
  let discardableAttrs = (ins
    "::ctxc::kernel::ArgAttr":$arg, "::mlir::UnitAttr":$causal, "::mlir::UnitAttr":$row_loop,
    "::mlir::UnitAttr":$linalg_loop, "::ctxc::kernel::ProductAttr":$product,
    "::mlir::IntegerAttr":$read, "::mlir::UnitAttr":$rounded, "::mlir::UnitAttr":$split,
    "::mlir::UnitAttr":$integer, "::mlir::UnitAttr":$alone, "::mlir::UnitAttr":$rounded_state,
    "::mlir::IntegerAttr":$rows_from, "::ctxc::kernel::CostAttr":$cost);
  let dependentDialects = ["::ctxc::xf::XFDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

#endif // CTXC_KERNEL_DIALECT_TD
