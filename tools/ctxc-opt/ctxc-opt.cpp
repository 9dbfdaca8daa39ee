// Runs any pass on any .mlir file: mlir-opt with ctxc's dialects and passes.
#include "ctxc/Import/Passes.h"
#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Lowering/Passes.h"
#include "ctxc/Shard/Passes.h"
#include "ctxc/Shard/Split.h"
#include "ctxc/Support/StandardStreams.h"
#include "ctxc/Transforms/Passes.h"
#include "dialects/Graph/Graph.h"
#include "dialects/Patch/Patch.h"
#include "dialects/XF/XF.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tools/CommandLine/Programs.h"

int ctxc::runCtxcOpt(int argc, char **argv) {
  ctxc::openStandardStreams();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  ctxc::registerImportPasses();
  ctxc::registerTransformsPasses();
  registry.insert<ctxc::xf::XFDialect, ctxc::graph::GraphDialect, ctxc::patch::PatchDialect,
                  ctxc::kernel::KernelDialect>();
  ctxc::registerLoweringModels(registry);
  ctxc::shard::registerSplitModels(registry);
  ctxc::registerLoweringPasses();
  ctxc::shard::registerShardPasses();
  ctxc::registerLoweringPipelines();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "context compiler pass driver\n", registry));
}
