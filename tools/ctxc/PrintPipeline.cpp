// ctxc compile --print-pipeline
#include "Commands.h"
#include "ctxc/Lowering/Passes.h"
#include "ctxc/Support/Error.h"
#include "mlir/Pass/PassManager.h"
#include "tools/CommandLine/Streams.h"

using namespace ctxc;
using namespace ctxc::driver;

llvm::Expected<int> driver::printPipeline(const Arguments &arguments) {
  mlir::MLIRContext context;
  mlir::PassManager pm = mlir::PassManager::on<mlir::ModuleOp>(&context);
  llvm::StringRef name = arguments.get("--target", "native");
  auto refuse = [](llvm::Error error) {
    return makeError("--target: " + llvm::toString(std::move(error)));
  };
  if (GpuTarget::isOne(name)) {
    auto target = GpuTarget::named(name);
    if (!target)
      return refuse(target.takeError());
    auto rows = arguments.integer("--rows", 1, 4096, 1);
    if (!rows)
      return rows.takeError();
    buildGpuPipeline(pm, **target, *rows);
  } else {
    auto target = CpuTarget::named(name);
    if (!target)
      return refuse(target.takeError());
    if (arguments.has("--rows"))
      return makeError("--rows: is of kernels for GPUs; expected --target to name one");
    buildCpuPipeline(pm, *target);
  }
  pm.printAsTextualPipeline(out());
  out() << "\n";
  return ExitGood;
}
