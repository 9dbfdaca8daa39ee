#ifndef CTXC_TRANSFORMS_PASSES_TD
#define CTXC_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def OutlineModelEnds : Pass<"xf-outline-model-ends", "::mlir::ModuleOp"> {
  let summary = "make a model a chain of layers";
  let description = [{
    The ops that feed a model's layers become the block `<model>_embed`, and the ops that read
    their results the block `<model>_head`, so that everything that runs is an `xf.layer`.
    Ops between layers are an error.

    ```mlir
    xf.model @m {
      %id = xf.token : tensor<i32>
      %E = xf.param "embed.weight" : tensor<11x6xf32>
      %x = xf.embed %E[%id] : tensor<11x6xf32>, tensor<i32>
      %y = xf.layer @block(%x) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
      %logits = xf.linear %E * %y : tensor<11x6xf32>, tensor<6xf32>
      xf.yield %logits : tensor<11xf32>
    }
    ```
    becomes
    ```mlir
    xf.model @m {
      %x = xf.layer @m_embed() at "" : () -> tensor<6xf32>
      %y = xf.layer @block(%x) at "layers.0." : (tensor<6xf32>) -> tensor<6xf32>
      %logits = xf.layer @m_head(%y) at "" : (tensor<6xf32>) -> tensor<11xf32>
      xf.yield %logits : tensor<11xf32>
    }
    ```
  }];
  let dependentDialects = ["::ctxc::xf::XFDialect"];
}

def DropUnreadOutputs : Pass<"xf-drop-unread-outputs", "::mlir::ModuleOp"> {
  let summary = "remove outputs of layers that do not reach the logits";
  let description = [{
    An output that nothing reads need not be what it is with the context. `ctxc` does this to every
    model that it reads.

    ```mlir
    %y:2 = xf.layer @b(%x) at "layers.0." : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    xf.yield %y#0 : tensor<4xf32>
    ```
    becomes
    ```mlir
    %y = xf.layer @b(%x) at "layers.0." : (tensor<4xf32>) -> tensor<4xf32>
    xf.yield %y : tensor<4xf32>
    ```
  }];
  let statistics = [Statistic<"numDropped", "num-dropped", "outputs of layers that were removed">];
}

