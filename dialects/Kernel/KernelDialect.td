#ifndef CTXC_KERNEL_DIALECT_TD
#define CTXC_KERNEL_DIALECT_TD

include "mlir/IR/DialectBase.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::ctxc::kernel";
  let summary = "what the lowering says of the kernels that blocks become";
  let description = [{
    A kernel is a `func.func` made of an `xf.block`, in `linalg` and its neighbours. What these
    dialects cannot say is said here: the products with stored matrices, the role of each argument
    (`kernel.arg`), and marks on ops.

    - `kernel.product`, on a `linalg.generic`: which product of attention it is.
    - `kernel.causal`, on an op of linalg whose first loop is over S rows and whose last over slots,
      or one of attention's products: the rows are the last S slots, in order, and see none behind
      their own, so that what comes of those need not be computed, and is not read.
    - `kernel.stored`, on the products of queries and keys: they are stored, and not added to what is
      there.
    - `kernel.row_loop`, on a loop over rows whose iterations are independent of each other.
    - `kernel.group_loop`, on the loops over the second dimension, within that over rows.
    - `kernel.linalg_loop`, on the loops that an op of linalg became.
    - `kernel.read`, on the memory of a tensor for what works on memory: a number of its own, so that
      common subexpressions do not make it one with another read, which bufferisation would keep the
      tensor for.
    - `kernel.rounded`, on a kernel: it rounds the vectors of a call of many rows to bfloat16, where
      they meet a matrix that is stored so and the target has an instruction for it.
    - `kernel.alone`, on attention over the reduced run: nothing is kept of the context, and a row
      sees itself alone.
    - `kernel.cost`, on a launch: what it moves and computes.
  }];
  let discardableAttrs = (ins
    "::ctxc::kernel::ArgAttr":$arg, "::mlir::UnitAttr":$causal, "::mlir::UnitAttr":$stored,
    "::mlir::UnitAttr":$row_loop, "::mlir::UnitAttr":$group_loop, "::mlir::UnitAttr":$linalg_loop,
    "::ctxc::kernel::ProductAttr":$product, "::mlir::IntegerAttr":$read,
    "::mlir::UnitAttr":$rounded, "::mlir::UnitAttr":$alone, "::ctxc::kernel::CostAttr":$cost);
  let dependentDialects = ["::ctxc::xf::XFDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

#endif // CTXC_KERNEL_DIALECT_TD
