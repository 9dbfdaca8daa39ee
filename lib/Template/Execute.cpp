// Statements.
#include "Machine.h"
#include "llvm/ADT/ScopeExit.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::StringRef;
using Kind = Value::Kind;

void Machine::write(StringRef text) {
  spend(text.size() / 64);
  if (!failed())
    out += text;
}

std::string Machine::render(const Block &block, std::shared_ptr<Scope> names) {
  std::string outer = std::exchange(out, "");
  inScope(block, std::move(names));
  std::swap(outer, out);
  return outer;
}

std::string Machine::capture(const Block &block) {
  auto names = std::make_shared<Scope>();
  names->around = scope;
  return render(block, std::move(names));
}

Machine::Flow Machine::inScope(const Block &block, std::shared_ptr<Scope> names) {
  std::swap(scope, names);
  Flow flow = execute(block);
  std::swap(scope, names);
  return flow;
}

Machine::Flow Machine::execute(const Block &block) {
  for (const Statement &statement : block.statements) {
    Flow flow = execute(statement);
    if (failed() || flow != Flow::Next)
      return flow;
  }
  return Flow::Next;
}

Machine::Flow Machine::execute(const Statement &statement) {
  line = statement.line;
  spend(1);
  if (failed())
    return Flow::Next;
  switch (statement.kind) {
  case Statement::Text:
    write(statement.text);
    return Flow::Next;
  case Statement::Output: {
    Value value = evaluate(*statement.first);
    write(textOf(value));
    return Flow::Next;
  }
  case Statement::If:
    for (auto [condition, body] : llvm::zip(statement.conditions, statement.bodies))
      if (evaluate(*condition).truth())
        return execute(body);
    return execute(statement.otherwise);
  case Statement::For:
    return loop(statement);
  case Statement::Set:
    assign(statement.targets.front(), evaluate(*statement.first));
    return Flow::Next;
  case Statement::SetBlock:
    assign(statement.targets.front(),
           filterChain(statement.first.get(), text(capture(statement.bodies.front()))));
    return Flow::Next;
  case Statement::Macro:
    keep(scope);
    scope->set(statement.text, makeMacro(statement, scope));
    return Flow::Next;
  case Statement::Call:
    callBlock(statement);
    return Flow::Next;
  case Statement::Filter:
    write(textOf(filterChain(statement.first.get(), text(capture(statement.bodies.front())))));
    return Flow::Next;
  case Statement::With: {
    auto names = std::make_shared<Scope>();
    names->around = scope;
    for (auto [target, value] : llvm::zip(statement.targets, statement.conditions))
      names->set(target.name, evaluate(*value));
    return inScope(statement.bodies.front(), names);
  }
  case Statement::Scope: {
    auto names = std::make_shared<Scope>();
    names->around = scope;
    return inScope(statement.bodies.front(), names);
  }
  case Statement::Break:
    return Flow::Break;
  case Statement::Continue:
    return Flow::Continue;
  }
  llvm_unreachable("a kind of statement");
}

/// The filters of a tag, the innermost of which has no operand.
Value Machine::filterChain(const Expr *filters, Value subject) {
  if (!filters || failed())
    return subject;
  Value inner = filterChain(filters->operands.front().get(), std::move(subject));
  Arguments arguments = evaluate(filters->arguments.get());
  return failed() ? Value() : applyFilter(filters->name, std::move(inner), std::move(arguments));
}

void Machine::callBlock(const Statement &statement) {
  keep(scope);
  caller = makeMacro(statement, scope);
  write(textOf(evaluate(*statement.first)));
}

void Machine::assign(const Target &target, const Value &value) {
  if (failed())
    return;
  if (target.parts.empty() && target.attribute.empty())
    return scope->set(target.name, value);
  if (target.parts.empty()) {
    const Value *space = scope->find(target.name);
    if (!space || !space->is(Kind::Namespace)) {
      fail("cannot assign to '" + target.name + "." + target.attribute + "': '" + target.name +
           "' is no namespace");
      return;
    }
    if (StringRef(target.attribute).starts_with("_")) {
      fail("the attribute '" + target.attribute + "' of a namespace begins with '_'");
      return;
    }
    for (auto &[key, old] : space->space().attributes)
      if (key == target.attribute) {
        old = value;
        return;
      }
    space->space().attributes.emplace_back(target.attribute, value);
    return;
  }
  std::vector<Value> parts = elements(value);
  if (parts.size() != target.parts.size()) {
    fail("found " + llvm::Twine(parts.size()) + " values, expected " +
         llvm::Twine(target.parts.size()) + " to assign");
    return;
  }
  for (auto [part, each] : llvm::zip(target.parts, parts))
    assign(part, each);
}

/// The variable `loop` of one iteration.
static Value loopVariable(Machine &machine, llvm::ArrayRef<Value> items, int64_t index,
                          int64_t depth, const Value &changed) {
  int64_t count = items.size();
  Entries loop;
  auto set = [&](StringRef name, Value value) {
    loop.emplace_back(Value::string(name.str()), std::move(value));
  };
  set("index", Value::integer(index + 1));
  set("index0", Value::integer(index));
  set("first", Value::boolean(index == 0));
  set("last", Value::boolean(index + 1 == count));
  set("length", Value::integer(count));
  set("revindex", Value::integer(count - index));
  set("revindex0", Value::integer(count - index - 1));
  set("depth", Value::integer(depth));
  set("depth0", Value::integer(depth - 1));
  set("previtem", index > 0 ? items[index - 1] : Value::undefined("there is no previous item"));
  set("nextitem", index + 1 < count ? items[index + 1] : Value::undefined("there is no next item"));
  set("cycle", makeCycle(index));
  set("changed", changed);
  return machine.dict(std::move(loop));
}

Machine::Flow Machine::loop(const Statement &statement) {
  std::vector<Value> items = elements(evaluate(*statement.first));
  std::shared_ptr<Scope> outer = scope;
  auto restore = llvm::scope_exit([&] { scope = outer; });
  auto enter = [&] {
    scope = std::make_shared<Scope>();
    scope->around = outer;
  };
  if (statement.second) {
    std::vector<Value> chosen;
    for (const Value &item : items) {
      enter();
      assign(statement.targets.front(), item);
      if (failed())
        return Flow::Next;
      if (evaluate(*statement.second).truth())
        chosen.push_back(item);
    }
    items = std::move(chosen);
  }
  const Value changed = makeChanged();
  for (auto [index, item] : llvm::enumerate(items)) {
    enter();
    scope->set("loop", loopVariable(*this, items, index, 1, changed));
    assign(statement.targets.front(), item);
    if (failed() || execute(statement.bodies.front()) == Flow::Break || failed())
      return Flow::Next;
  }
  enter();
  return items.empty() ? execute(statement.otherwise) : Flow::Next;
}
