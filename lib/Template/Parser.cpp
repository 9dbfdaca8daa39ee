#include "Parser.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using llvm::Twine;

std::string jinja::describe(const Token &token) {
  switch (token.kind) {
  case Token::End:
    return "the end of the template";
  case Token::Data:
    return "text";
  case Token::VariableBegin:
    return "'{{'";
  case Token::VariableEnd:
    return "'}}'";
  case Token::BlockBegin:
    return "'{%'";
  case Token::BlockEnd:
    return "'%}'";
  case Token::String:
    return "a string";
  default:
    return "'" + printable(StringRef(token.text).take_front(40)) + "'";
  }
}

//===----------------------------------------------------------------------===//
// Tokens and nodes
//===----------------------------------------------------------------------===//

Token Parser::take() {
  Token token = now();
  if (at + 1 < tokens.size())
    ++at;
  return token;
}

bool Parser::takeName(StringRef word) {
  bool is = !failed() && now().isName(word);
  if (is)
    take();
  return is;
}

bool Parser::takeOperator(StringRef spelled) {
  bool is = !failed() && now().isOperator(spelled);
  if (is)
    take();
  return is;
}

void Parser::expectOperator(StringRef spelled) {
  if (!takeOperator(spelled))
    fail("found " + describe(now()) + ", expected '" + spelled + "'");
}

void Parser::expectName(StringRef word) {
  if (!takeName(word))
    fail("found " + describe(now()) + ", expected '" + word + "'");
}

void Parser::expectKind(Token::Kind kind, StringRef what) {
  if (failed())
    return;
  if (now().kind != kind)
    fail("found " + describe(now()) + ", expected " + what);
  else
    take();
}

std::string Parser::identifier(StringRef what) {
  std::string spelled = now().text;
  expectKind(Token::Name, what);
  return spelled;
}

ExprPtr Parser::fail(const Twine &why) {
  if (message.empty())
    message = (name + ": line " + Twine(now().line) + ": " + why).str();
  at = tokens.size() - 1;
  return nullptr;
}

ExprPtr Parser::make(Expr::Kind kind, unsigned line, std::vector<ExprPtr> operands,
                     std::string name) {
  auto made = std::make_unique<Expr>();
  made->kind = kind;
  made->line = line;
  made->name = std::move(name);
  made->operands = std::move(operands);
  return withHeight(std::move(made));
}

ExprPtr Parser::withHeight(ExprPtr made) {
  auto count = [&](const ExprPtr &child) {
    if (child)
      made->height = std::max(made->height, child->height + 1);
  };
  llvm::for_each(made->operands, count);
  if (made->arguments) {
    llvm::for_each(made->arguments->positional, count);
    for (const auto &[name, value] : made->arguments->named)
      count(value);
    count(made->arguments->spread);
    count(made->arguments->spreadNamed);
  }
  if (made->height > maxHeight)
    fail("an expression is nested too deep");
  return made;
}

ExprPtr Parser::constant(Value value) {
  ExprPtr made = make(Expr::Constant, now().line);
  made->value = std::move(value);
  return made;
}

template <typename... Operands> static std::vector<ExprPtr> all(Operands... operands) {
  std::vector<ExprPtr> list;
  (list.push_back(std::move(operands)), ...);
  return list;
}

//===----------------------------------------------------------------------===//
// Expressions, the loosest operator first
//===----------------------------------------------------------------------===//

ExprPtr Parser::expression() {
  Deeper deeper(*this);
  if (failed())
    return nullptr;
  ExprPtr then = either();
  while (takeName("if")) {
    unsigned line = now().line;
    ExprPtr test = either();
    ExprPtr otherwise = takeName("else") ? expression() : nullptr;
    then = make(Expr::Condition, line, all(std::move(test), std::move(then), std::move(otherwise)));
  }
  return then;
}

ExprPtr Parser::either() {
  ExprPtr left = both();
  while (takeName("or"))
    left = make(Expr::Or, now().line, all(std::move(left), both()));
  return left;
}

ExprPtr Parser::both() {
  ExprPtr left = negation();
  while (takeName("and"))
    left = make(Expr::And, now().line, all(std::move(left), negation()));
  return left;
}

ExprPtr Parser::negation() {
  Deeper deeper(*this);
  if (takeName("not"))
    return make(Expr::Not, now().line, all(negation()));
  return failed() ? nullptr : comparison();
}

