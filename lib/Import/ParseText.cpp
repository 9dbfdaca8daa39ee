#include "ParseText.h"
#include "dialects/XF/XF.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc;

namespace {

/// Gives `value` the name at `range`, "%name", unless it is a number.
mlir::Location named(mlir::Location loc, SMRange range) {
  if (!range.isValid())
    return loc;
  StringRef name(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  if (!name.consume_front("%") || name.empty() || isDigit(name.front()))
    return loc;
  return mlir::NameLoc::get(mlir::StringAttr::get(loc.getContext(), name), loc);
}

/// Keeps the names that the file gives to values, which MLIR's parser drops, as
/// locations: messages and printModel then show the author's own names.
void keepNames(const mlir::AsmParserState &state) {
  for (const auto &op : state.getOpDefs())
    if (!op.resultGroups.empty())
      op.op->setLoc(named(op.op->getLoc(), op.resultGroups.front().definition.loc));
  for (const auto &block : state.getBlockDefs())
    for (auto [argument, definition] : llvm::zip(block.block->getArguments(), block.arguments))
      argument.setLoc(named(argument.getLoc(), definition.loc));
}

} // namespace

mlir::OwningOpRef<mlir::ModuleOp> ctxc::parseText(const SourceMgr &sources, StringRef path,
                                                  mlir::MLIRContext &context) {
  mlir::Block ops;
  mlir::AsmParserState state;
  // Verified by the caller, so that messages have the names.
  mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  if (failed(mlir::parseAsmSourceFile(sources, &ops, config, &state)))
    return {};
  keepNames(state);
  auto module = llvm::hasSingleElement(ops) ? dyn_cast<mlir::ModuleOp>(ops.front()) : nullptr;
  if (module) {
    module->remove();
  } else {
    module = mlir::ModuleOp::create(mlir::FileLineColLoc::get(&context, path, 1, 1));
    module.getBody()->getOperations().splice(module.getBody()->end(), ops.getOperations());
  }
  mlir::OwningOpRef<mlir::ModuleOp> owned(module);
  return owned;
}
