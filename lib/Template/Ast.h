// The syntax tree of a template.
#ifndef CTXC_LIB_TEMPLATE_AST_H
#define CTXC_LIB_TEMPLATE_AST_H

#include "ctxc/Template/Value.h"
#include <memory>
#include <string>
#include <vector>

namespace ctxc::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// The arguments of a call, a filter or a test.
struct ArgumentExprs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread, spreadNamed; ///< *sequence, **dictionary
};

struct Expr {
  enum Kind {
    Constant,    ///< value
    Name,        ///< name
    List,        ///< operands
    Tuple,       ///< operands
    Dict,        ///< operands: key, value, key, value
    Condition,   ///< operands: test, then, else (may be null)
    Or,          ///< operands: left, right
    And,         ///< operands: left, right
    Not,         ///< operands: one
    Negative,    ///< operands: one
    Positive,    ///< operands: one
    Compare,     ///< operands, and a word of `words` between each two of them
    Concatenate, ///< operands
    Arithmetic,  ///< operands: left, right; name is the operator
    Attribute,   ///< operands: object; name
    Item,        ///< operands: object, index
    Slice,       ///< operands: object, begin, end, step (each may be null)
    Call,        ///< operands: function; arguments
    Filter,      ///< operands: subject (null in a filter of a block); name, arguments
    Test         ///< operands: subject; name, arguments
  };
  Kind kind;
  unsigned line;
  std::string name;
  Value value;
  std::vector<ExprPtr> operands;
  std::vector<std::string> words;
  std::unique_ptr<ArgumentExprs> arguments;
  unsigned height = 1; ///< of the tree below, which is walked by recursion
};

struct Statement;

/// Statements in order.
struct Block {
  std::vector<Statement> statements;
};

/// What an assignment or a loop binds: a name, an attribute of a namespace, or several of them.
struct Target {
  std::string name, attribute;
  std::vector<Target> parts; ///< of a tuple, where there is no name
};

/// A parameter of a macro or of what a call block passes.
struct Parameter {
  std::string name;
  ExprPtr otherwise; ///< its default; may be null
};

struct Statement {
  enum Kind {
    Text,     ///< text
    Output,   ///< first
    If,       ///< conditions and bodies in turn; otherwise
    For,      ///< target, first (the sequence), second (the test, may be null); body, otherwise
    Set,      ///< target, first
    SetBlock, ///< target, first (a chain of filters, may be null); body
    Macro,    ///< name, parameters; body
    Call,     ///< first (the call), parameters (of caller); body
    Filter,   ///< first (the chain of filters); body
    With,     ///< targets, conditions (their values); body
    Scope,    ///< body, with names of its own
    Break,
    Continue
  };
  Kind kind;
  unsigned line;
  std::string text; ///< text, or the macro's name
  ExprPtr first, second;
  std::vector<ExprPtr> conditions;
  std::vector<Target> targets;
  std::vector<Parameter> parameters;
  std::vector<Block> bodies;
  Block otherwise;
};

} // namespace ctxc::jinja

#endif // CTXC_LIB_TEMPLATE_AST_H
