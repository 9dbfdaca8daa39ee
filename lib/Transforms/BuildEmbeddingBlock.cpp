// The model's first block for a given embedding in place of a token's.
#include "ctxc/Transforms/BuildPatch.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace ctxc {

Value valueOfToken(xf::BlockOp block) {
  xf::EmbedOp embed;
  for (xf::TokenOp token : block.getBody().getOps<xf::TokenOp>())
    for (Operation *user : token->getUsers()) {
      if (embed || !isa<xf::EmbedOp>(user))
        return Value();
      embed = cast<xf::EmbedOp>(user);
    }
  if (!embed)
    return Value();
  Value x = embed.getResult();
  while (x.hasOneUse() && isa<xf::TimesOp>(*x.user_begin()))
    x = x.user_begin()->getResult(0);
  return x;
}

xf::BlockOp buildEmbeddingBlock(xf::BlockOp block, StringRef name) {
  if (block.getNumArguments() != 0 || !valueOfToken(block) ||
      llvm::any_of(block.getBody().getOps(),
                   [](Operation &op) { return isa<xf::ContextualOpInterface>(op); }))
    return nullptr;
  OpBuilder b(block);
  b.setInsertionPointAfter(block);
  auto copy = cast<xf::BlockOp>(b.clone(*block));
  copy.setSymName(name);
  Value x = valueOfToken(copy);
  Block &body = copy.getBody().front();
  x.replaceAllUsesWith(body.addArgument(x.getType(), x.getLoc()));
  copy.setFunctionType(b.getFunctionType(x.getType(), block.getResultTypes()));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!isa<xf::YieldOp>(op) && op.use_empty())
      op.erase();
  return copy;
}

} // namespace ctxc
