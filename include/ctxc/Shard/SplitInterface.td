#ifndef CTXC_SHARD_SPLITINTERFACE_TD
#define CTXC_SHARD_SPLITINTERFACE_TD

include "mlir/IR/OpBase.td"

def SplitOpInterface : OpInterface<"SplitOpInterface"> {
  let cppNamespace = "::ctxc::shard";
  let description = [{
    An op that says how ranks can share its work, each with a part of its operands. Ops of xf get it
    as external models (registerSplitModels); an op of another dialect joins in the same way. An op
    without this interface is computed by every rank, on whole values.
  }];
  let methods = [
    InterfaceMethod<"Along which of its indices the op can be cut into `ranks` parts.",
      "::ctxc::shard::SplitRule", "getSplitRule", (ins "int64_t":$ranks)>
  ];
}

#endif // CTXC_SHARD_SPLITINTERFACE_TD
