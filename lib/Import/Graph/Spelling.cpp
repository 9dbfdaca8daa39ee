#include "Spelling.h"

using namespace ctxc;
using llvm::StringLiteral;
using llvm::StringRef;

std::string pt2::nameOfOp(StringRef target) {
  target.consume_front("torch.ops.");
  static constexpr std::pair<StringLiteral, StringLiteral> names[] = {
      {"aten.multiply.", "aten.mul."},    {"aten.divide.", "aten.div."},
      {"aten.true_divide.", "aten.div."}, {"aten.subtract.", "aten.sub."},
      {"aten.absolute.", "aten.abs."},    {"aten.negative.", "aten.neg."}};
  for (auto [second, first] : names)
    if (target.consume_front(second))
      return (first + target).str();
  return target.str();
}

void pt2::dropUnusedResults(graph::ProgramOp program) {
  auto isUnused = [](mlir::Value result) { return result.use_empty(); };
  for (auto call : llvm::make_early_inc_range(program.getBody().getOps<graph::CallOp>())) {
    if (call.getTarget() != "aten.native_layer_norm.default" ||
        !llvm::all_of(call.getResults().drop_front(), isUnused))
      continue;
    mlir::OpBuilder builder(call);
    auto only = graph::CallOp::create(builder, call.getLoc(), call.getResult(0).getType(),
                                      "aten.layer_norm.default", call.getOperands(),
                                      call.getArguments(), call.getPath(), call.getVisible());
    call.getResult(0).replaceAllUsesWith(only.getResult(0));
    call.erase();
  }
}
