#include "Spelling.h"

using namespace ctxc;
using llvm::StringLiteral;
using llvm::StringRef;

std::string pt2::nameOfOp(StringRef target) {
  target.consume_front("torch.ops.");
  static constexpr std::pair<StringLiteral, StringLiteral> names[] = {
      {"aten.multiply.", "aten.mul."},     {"aten.divide.", "aten.div."},
      {"aten.true_divide.", "aten.div."},  {"aten.subtract.", "aten.sub."},
      {"aten.absolute.", "aten.abs."},     {"aten.negative.", "aten.neg."},
      {"aten._unsafe_view.", "aten.view."}};
  for (auto [second, first] : names)
    if (target.consume_front(second))
      return (first + target).str();
  return target.str();
}
