#include "Machine.h"
#include "Lexer.h"
#include "Parser.h"
#include "Text.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using llvm::Twine;
using Kind = Value::Kind;

/// Lists and dictionaries within each other: they are walked by recursion.
static constexpr unsigned maxDepth = 100;
static constexpr size_t maxKept = 20000; ///< namespaces, and scopes of macros

//===----------------------------------------------------------------------===//
// Template
//===----------------------------------------------------------------------===//

Template::Template(std::string name, std::unique_ptr<Block> body)
    : name(std::move(name)), body(std::move(body)) {}
Template::Template(Template &&) = default;
Template &Template::operator=(Template &&) = default;
Template::~Template() = default;

llvm::Expected<Template> Template::parse(StringRef text, StringRef name) {
  constexpr size_t maxBytes = 4 << 20;
  if (text.size() > maxBytes)
    return makeError(name + ": found " + Twine(text.size()) + " bytes, expected at most " +
                     Twine(maxBytes));
  size_t bad;
  if (!llvm::json::isUTF8(text, &bad))
    return makeError(name + ": at byte " + Twine(bad) + ": not valid UTF-8");
  auto tokens = tokenize(text, name);
  if (!tokens)
    return tokens.takeError();
  auto body = Parser(std::move(*tokens), name).run();
  if (!body)
    return body.takeError();
  return Template(name.str(), std::make_unique<Block>(std::move(*body)));
}

llvm::Expected<std::string>
Template::render(llvm::ArrayRef<std::pair<std::string, Value>> variables, const std::tm &now,
                 const RenderLimits &limits) const {
  return Machine(name, now, limits).run(*body, variables);
}

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

const Value *Scope::find(StringRef name) const {
  for (const Scope *scope = this; scope; scope = scope->around.get())
    for (const auto &[key, value] : scope->names)
      if (key == name)
        return &value;
  return nullptr;
}

void Scope::set(StringRef name, Value value) {
  for (auto &[key, old] : names)
    if (key == name) {
      old = std::move(value);
      return;
    }
  names.emplace_back(name.str(), std::move(value));
}

Machine::~Machine() {
  for (const auto &space : spaces)
    space->attributes.clear();
  for (const auto &scope : keptScopes)
    scope->names.clear();
}

llvm::Expected<std::string> Machine::run(const Block &body,
                                         llvm::ArrayRef<std::pair<std::string, Value>> variables) {
  auto globals = std::make_shared<Scope>();
  for (auto &[name, value] : globalFunctions())
    globals->set(name, value);
  for (const auto &[name, value] : variables)
    globals->set(name, value);
  auto top = std::make_shared<Scope>();
  top->around = globals;
  std::string text = render(body, top);
  scope.reset();
  if (failed())
    return makeError(message);
  return text;
}

Value Machine::fail(const Twine &why) {
  if (message.empty())
    message = (name + ": line " + Twine(line) + ": " + printable(why.str())).str();
  return Value();
}

void Machine::spend(uint64_t count) {
  steps += count;
  if (steps > limits.steps)
    fail("the template takes more than " + Twine(limits.steps) + " steps");
}

Value Machine::text(std::string made) {
  spend(made.size() / 64);
  return Value::string(std::move(made));
}

Value Machine::sequence(Kind kind, std::vector<Value> items) {
  spend(items.size());
  Value made = Value::sequence(kind, std::move(items));
  return made.depth() > maxDepth ? fail("lists are nested too deep") : made;
}

Value Machine::dict(Entries entries) {
  spend(entries.size());
  Value made = Value::dict(std::move(entries));
  return made.depth() > maxDepth ? fail("dictionaries are nested too deep") : made;
}

Value Machine::space(Entries attributes) {
  auto made = std::make_shared<Namespace>();
  for (const auto &[key, value] : attributes)
    made->attributes.emplace_back(textOf(key), value);
  spaces.push_back(made);
  if (spaces.size() > maxKept)
    return fail("there are more than " + Twine(maxKept) + " namespaces");
  return Value::space(std::move(made));
}
