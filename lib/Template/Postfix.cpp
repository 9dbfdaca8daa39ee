// What follows an operand of an expression: subscripts, calls, filters and tests.
#include "Parser.h"

using namespace ctxc;
using namespace ctxc::jinja;

template <typename... Operands> static std::vector<ExprPtr> all(Operands... operands) {
  std::vector<ExprPtr> list;
  (list.push_back(std::move(operands)), ...);
  return list;
}

ExprPtr Parser::postfix(ExprPtr operand) {
  while (!failed()) {
    if (now().isOperator(".") || now().isOperator("["))
      operand = subscript(std::move(operand));
    else if (now().isOperator("("))
      operand = call(std::move(operand));
    else
      break;
  }
  return operand;
}

ExprPtr Parser::filtersAndTests(ExprPtr operand) {
  while (!failed()) {
    if (takeOperator("|"))
      operand = filter(std::move(operand));
    else if (takeName("is"))
      operand = test(std::move(operand));
    else if (now().isOperator("("))
      operand = call(std::move(operand));
    else
      break;
  }
  return operand;
}

ExprPtr Parser::subscript(ExprPtr object) {
  Token token = take();
  if (token.text == ".") {
    Token attribute = take();
    if (attribute.kind == Token::Name)
      return make(Expr::Attribute, token.line, all(std::move(object)), attribute.text);
    if (attribute.kind != Token::Integer)
      return fail("found " + describe(attribute) + ", expected a name or a number behind '.'");
    return make(Expr::Item, token.line,
                all(std::move(object), constant(Value::integer(attribute.integer))));
  }
  std::vector<ExprPtr> bounds(3);
  bool isSlice = false;
  for (unsigned i = 0; i < 3 && !failed(); ++i) {
    if (!now().isOperator(":") && !now().isOperator("]"))
      bounds[i] = expression();
    if (i == 2 || !takeOperator(":"))
      break;
    isSlice = true;
  }
  expectOperator("]");
  if (isSlice)
    return make(
        Expr::Slice, token.line,
        all(std::move(object), std::move(bounds[0]), std::move(bounds[1]), std::move(bounds[2])));
  if (!bounds[0])
    return fail("expected an index in '[]'");
  return make(Expr::Item, token.line, all(std::move(object), std::move(bounds[0])));
}

std::unique_ptr<ArgumentExprs> Parser::arguments() {
  auto made = std::make_unique<ArgumentExprs>();
  expectOperator("(");
  while (!failed() && !now().isOperator(")")) {
    if (takeOperator("*")) {
      made->spread = expression();
    } else if (takeOperator("**")) {
      made->spreadNamed = expression();
    } else if (now().kind == Token::Name && ahead().isOperator("=")) {
      std::string key = take().text;
      take();
      made->named.emplace_back(std::move(key), expression());
    } else if (made->named.empty() && !made->spread && !made->spreadNamed) {
      made->positional.push_back(expression());
    } else {
      fail("an argument without a name stands behind one with a name");
    }
    if (!now().isOperator(")"))
      expectOperator(",");
  }
  expectOperator(")");
  return made;
}

ExprPtr Parser::call(ExprPtr function) {
  unsigned line = now().line;
  ExprPtr made = make(Expr::Call, line, all(std::move(function)));
  made->arguments = arguments();
  return withHeight(std::move(made));
}

ExprPtr Parser::filter(ExprPtr subject) {
  unsigned line = now().line;
  ExprPtr made =
      make(Expr::Filter, line, all(std::move(subject)), identifier("the name of a filter"));
  if (now().isOperator("("))
    made->arguments = arguments();
  return withHeight(std::move(made));
}

ExprPtr Parser::test(ExprPtr subject) {
  bool isNegated = takeName("not");
  unsigned line = now().line;
  ExprPtr made = make(Expr::Test, line, all(std::move(subject)), identifier("the name of a test"));
  const Token &next = now();
  bool isOperand = next.kind == Token::Name || next.kind == Token::String ||
                   next.kind == Token::Integer || next.kind == Token::Real ||
                   next.isOperator("[") || next.isOperator("{");
  bool ends = next.isName("else") || next.isName("or") || next.isName("and");
  if (next.isOperator("(")) {
    made->arguments = arguments();
  } else if (isOperand && !ends) {
    if (next.isName("is"))
      return fail("a second 'is' cannot follow a test");
    made->arguments = std::make_unique<ArgumentExprs>();
    made->arguments->positional.push_back(postfix(primary()));
  }
  made = withHeight(std::move(made));
  return isNegated ? make(Expr::Not, line, all(std::move(made))) : std::move(made);
}