ExprPtr Parser::comparison() {
  ExprPtr first = sum();
  std::vector<ExprPtr> operands;
  std::vector<std::string> words;
  unsigned line = now().line;
  while (!failed()) {
    std::string word;
    for (StringRef sign : {"==", "!=", ">=", "<=", ">", "<"})
      if (word.empty() && takeOperator(sign))
        word = sign.str();
    if (word.empty() && takeName("in"))
      word = "in";
    if (word.empty() && now().isName("not") && ahead().isName("in")) {
      take();
      take();
      word = "not in";
    }
    if (word.empty())
      break;
    words.push_back(std::move(word));
    operands.push_back(sum());
  }
  if (words.empty())
    return first;
  operands.insert(operands.begin(), std::move(first));
  ExprPtr made = make(Expr::Compare, line, std::move(operands));
  made->words = std::move(words);
  return made;
}

ExprPtr Parser::sum() {
  ExprPtr left = concatenation();
  while (!failed() && (now().isOperator("+") || now().isOperator("-"))) {
    Token sign = take();
    left = make(Expr::Arithmetic, sign.line, all(std::move(left), concatenation()), sign.text);
  }
  return left;
}

ExprPtr Parser::concatenation() {
  ExprPtr first = product();
  if (!now().isOperator("~"))
    return first;
  unsigned line = now().line;
  std::vector<ExprPtr> operands = all(std::move(first));
  while (takeOperator("~"))
    operands.push_back(product());
  return make(Expr::Concatenate, line, std::move(operands));
}

ExprPtr Parser::product() {
  ExprPtr left = power();
  while (!failed() && (now().isOperator("*") || now().isOperator("/") || now().isOperator("//") ||
                       now().isOperator("%"))) {
    Token sign = take();
    left = make(Expr::Arithmetic, sign.line, all(std::move(left), power()), sign.text);
  }
  return left;
}

ExprPtr Parser::power() {
  ExprPtr left = unary(true);
  while (takeOperator("**"))
    left = make(Expr::Arithmetic, now().line, all(std::move(left), unary(true)), "**");
  return left;
}

ExprPtr Parser::unary(bool withFilters) {
  Deeper deeper(*this);
  if (failed())
    return nullptr;
  ExprPtr made;
  unsigned line = now().line;
  if (takeOperator("-"))
    made = make(Expr::Negative, line, all(unary(false)));
  else if (takeOperator("+"))
    made = make(Expr::Positive, line, all(unary(false)));
  else
    made = primary();
  made = postfix(std::move(made));
  return withFilters ? filtersAndTests(std::move(made)) : std::move(made);
}

ExprPtr Parser::primary() {
  Token token = now();
  if (token.kind == Token::Name) {
    take();
    if (token.text == "true" || token.text == "True")
      return constant(Value::boolean(true));
    if (token.text == "false" || token.text == "False")
      return constant(Value::boolean(false));
    if (token.text == "none" || token.text == "None")
      return constant(Value::none());
    return make(Expr::Name, token.line, {}, token.text);
  }
  if (token.kind == Token::String) {
    std::string joined;
    while (now().kind == Token::String)
      joined += take().text;
    return constant(Value::string(std::move(joined)));
  }
  if (token.kind == Token::Integer || token.kind == Token::Real) {
    take();
    return constant(token.kind == Token::Integer ? Value::integer(token.integer)
                                                 : Value::real(token.real));
  }
  if (takeOperator("(")) {
    ExprPtr inner = tuple(/*mayBeEmpty=*/true);
    expectOperator(")");
    return inner;
  }
  if (token.isOperator("[") || token.isOperator("{"))
    return listOrDict();
  return fail("found " + describe(token) + ", expected an expression");
}

ExprPtr Parser::listOrDict() {
  Token token = take();
  bool isDict = token.text == "{";
  StringRef end = isDict ? "}" : "]";
  std::vector<ExprPtr> operands;
  while (!failed() && !now().isOperator(end)) {
    if (!operands.empty())
      expectOperator(",");
    if (now().isOperator(end))
      break;
    operands.push_back(expression());
    if (isDict) {
      expectOperator(":");
      operands.push_back(expression());
    }
  }
  expectOperator(end);
  return make(isDict ? Expr::Dict : Expr::List, token.line, std::move(operands));
}

/// Expressions with commas between them are a tuple; one without a comma is itself.
ExprPtr Parser::tuple(bool mayBeEmpty) {
  unsigned line = now().line;
  std::vector<ExprPtr> operands;
  bool hasComma = false;
  while (!failed()) {
    if (now().kind == Token::VariableEnd || now().kind == Token::BlockEnd || now().isOperator(")"))
      break;
    operands.push_back(expression());
    if (!takeOperator(","))
      break;
    hasComma = true;
  }
  if (!hasComma && operands.size() == 1)
    return std::move(operands.front());
  if (operands.empty() && !mayBeEmpty)
    return fail("found " + describe(now()) + ", expected an expression");
  return make(Expr::Tuple, line, std::move(operands));
}
