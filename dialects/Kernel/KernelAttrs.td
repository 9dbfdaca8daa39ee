#ifndef CTXC_KERNEL_ATTRS_TD
#define CTXC_KERNEL_ATTRS_TD

include "dialects/Kernel/KernelDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Kernel_ArgKind : I32EnumAttr<"ArgKind", "what an argument of a kernel is", [
  I32EnumAttrCase<"Positions", 0, "positions">, // S × i32: the rows' absolute positions
  I32EnumAttrCase<"Tokens", 1, "tokens">,       // S × i32: the rows' token ids
  I32EnumAttrCase<"Input", 2, "input">,         // S × shape, f32: a block input
  I32EnumAttrCase<"Output", 3, "output">,       // S × shape, f32: a block output
  I32EnumAttrCase<"Param", 4, "param">,         // a stored parameter, in its stored shape and type
  I32EnumAttrCase<"Bank", 5, "bank">,           // the address of each slice, along the first
                                                // dimension, of a stored parameter
  I32EnumAttrCase<"Setting", 6, "setting">,     // f32 numbers of a setting (index settings: one i64)
  I32EnumAttrCase<"State", 7, "state">,         // visible × shape, f32 or bf16: what a contextual
                                                // op keeps of consecutive tokens, the last S of
                                                // them the rows;
                                                // the last S rows are written, but in the reduced
                                                // run of a dual block none
  I32EnumAttrCase<"Slots", 8, "slots">,         // visible × i32: the absolute positions of a run's
                                                // tokens, these S included; in the reduced run of a
                                                // dual block the last is not read
  I32EnumAttrCase<"Store", 9, "store">,         // S × n: a part of a parameter's patch, written
  I32EnumAttrCase<"Load", 10, "load">,          // n: a part of a parameter's patch, read
  I32EnumAttrCase<"Counts", 11, "counts">,      // S × obligations × 2, i64: harmless and harmful,
                                                // added to
  I32EnumAttrCase<"Replay", 12, "replay">,      // S, f64: the predicted replay error of the block's
                                                // output, written
  I32EnumAttrCase<"Before", 13, "before">,      // shape, f32: what a recurrence carries to the first
                                                // row; in the reduced run of a dual block, to each
                                                // row
  I32EnumAttrCase<"After", 14, "after">,        // shape, f32: what it carries on from the last row,
                                                // written; may be the memory of `before`
  I32EnumAttrCase<"Room", 15, "room">           // 1, i64: for how many tokens a run's states have
                                                // memory. Where a kernel has it, states of several
                                                // groups are groups × room × numbers
]> { let cppNamespace = "::ctxc::kernel"; }

def Kernel_Run : I32EnumAttr<"Run", "the run that a state belongs to", [
  I32EnumAttrCase<"Full", 0, "full">,      // the only run, or the full run of a dual block
  I32EnumAttrCase<"Reduced", 1, "reduced">
]> { let cppNamespace = "::ctxc::kernel"; }

def Kernel_RunParameter : EnumParameter<Kernel_Run> {
  let defaultValue = "::ctxc::kernel::Run::Full";
}

def Kernel_ArgAttr : AttrDef<Kernel_Dialect, "Arg"> {
  let mnemonic = "arg";
  let summary = "the role of a kernel's argument";
  let description = [{
    An argument of a kernel carries its role as `kernel.arg`, so that all users of the IR (the
    executor, the manifest, a reader of `--emit=linalg`) know what to pass:

    ```mlir
    %W: memref<2048x640xbf16> {kernel.arg = #kernel.arg<param, name = "mlp.up_proj.weight">}
    %K: memref<?x4x256xf32> {kernel.arg = #kernel.arg<state, index = 2, run = reduced>}
    ```

    - C1: the argument's type is a memref as its kind requires; S and the number of visible tokens
      are dynamic or fixed sizes.
    - C2: a parameter, a bank, a setting, and the parts of a patch have a name; other arguments have
      none.
    - C3: inputs, outputs, states, what recurrences carry and the parts of a patch are numbered by
      `index`, which is not negative; it is 0 for other arguments.
    - C4: only states, slots, rooms and what recurrences carry before the rows can belong to the
      reduced run.
    - C5: a bank, and a quantised matrix, which is passed as bytes, have the type of the whole
      parameter as `stored`; other arguments have none.
    - C6: no two arguments of a kernel have the same role.
  }];
  let parameters = (ins EnumParameter<Kernel_ArgKind>:$kind,
    OptionalParameter<"::mlir::StringAttr">:$name, DefaultValuedParameter<"int64_t", "0">:$index,
    Kernel_RunParameter:$run, OptionalParameter<"::mlir::RankedTensorType">:$stored);
  let assemblyFormat = "`<` $kind (`,` struct($name, $index, $run, $stored)^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether the leading dimension is the number of a run's visible tokens.
    bool isOfVisible() const { return getKind() == ArgKind::State || getKind() == ArgKind::Slots; }
  }];
}

def Kernel_Product : I32EnumAttr<"Product", "a product of attention", [
  I32EnumAttrCase<"Scores", 0, "scores">, I32EnumAttrCase<"Mixed", 1, "mixed">
]> {
  let cppNamespace = "::ctxc::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_ProductAttr : EnumAttr<Kernel_Dialect, Kernel_Product, "product"> {
  let summary = "which product of attention a linalg op is";
  let description = [{
    With rows s, groups g of r heads each, and slots t:

    - `scores`: y[s, g, r, t] += Σ_d query[s, g, r, d] key[t, g, d]
    - `mixed`: y[s, g, r, x] += Σ_t weight[s, g, r, t] value[t, g, x]

    The op has exactly these indexing maps, over five loops in the order (s, g, r, t, d) or (s, g,
    r, t, x), and its body multiplies and adds.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Kernel_CostAttr : AttrDef<Kernel_Dialect, "Cost"> {
  let mnemonic = "cost";
  let summary = "what a launch on a GPU must move and compute";
  let description = [{
    The bytes of stored parameters, states, patches and everything else, and the floating-point
    operations, each as [a, b, c]: a + b·visible0 + c·visible1. Numbers that are zero are not
    printed.

    ```mlir
    #kernel.cost<weights = [32768, 0, 0], operations = [1572864, 0, 0]>
    ```

    - C1: each has three numbers.
  }];
  let parameters = (ins
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$weights,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$cache,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$patch,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$activations,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$operations);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // CTXC_KERNEL_ATTRS_TD
