#include "ctxc/Inspect/ContextParts.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using llvm::StringRef;

static bool endsSentence(StringRef text) {
  if (text.contains('\n'))
    return true;
  for (bool again = true; again;) {
    again = false;
    for (StringRef closing : {"\"", "'", ")", "]", "”", "’", "»"})
      again |= text.consume_back(closing);
  }
  return llvm::any_of(llvm::ArrayRef<StringRef>{".", "!", "?", "…", "。", "！", "？"},
                      [&](StringRef mark) { return text.ends_with(mark); });
}

std::vector<PositionRange> ctxc::cutContext(llvm::ArrayRef<std::string> texts, Grain grain,
                                            size_t limit) {
  std::vector<PositionRange> parts;
  int64_t first = 0, count = texts.size();
  for (int64_t position = 0; position < count; ++position)
    if (grain == Grain::Token || endsSentence(texts[position]) || position + 1 == count) {
      parts.push_back({first, position});
      first = position + 1;
    }
  size_t joined = (parts.size() + limit - 1) / std::max<size_t>(limit, 1);
  if (joined <= 1)
    return parts;
  std::vector<PositionRange> result;
  for (size_t i = 0; i < parts.size(); i += joined)
    result.push_back({parts[i].first, parts[std::min(i + joined, parts.size()) - 1].last});
  return result;
}
