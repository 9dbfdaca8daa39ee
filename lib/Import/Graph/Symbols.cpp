#include "Symbols.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc::pt2;

namespace {

constexpr size_t longestSize = 4096;
constexpr unsigned deepestSize = 64;

/// Reads one expression from front to back.
class SizeParser {
public:
  explicit SizeParser(StringRef text) : text(text) {}

  std::optional<Size> whole() {
    std::optional<Size> size = expression(0);
    return text.empty() ? size : std::nullopt;
  }

private:
  static bool isWord(char c) { return isAlnum(c) || c == '_'; }
  static std::string textOf(const Size &size) {
    if (auto *number = std::get_if<int64_t>(&size))
      return std::to_string(*number);
    return std::get<std::string>(size);
  }

  std::optional<Size> expression(unsigned depth) {
    if (depth > deepestSize)
      return std::nullopt;
    StringRef head = text.take_while(isWord);
    text = text.drop_front(head.size());
    if (head.empty() || !text.consume_front("("))
      return std::nullopt;
    if (head == "Symbol")
      return symbol();
    if (head == "Integer")
      return integer();
    std::string result = head.str() + "(";
    for (bool isFirst = true;; isFirst = false) {
      std::optional<Size> part = expression(depth + 1);
      if (!part)
        return std::nullopt;
      result += (isFirst ? "" : ", ") + textOf(*part);
      if (text.consume_front(")"))
        return Size(result + ")");
      if (!text.consume_front(", "))
        return std::nullopt;
    }
  }

  /// The name; what sympy assumes of it is skipped.
  std::optional<Size> symbol() {
    if (!text.consume_front("'"))
      return std::nullopt;
    StringRef name = text.take_while(isWord);
    text = text.drop_front(name.size());
    size_t end = text.find(')');
    if (name.empty() || !text.consume_front("'") || end == StringRef::npos)
      return std::nullopt;
    text = text.drop_front(text.find(')') + 1);
    return Size(name.str());
  }

  std::optional<Size> integer() {
    int64_t number;
    if (text.consumeInteger(10, number) || !text.consume_front(")"))
      return std::nullopt;
    return Size(number);
  }

  StringRef text;
};

} // namespace

std::optional<Size> ctxc::pt2::readSize(StringRef srepr) {
  if (srepr.size() > longestSize)
    return std::nullopt;
  return SizeParser(srepr).whole();
}

/// Drops one expression from the front.
static bool dropSize(llvm::StringRef &text, unsigned depth) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; };
  llvm::StringRef head = text.take_while(isWord);
  text = text.drop_front(head.size());
  if (head.empty() || depth > deepestSize || !text.consume_front("("))
    return !head.empty() && depth <= deepestSize;
  do
    if (!dropSize(text, depth + 1))
      return false;
  while (text.consume_front(", "));
  return text.consume_front(")");
}

bool ctxc::pt2::isSizeText(llvm::StringRef text) {
  return text.size() <= longestSize && dropSize(text, 0) && text.empty();
}

/// The expression of `found`, if `marks` is a line of carets below its text. Both are indented by
/// four spaces more than the line in the file.
static bool readMarks(StringRef marks, StringRef text, SourceLine &found) {
  size_t first = marks.find_first_not_of(' ');
  StringRef carets = marks.drop_front(std::min(first, marks.size())).rtrim(' ');
  if (carets.empty() || carets.find_first_not_of("^~") != StringRef::npos || first < 4 ||
      !text.consume_front("    "))
    return false;
  found.column = first - 3;
  found.width = carets.size();
  found.text = text.rtrim();
  return true;
}

llvm::SmallVector<SourceLine> ctxc::pt2::ownLines(StringRef stackTrace) {
  llvm::SmallVector<SourceLine> lines;
  while (!stackTrace.empty()) {
    StringRef line;
    std::tie(line, stackTrace) = stackTrace.split('\n');
    line = line.ltrim();
    if (!line.consume_front("File \""))
      continue;
    auto [file, rest] = line.split('"');
    unsigned number;
    if (file.starts_with("torch/") || file.contains("-packages/torch/") ||
        !rest.consume_front(", line ") || rest.consumeInteger(10, number))
      continue;
    auto [text, below] = stackTrace.split('\n');
    SourceLine found;
    found.file = file;
    found.line = number;
    if (!text.ltrim().starts_with("File \"") && !readMarks(below.split('\n').first, text, found))
      found.text = text.trim();
    lines.push_back(found);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}
