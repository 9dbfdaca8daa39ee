// A text changed by lines and tokens: a model's, in which the names of ops and attributes are those
// that the dialects register, or a template's.
#include "Mutate.h"
#include "ctxc/Session/Model.h"
#include "llvm/ADT/StringExtras.h"
#include <vector>

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

namespace {

/// Names that an .mlir file can have; from the ops' own definitions.
struct Words {
  std::vector<std::string> ops, attributes;
};

const Words &namesOfDialects() {
  static const Words all = [] {
    mlir::DialectRegistry dialects;
    registerModelDialects(dialects);
    mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    Words found;
    for (mlir::RegisteredOperationName op : context.getRegisteredOperations()) {
      StringRef dialect = op.getDialectNamespace();
      if (dialect != "xf" && dialect != "patch")
        continue;
      found.ops.push_back(op.getStringRef().str());
      for (mlir::StringAttr name : op.getAttributeNames())
        found.attributes.push_back(name.str());
    }
    return found;
  }();
  return all;
}

/// Tokens of one kind can stand for each other.
enum class Kind { Value, Symbol, Alias, String, Number, Op, Word, Space, Other };

struct Token {
  Kind kind;
  std::string text;
};

bool isNamePart(char c) { return llvm::isAlnum(c) || StringRef("$._-").contains(c); }

Token next(StringRef text) {
  char c = text[0];
  auto rest = [&](auto holds) {
    StringRef inner = text.drop_front().take_while(holds);
    return text.take_front(1 + inner.size()).str();
  };
  if (c == '%' || c == '@' || c == '#' || c == '!')
    return {c == '%' ? Kind::Value : c == '@' ? Kind::Symbol : Kind::Alias, rest(isNamePart)};
  if (c == '"')
    return {Kind::String, text.take_front(text.drop_front().find('"') + 2).str()};
  if (llvm::isDigit(c))
    return {Kind::Number, rest([](char d) { return llvm::isDigit(d) || d == '.'; })};
  if (llvm::isAlpha(c)) {
    std::string word = rest([](char d) { return llvm::isAlnum(d) || d == '_' || d == '.'; });
    return {StringRef(word).contains('.') ? Kind::Op : Kind::Word, word};
  }
  if (llvm::isSpace(c))
    return {Kind::Space, rest(llvm::isSpace)};
  return {Kind::Other, text.take_front(1).str()};
}

std::vector<Token> tokensOf(StringRef text) {
  std::vector<Token> tokens;
  while (!text.empty()) {
    tokens.push_back(next(text));
    text = text.drop_front(tokens.back().text.size());
  }
  return tokens;
}

/// Another token of the kind.
std::string instead(const Token &token, const std::vector<Token> &tokens, const Words &words,
                    Random &random) {
  if (token.kind == Kind::Op && !words.ops.empty() && random.oneIn(2))
    return words.ops[random.below(words.ops.size())];
  if (token.kind == Kind::Word && !words.attributes.empty() && random.oneIn(4))
    return words.attributes[random.below(words.attributes.size())];
  if (token.kind == Kind::Number && random.oneIn(2))
    return std::to_string(boundary(random));
  std::vector<const Token *> same;
  for (const Token &other : tokens)
    if (other.kind == token.kind)
      same.push_back(&other);
  return same[random.below(same.size())]->text;
}

void changeTokens(std::string &text, const Words &words, Random &random) {
  std::vector<Token> tokens = tokensOf(text);
  if (tokens.empty())
    return;
  Token &token = tokens[random.below(tokens.size())];
  switch (random.below(8)) {
  case 0:
    token.text.clear();
    break;
  case 1:
    token.text += " " + tokens[random.below(tokens.size())].text;
    break;
  case 2:
    token.text = plainly(token.text, token.text.size() + 4);
    break;
  default:
    token.text = instead(token, tokens, words, random);
  }
  text.clear();
  for (const Token &each : tokens)
    text += each.text;
}

std::vector<std::string> linesOf(StringRef text) {
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  return {lines.begin(), lines.end()};
}

void changeLines(std::string &text, Random &random) {
  std::vector<std::string> lines = linesOf(text);
  size_t a = random.below(lines.size()), b = random.below(lines.size());
  switch (random.below(3)) {
  case 0:
    lines.erase(lines.begin() + a);
    break;
  case 1:
    std::swap(lines[a], lines[b]);
    break;
  default:
    lines.insert(lines.begin() + a, std::string(lines[b]));
  }
  text = llvm::join(lines, "\n");
}

/// Every name of one value, symbol or number becomes another.
void changeEverywhere(std::string &text, const Words &words, Random &random) {
  std::vector<Token> tokens = tokensOf(text);
  if (tokens.empty())
    return;
  const Token token = tokens[random.below(tokens.size())];
  if (token.kind == Kind::Space || token.kind == Kind::Other)
    return;
  std::string other = instead(token, tokens, words, random);
  text.clear();
  for (const Token &each : tokens)
    text += each.kind == token.kind && each.text == token.text ? other : each.text;
}

std::string changed(StringRef bytes, const Words &words, Random &random) {
  std::string text = bytes.str();
  for (size_t i = 0, n = 1 + random.below(4); i < n; ++i)
    switch (random.below(6)) {
    case 0:
      changeLines(text, random);
      break;
    case 1:
      changeEverywhere(text, words, random);
      break;
    default:
      changeTokens(text, words, random);
    }
  return text;
}

} // namespace

std::string fuzz::mutateModelText(StringRef text, Random &random) {
  return changed(text, namesOfDialects(), random);
}

std::string fuzz::mutateTemplate(StringRef text, Random &random) {
  return changed(text, Words(), random);
}

std::string fuzz::crossLines(StringRef a, StringRef b, Random &random) {
  std::vector<std::string> to = linesOf(a), from = linesOf(b);
  size_t first = random.below(from.size());
  size_t count = 1 + random.below(std::min<size_t>(from.size() - first, 8));
  size_t at = random.below(to.size());
  if (random.oneIn(2))
    to.erase(to.begin() + at, to.begin() + std::min(to.size(), at + count));
  to.insert(to.begin() + at, from.begin() + first, from.begin() + first + count);
  return llvm::join(to, "\n");
}
