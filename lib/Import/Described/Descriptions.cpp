#include "Described.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace ctxc;

// The files families/*.json, sorted, as pairs of a type and a text.
static constexpr std::pair<StringLiteral, StringLiteral> descriptions[] = {
#include "Descriptions.inc"
};

std::vector<StringRef> described::types() {
  std::vector<StringRef> result;
  for (const auto &[type, text] : descriptions)
    result.push_back(type);
  return result;
}

StringRef described::descriptionOf(StringRef type) {
  for (const auto &[name, text] : descriptions)
    if (name == type)
      return text;
  return {};
}
