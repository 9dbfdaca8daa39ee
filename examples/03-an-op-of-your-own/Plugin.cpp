// The entry point that --load-dialect-plugin calls.
#include "Gates.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"

static void registerGates(mlir::DialectRegistry *registry) {
  registry->insert<gates::GatesDialect>();
  gates::registerSinModels(*registry);
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "gates", "1.0", registerGates};
}
