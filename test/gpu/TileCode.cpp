// Prints the code of a contraction of many rows: tile-code TARGET ELEMENT ROWS OUT IN [added]
// [rounded].
#include "test/unit/GPU/TileKernel.h"

using namespace ctxc;
using namespace ctxc::test;

int main(int argc, char **argv) {
  if (argc < 6) {
    llvm::errs() << "usage: tile-code TARGET ELEMENT ROWS OUT IN [added] [rounded]\n";
    return 1;
  }
  TileKernel kernel{std::atoll(argv[3]), std::atoll(argv[4]), std::atoll(argv[5]), argv[2]};
  for (llvm::StringRef word : llvm::ArrayRef(argv + 6, argc - 6))
    (word == "added" ? kernel.accumulates : kernel.rounded) = true;
  mlir::MLIRContext context;
  TileKernel::loadDialects(context);
  auto target = GpuTarget::named(argv[1]);
  if (!target) {
    llvm::errs() << llvm::toString(target.takeError()) << "\n";
    return 1;
  }
  auto module =
      mlir::OwningOpRef<mlir::ModuleOp>(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)));
  std::vector<unsigned> arguments;
  kernel.write(*module, **target, arguments);
  auto code = (*target)->emit(*module);
  if (!code) {
    llvm::errs() << llvm::toString(code.takeError()) << "\n";
    return 1;
  }
  llvm::outs() << *code;
  return 0;
}
