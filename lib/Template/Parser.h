// From tokens to the tree. After the first mistake every function returns at once.
#ifndef CTXC_LIB_TEMPLATE_PARSER_H
#define CTXC_LIB_TEMPLATE_PARSER_H

#include "Ast.h"
#include "Lexer.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace ctxc::jinja {

class Parser {
public:
  Parser(std::vector<Token> tokens, llvm::StringRef name) : tokens(std::move(tokens)), name(name) {}

  /// The whole template.
  llvm::Expected<Block> run();

private:
  /// The deepest tree of an expression, and the deepest nesting of expressions and of tags: the
  /// tree is walked by recursion, and templates of chats stay below a tenth of it.
  static constexpr unsigned maxHeight = 200;

  // Parser.cpp: expressions.
  ExprPtr expression();
  ExprPtr either();
  ExprPtr both();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool withFilters);
  ExprPtr primary();
  ExprPtr postfix(ExprPtr operand);
  ExprPtr filtersAndTests(ExprPtr operand);
  ExprPtr subscript(ExprPtr object);
  ExprPtr filter(ExprPtr subject);
  ExprPtr test(ExprPtr subject);
  ExprPtr call(ExprPtr function);
  std::unique_ptr<ArgumentExprs> arguments();
  ExprPtr tuple(bool mayBeEmpty);
  ExprPtr listOrDict();

  // Statements.cpp
  Block block(llvm::ArrayRef<llvm::StringRef> ends);
  void statement(Block &to);
  Statement ifStatement(unsigned line);
  Statement forStatement(unsigned line);
  Statement setStatement(unsigned line);
  Statement macroStatement(unsigned line);
  Statement callStatement(unsigned line);
  Statement filterStatement(unsigned line);
  Statement withStatement(unsigned line);
  Target target(bool mayBeAttribute);
  Target targets(bool mayBeAttribute);
  std::vector<Parameter> parameters();
  void blockEnd() { expectKind(Token::BlockEnd, "the end of the tag"); }
  void body(Statement &of, llvm::StringRef end);

  const Token &now() const { return tokens[at]; }
  const Token &ahead() const { return tokens[std::min(at + 1, tokens.size() - 1)]; }
  Token take();
  bool takeName(llvm::StringRef word);
  bool takeOperator(llvm::StringRef spelled);
  void expectOperator(llvm::StringRef spelled);
  void expectName(llvm::StringRef word);
  void expectKind(Token::Kind kind, llvm::StringRef what);
  std::string identifier(llvm::StringRef what);
  ExprPtr fail(const llvm::Twine &message);
  bool failed() const { return !message.empty(); }
  ExprPtr make(Expr::Kind kind, unsigned line, std::vector<ExprPtr> operands = {},
               std::string name = "");
  ExprPtr constant(Value value);
  ExprPtr withHeight(ExprPtr made);

  /// Counts how deep the parser has called itself.
  struct Deeper {
    Deeper(Parser &parser) : parser(parser) {
      if (++parser.depth > maxHeight)
        parser.fail("is nested too deep");
    }
    ~Deeper() { --parser.depth; }
    Parser &parser;
  };

  std::vector<Token> tokens;
  llvm::StringRef name;
  size_t at = 0;
  unsigned depth = 0, loops = 0;
  std::string message;
};

/// How a message shows a token.
std::string describe(const Token &token);

} // namespace ctxc::jinja

#endif // CTXC_LIB_TEMPLATE_PARSER_H