def FoldLayers : Pass<"xf-fold-layers", "::mlir::ModuleOp"> {
  let summary = "join layers that are only a mixer with the next layer that can be patched";
  let description = [{
    A layer that reads the context and has no parameter outside of its contextual part is joined
    with the layers behind it, up to the first that has such a parameter, if nothing else reads the
    values between them. `ctxc` does this to every model that it reads.

    ```mlir
    %y = xf.layer @mixer(%x) at "layers.0." : (tensor<4xf32>) -> tensor<4xf32>
    %z = xf.layer @mlp(%y) at "layers.1." : (tensor<4xf32>) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    %z = xf.layer @mixer_mlp(%x) at "layers.1." bind {previous.o = "layers.0.o"} : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let statistics = [Statistic<"numFolded", "num-folded", "layers that have become part of another">];
}

def PermuteParts : Pass<"xf-permute-parts", "::mlir::ModuleOp"> {
  let summary = "slices of one value, put together in another order, become a permutation";
  let description = [{
    A concatenation of slices that together hold each entry of one value once becomes one op, which an
    output chain can go through. `ctxc` does this to every model that it reads.

    ```mlir
    %a = xf.slice %heads from 0 : tensor<4x8xf32> to tensor<1x8xf32>
    %b = xf.slice %heads from 1 : tensor<4x8xf32> to tensor<3x8xf32>
    %rolled = xf.concat %b, %a : tensor<3x8xf32>, tensor<1x8xf32>
    ```
    becomes
    ```mlir
    %rolled = xf.permute %heads parts [1, 3] by [1, 0] : tensor<4x8xf32>
    ```
  }];
  let statistics = [Statistic<"numPermuted", "num-permuted", "concatenations that were replaced">];
}

// Passes that call the planner, and their options.
defvar updateValues = [{::ctxc::patch::updateValues()}];

class BuildPass<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::ctxc::patch::PatchDialect"];
  let options = [
    Option<"update", "update", "::ctxc::patch::UpdateKind", "::ctxc::patch::UpdateKind::least",
           "the update of a post-norm scale", updateValues>,
    Option<"startLayer", "start-layer", "unsigned", "0", "the first layer that is patched">,
    ListOption<"frozen", "frozen", "std::string", "parameters, by the blocks' names, that may not be patched">
  ];
  let statistics = [Statistic<"numBuilt", "num-built", "blocks built">];
}

def BuildDual : BuildPass<"patch-build-dual"> {
  let summary = "build blocks that run the full and the reduced run together, and form the patch";
  let description = [{
    Builds beside every block its dual block `<block>_dual` by the paper's plan, once
    for each distinct set of bindings that layers give it. A block that cannot be
    controlled is an error; a block that does not read the context gets no dual block.

    ```mlir
    xf.block @ffn(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c = xf.contextual "mix"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %v = xf.add %x, %c : tensor<4xf32>
      %W = xf.param "w" : tensor<4x4xf32>
      %d = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
      %y = xf.add %v, %d : tensor<4xf32>
      xf.yield %y : tensor<4xf32>
    }
    ```
    gets beside it
    ```mlir
    xf.block @ffn_dual(%x_C: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %c_C = xf.contextual "mix"(%x_C) run full : (tensor<4xf32>) -> tensor<4xf32>
      %c = xf.contextual "mix"(%x) run reduced : (tensor<4xf32>) -> tensor<4xf32>
      %v_C = xf.add %x_C, %c_C : tensor<4xf32>
      %v = xf.add %x, %c : tensor<4xf32>
      %W = xf.param "w" : tensor<4x4xf32>
      %d_C = xf.linear %W * %x_C : tensor<4x4xf32>, tensor<4xf32>
      %d_0 = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
      %y_C = xf.add %v_C, %d_C : tensor<4xf32>
      %d_T = xf.sub %y_C, %v : tensor<4xf32>
      patch.obligation nonzero_vector %x counts 0 "output controllability of outer weight matrix" : tensor<4xf32>
      %u, %w = patch.rank1 to %d_T from %d_0 at %x : tensor<4xf32>, tensor<4xf32>
      %d = patch.apply_rank1 %d_0 + %u, %w at %x : tensor<4xf32>, tensor<4xf32>
      %y = xf.add %v, %d : tensor<4xf32>
      patch.store "w" %u, %w : tensor<4xf32>, tensor<4xf32>
      xf.yield %y_C, %y : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
}

def BuildApplied : BuildPass<"patch-build-applied"> {
  let summary = "build blocks that run the ordinary forward with a given patch";
  let description = [{
    Builds beside every block its applied block `<block>_applied`, for the plans of
    `--patch-build-dual`: it loads the patch that the dual block stores.

    ```mlir
    %d = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
    ```
    becomes there
    ```mlir
    %u, %w = patch.load "w" : tensor<4xf32>, tensor<4xf32>
    %d_0 = xf.linear %W * %x : tensor<4x4xf32>, tensor<4xf32>
    %d = patch.apply_rank1 %d_0 + %u, %w at %x : tensor<4xf32>, tensor<4xf32>
    ```
  }];
}

def PackLinears : Pass<"patch-pack-linears", "::ctxc::xf::BlockOp"> {
  let summary = "read a matrix once for all vectors that it multiplies";
  let description = [{
    Replaces `xf.linear` ops that share a weight by one `patch.linears` at the place
    of the last, unless one of them needs another's result, and `xf.expert_linear` ops by one
    `patch.expert_linears`. Ops that read an earlier result are moved behind it. A dual block
    then reads every byte of its weights once.

    ```mlir
    %g_C = xf.linear %W * %z_C : tensor<10x6xf32>, tensor<6xf32>
    %g = xf.linear %W * %z : tensor<10x6xf32>, tensor<6xf32>
    ```
    becomes
    ```mlir
    %g:2 = patch.linears %W * (%z_C, %z) : tensor<10x6xf32>, (tensor<6xf32>, tensor<6xf32>) -> (tensor<10xf32>, tensor<10xf32>)
    ```
  }];
  let dependentDialects = ["::ctxc::patch::PatchDialect"];
  let statistics = [Statistic<"numPacked", "num-packed", "xf.linear ops that share a sweep">];
}

//===----------------------------------------------------------------------===//
// Passes that change nothing, and show the results of the analyses as remarks at the ops
//===----------------------------------------------------------------------===//

def ReportContext : Pass<"xf-report-context", "::ctxc::xf::BlockOp"> {
  let summary = "remark on every op that depends on the context, or stands in the contextual part";
  let options = [Option<"inputs", "inputs", "bool", "false",
                        "take the block's inputs to depend on the context too">];
}

def ReportFacts : Pass<"xf-report-facts", "::ctxc::xf::BlockOp"> {
  let summary = "remark on the zero and image facts of every activation";
}

def ReportSites : Pass<"xf-report-sites", "::ctxc::xf::BlockOp"> {
  let summary = "remark on every op with a parameter: whether a patch may change it, or why not";
}

def ReportControl : Pass<"xf-report-control", "::mlir::ModuleOp"> {
  let summary = "report the verdict on every layer, or on every block of a module without a model";
  let description = [{
    Each block gets a remark with the verdict and the patched parameters, and the ops concerned
    get remarks with the conditions that must hold; a rejected or undecided block gets
    an error with notes. The plan is checked before it is reported.
  }];
  let options = [
    Option<"naive", "naive", "bool", "false", "patch a post-norm's scale alone">,
    Option<"startLayer", "start-layer", "unsigned", "0", "the first layer that is patched">,
    ListOption<"frozen", "frozen", "std::string", "parameters, by the blocks' names, that may not be patched">
  ];
}

#endif // CTXC_TRANSFORMS_PASSES_TD
