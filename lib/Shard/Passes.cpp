// Prints blocks as a rank runs them.
#include "ctxc/Shard/Passes.h"
#include "ctxc/Shard/LocalBlock.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::shard;

namespace {

const char *wordOf(Transfer::Kind kind) {
  switch (kind) {
  case Transfer::Sum:
    return "sum";
  case Transfer::Gather:
    return "gather";
  case Transfer::Collect:
    return "collect";
  case Transfer::Take:
    return "take";
  }
  llvm_unreachable("all kinds are above");
}

void print(const Transfer &transfer, llvm::raw_ostream &os) {
  os << wordOf(transfer.kind) << " " << transfer.from << " -> " << transfer.to << ": "
     << transfer.elements << " numbers";
  if (transfer.kind != Transfer::Sum) {
    os << ", in pieces of";
    for (int64_t piece : transfer.cut.pieces)
      os << " " << piece;
  }
  os << "\n";
}

void print(StringRef name, const LocalBlock &local, llvm::raw_ostream &os) {
  os << "block " << name << "\n";
  for (const Segment &segment : local.segments) {
    for (const Transfer &transfer : segment.before)
      print(transfer, os);
    if (!segment.block)
      continue;
    os << "segment of ";
    llvm::interleaveComma(segment.inputs, os);
    os << " -> ";
    llvm::interleaveComma(segment.outputs, os);
    os << "\n";
    xf::BlockOp block = segment.block;
    block.print(os);
    os << "\n";
  }
  os << "gives ";
  llvm::interleaveComma(local.results, os);
  os << "\n\n";
}

struct PrintLocalBlocks : PassWrapper<PrintLocalBlocks, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintLocalBlocks)
  PrintLocalBlocks() = default;
  PrintLocalBlocks(const PrintLocalBlocks &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "xf-print-local-blocks"; }
  StringRef getDescription() const override { return "print what one of several ranks runs"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<xf::XFDialect, kernel::KernelDialect>();
  }

  void runOnOperation() override {
    LocalBlocks blocks(getContext(), rank, ranks);
    llvm::SmallPtrSet<Operation *, 4> heads;
    llvm::DenseMap<Operation *, bool> isLayer;
    for (xf::ModelOp model : getOperation().getOps<xf::ModelOp>())
      for (xf::LayerOp layer : model.getBody().getOps<xf::LayerOp>()) {
        Operation *block = SymbolTable::lookupNearestSymbolFrom(layer, layer.getBlockAttr());
        isLayer[block] = !layer.getPrefix().empty();
        if (model.getBody().front().getTerminator()->getOperand(0).getDefiningOp() == layer)
          heads.insert(block);
      }
    for (xf::BlockOp block : getOperation().getOps<xf::BlockOp>()) {
      const bool isEnd = isLayer.count(block) && !isLayer.lookup(block);
      llvm::Error error =
          isEnd ? blocks.addEnd(block, heads.contains(block)) : blocks.add(block, {}, {});
      if (error) {
        block.emitError(llvm::toString(std::move(error)));
        return signalPassFailure();
      }
      if (const LocalBlock *local = blocks.find(block))
        print(block.getSymName(), *local, llvm::outs());
      else
        llvm::outs() << "block " << block.getSymName() << " is whole\n\n";
    }
  }

  Option<int64_t> ranks{*this, "ranks", llvm::cl::desc("how many share each block"),
                        llvm::cl::init(2)};
  Option<int64_t> rank{*this, "rank", llvm::cl::desc("of these, from 0"), llvm::cl::init(0)};
};

} // namespace

void shard::registerShardPasses() { PassRegistration<PrintLocalBlocks>(); }
