#include "Folds.h"
#include "OpText.h"
#include "ctxc/Report/Place.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ctxc;

/// So many ops of one expression are still drawn one by one.
static constexpr unsigned mostApart = 3;

/// "layers.0.experts.#.up": a module's path without its innermost number, which a loop counts.
static std::string withoutNumber(StringRef path) {
  SmallVector<StringRef> parts;
  path.split(parts, '.');
  for (StringRef &part : llvm::reverse(parts))
    if (llvm::all_of(part, llvm::isDigit)) {
      part = "#";
      break;
    }
  return llvm::join(parts, ".");
}

/// "slice from" of "slice from 12".
static std::string withoutNumbers(StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, ' ');
  double number;
  llvm::erase_if(words, [&](StringRef word) { return !word.getAsDouble(number); });
  return llvm::join(words, " ");
}

std::string Folds::text(Operation *op) const {
  unsigned all = count(op);
  return all == 1 ? opText(op) : withoutNumbers(opText(op)) + ", " + std::to_string(all) + " times";
}

Folds::Folds(xf::BlockOp block, llvm::function_ref<unsigned(Operation *)> kind) {
  using Key = std::tuple<std::string, unsigned, unsigned, std::string, std::string, unsigned>;
  llvm::MapVector<Key, SmallVector<Operation *>, std::map<Key, unsigned>> groups;
  for (Operation &op : block.getRegion().front()) {
    Place place = placeOf(op.getLoc());
    if (op.getNumOperands() && place.width)
      groups[{place.file, place.line, place.column, withoutNumber(place.module),
              withoutNumbers(opText(&op)), kind(&op)}]
          .push_back(&op);
  }
  for (const auto &[key, ops] : groups) {
    if (ops.size() <= mostApart)
      continue;
    for (Operation *op : ops)
      first[op] = ops.front();
    counts[ops.front()] = ops.size();
  }
}
