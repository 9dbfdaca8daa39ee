// The tags of a template.
#include "Parser.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Template/Template.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;

static Statement newStatement(Statement::Kind kind, unsigned line) {
  Statement made;
  made.kind = kind;
  made.line = line;
  return made;
}

llvm::Expected<Block> Parser::run() {
  Block all = block({});
  if (failed())
    return makeError(message);
  return all;
}

/// Statements up to a tag with one of the words `ends`, which is the next token then; without any,
/// up to the end.
Block Parser::block(llvm::ArrayRef<StringRef> ends) {
  Deeper deeper(*this);
  Block made;
  while (!failed()) {
    unsigned line = now().line;
    if (now().kind == Token::End) {
      if (!ends.empty())
        fail("found the end of the template, expected '{% " + ends.back() + " %}'");
      break;
    }
    Token token = take();
    if (token.kind == Token::Data) {
      Statement text = newStatement(Statement::Text, line);
      text.text = std::move(token.text);
      made.statements.push_back(std::move(text));
    } else if (token.kind == Token::VariableBegin) {
      Statement output = newStatement(Statement::Output, line);
      output.first = tuple(/*mayBeEmpty=*/false);
      expectKind(Token::VariableEnd, "'}}'");
      made.statements.push_back(std::move(output));
    } else if (llvm::any_of(ends, [&](StringRef end) { return now().isName(end); })) {
      break;
    } else {
      statement(made);
    }
  }
  return made;
}

void Parser::statement(Block &to) {
  unsigned line = now().line;
  std::string tag = identifier("the name of a tag");
  Statement made;
  if (tag == "if")
    made = ifStatement(line);
  else if (tag == "for")
    made = forStatement(line);
  else if (tag == "set")
    made = setStatement(line);
  else if (tag == "macro")
    made = macroStatement(line);
  else if (tag == "call")
    made = callStatement(line);
  else if (tag == "filter")
    made = filterStatement(line);
  else if (tag == "with")
    made = withStatement(line);
  else if (tag == "generation") { // transformers' own: marks what the assistant says
    made = newStatement(Statement::Scope, line);
    body(made, "endgeneration");
  } else if ((tag == "break" || tag == "continue") && loops)
    made = newStatement(tag == "break" ? Statement::Break : Statement::Continue, line);
  else
    fail("the tag '" + tag + "' is not supported here");
  blockEnd();
  to.statements.push_back(std::move(made));
}

/// The end of the tag, and what stands before `end`, which is taken.
void Parser::body(Statement &of, StringRef end) {
  blockEnd();
  of.bodies.push_back(block(end));
  expectName(end);
}

Statement Parser::ifStatement(unsigned line) {
  Statement made = newStatement(Statement::If, line);
  do {
    made.conditions.push_back(tuple(/*mayBeEmpty=*/false));
    blockEnd();
    made.bodies.push_back(block({"elif", "else", "endif"}));
  } while (takeName("elif"));
  if (takeName("else")) {
    blockEnd();
    made.otherwise = block({"endif"});
  }
  expectName("endif");
  return made;
}

Statement Parser::forStatement(unsigned line) {
  Statement made = newStatement(Statement::For, line);
  made.targets.push_back(targets(/*mayBeAttribute=*/false));
  expectName("in");
  // A tuple of operands, each without a condition: `if` begins the test.
  std::vector<ExprPtr> operands;
  bool hasComma = false;
  do {
    operands.push_back(either());
    hasComma |= now().isOperator(",");
  } while (takeOperator(",") && now().kind != Token::BlockEnd);
  made.first =
      hasComma ? make(Expr::Tuple, line, std::move(operands)) : std::move(operands.front());
  if (takeName("if"))
    made.second = expression();
  if (now().isName("recursive"))
    fail("a recursive loop is not supported");
  blockEnd();
  ++loops;
  made.bodies.push_back(block({"else", "endfor"}));
  --loops;
  if (takeName("else")) {
    blockEnd();
    made.otherwise = block({"endfor"});
  }
  expectName("endfor");
  return made;
}

Statement Parser::setStatement(unsigned line) {
  Statement made = newStatement(Statement::Set, line);
  made.targets.push_back(targets(/*mayBeAttribute=*/true));
  if (takeOperator("=")) {
    made.first = tuple(/*mayBeEmpty=*/false);
    return made;
  }
  made.kind = Statement::SetBlock;
  while (takeOperator("|"))
    made.first = filter(std::move(made.first));
  body(made, "endset");
  return made;
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> all;
  expectOperator("(");
  while (!failed() && !now().isOperator(")")) {
    Parameter parameter;
    parameter.name = identifier("the name of a parameter");
    if (takeOperator("="))
      parameter.otherwise = expression();
    else if (!all.empty() && all.back().otherwise)
      fail("a parameter without a default stands behind one with a default");
    all.push_back(std::move(parameter));
    if (!now().isOperator(")"))
      expectOperator(",");
  }
  expectOperator(")");
  return all;
}

Statement Parser::macroStatement(unsigned line) {
  Statement made = newStatement(Statement::Macro, line);
  made.text = identifier("the name of a macro");
  made.parameters = parameters();
  unsigned outer = std::exchange(loops, 0);
  body(made, "endmacro");
  loops = outer;
  return made;
}

Statement Parser::callStatement(unsigned line) {
  Statement made = newStatement(Statement::Call, line);
  if (now().isOperator("("))
    made.parameters = parameters();
  made.first = expression();
  if (!failed() && made.first->kind != Expr::Call)
    fail("'call' is not followed by a call of a macro");
  unsigned outer = std::exchange(loops, 0);
  body(made, "endcall");
  loops = outer;
  return made;
}

Statement Parser::filterStatement(unsigned line) {
  Statement made = newStatement(Statement::Filter, line);
  do
    made.first = filter(std::move(made.first));
  while (takeOperator("|"));
  body(made, "endfilter");
  return made;
}

Statement Parser::withStatement(unsigned line) {
  Statement made = newStatement(Statement::With, line);
  while (!failed() && now().kind != Token::BlockEnd) {
    if (!made.targets.empty())
      expectOperator(",");
    made.targets.push_back(target(/*mayBeAttribute=*/false));
    expectOperator("=");
    made.conditions.push_back(expression());
  }
  body(made, "endwith");
  return made;
}

Target Parser::target(bool mayBeAttribute) {
  Deeper deeper(*this);
  Target made;
  if (takeOperator("(")) {
    made = targets(mayBeAttribute);
    expectOperator(")");
    return made;
  }
  made.name = identifier("a name to assign to");
  for (StringRef word : {"true", "false", "none", "True", "False", "None"})
    if (made.name == word)
      fail("cannot assign to '" + word + "'");
  if (mayBeAttribute && takeOperator("."))
    made.attribute = identifier("the name of an attribute");
  return made;
}

Target Parser::targets(bool mayBeAttribute) {
  Target first = target(mayBeAttribute);
  if (!now().isOperator(","))
    return first;
  Target made;
  made.parts.push_back(std::move(first));
  while (takeOperator(",") && !now().isName("in") && !now().isOperator("="))
    made.parts.push_back(target(mayBeAttribute));
  return made;
}
