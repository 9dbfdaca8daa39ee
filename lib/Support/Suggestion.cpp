#include "ctxc/Support/Suggestion.h"
#include "llvm/ADT/Twine.h"

using llvm::StringRef;

std::string ctxc::suggestion(StringRef word, llvm::ArrayRef<StringRef> candidates) {
  StringRef best;
  unsigned bestDistance = 1 + word.size() / 3;
  for (StringRef candidate : candidates) {
    unsigned distance = word.edit_distance(candidate, true, bestDistance + 1);
    if (distance < bestDistance || (distance == bestDistance && best.empty())) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best.empty() ? "" : ("; did you mean '" + best + "'?").str();
}
