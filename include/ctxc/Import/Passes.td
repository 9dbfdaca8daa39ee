#ifndef CTXC_IMPORT_PASSES_TD
#define CTXC_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def ReportTokenAxes : Pass<"graph-report-token-axes", "::ctxc::graph::ProgramOp"> {
  let summary = "remark at each call how it treats tokens";
  let description = [{
    A remark says "each token by itself", or why the call joins tokens. A call that does not depend
    on the model's input gets no remark.
  }];
}

def Recompose : Pass<"graph-recompose", "::ctxc::graph::ProgramOp"> {
  let summary = "put together what PyTorch's own table of decompositions takes apart";
  let description = [{
    The reader of `.pt2` files does this. Patterns know ops as PyTorch's modules call them; a program on which
    `run_decompositions()` was called without a table has only the ops of PyTorch's core, such as the parts of a
    softplus, or a `bmm` with all leading axes in one in the place of a `matmul`. Calls whose results nothing reads are
    erased.
  }];
}

def RaiseProgram : Pass<"graph-raise", "::mlir::ModuleOp"> {
  let summary = "raise a program to the xf blocks that it computes for one token";
  let description = [{
    Replaces the module's `graph.program` by an `xf.block` for each structure of layer, and, if the
    program reads tokens, by an `xf.model`.

    ```mlir
    graph.program @model tokens "s" {
      %x = graph.input "x" as "activation" : !graph.tensor<[1, "s", 4], f32>
      %y = graph.call "aten.relu.default"(%x) {self = #graph.operand<0>} in ""
         : (!graph.tensor<[1, "s", 4], f32>) -> !graph.tensor<[1, "s", 4], f32>
      graph.return %y : !graph.tensor<[1, "s", 4], f32>
    }
    ```
    becomes
    ```mlir
    xf.block @model(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = xf.activation relu %x : tensor<4xf32>
      xf.yield %y : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::ctxc::xf::XFDialect"];
}

#endif // CTXC_IMPORT_PASSES_TD
