// Runs a template. After the first failure every function returns at once, with any value.
#ifndef CTXC_LIB_TEMPLATE_MACHINE_H
#define CTXC_LIB_TEMPLATE_MACHINE_H

#include "Ast.h"
#include "Callable.h"
#include "ctxc/Template/Template.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

namespace ctxc::jinja {

/// The names of a loop's iteration, a macro's call or the template, and those around them.
struct Scope {
  std::vector<std::pair<std::string, Value>> names;
  std::shared_ptr<Scope> around;

  const Value *find(llvm::StringRef name) const;
  void set(llvm::StringRef name, Value value);
};

class Machine {
public:
  Machine(llvm::StringRef name, const std::tm &now, const RenderLimits &limits)
      : now(now), name(name), limits(limits) {}
  ~Machine();

  llvm::Expected<std::string> run(const Block &body,
                                  llvm::ArrayRef<std::pair<std::string, Value>> variables);

  const std::tm now; ///< what strftime_now sees

  /// Ends the run with this message; the first one counts.
  Value fail(const llvm::Twine &why);
  bool failed() const { return !message.empty(); }
  /// Counts steps; fails past the limit.
  void spend(uint64_t steps);

  // What is made is counted, and refused where it is too large or too deep.
  Value text(std::string made);
  Value sequence(Value::Kind kind, std::vector<Value> items);
  Value list(std::vector<Value> items) { return sequence(Value::Kind::List, std::move(items)); }
  Value dict(Entries entries);
  Value space(Entries attributes);

  /// str(), repr() and equality of Python. Undefined values have no text.
  std::string textOf(const Value &value);
  std::string reprOf(const Value &value);
  bool equal(const Value &left, const Value &right);
  /// Whether `left` is before `right`; fails for values that have no order.
  bool less(const Value &left, const Value &right);
  bool contains(const Value &container, const Value &item);
  /// What a loop goes through: fails for a value that has no elements.
  std::vector<Value> elements(const Value &value);
  int64_t lengthOf(const Value &value);
  const Value *find(const Entries &entries, const Value &key);
  /// Fails for what cannot be the key of a dictionary.
  void checkKey(const Value &key);

  /// `object.name` and `object[index]`; undefined where there is none.
  Value attribute(const Value &object, llvm::StringRef name);
  Value item(const Value &object, const Value &index);
  Value slice(const Value &object, const Value &begin, const Value &end, const Value &step);
  Value arithmetic(llvm::StringRef sign, const Value &left, const Value &right);
  bool compare(llvm::StringRef word, const Value &left, const Value &right);
  Value call(const Value &function, Arguments arguments);

  /// The filter or the test of that name; `subject` stands before the arguments.
  Value applyFilter(llvm::StringRef name, Value subject, Arguments arguments);
  bool applyTest(llvm::StringRef name, const Value &subject, Arguments arguments);

  Value evaluate(const Expr &expr);
  Value evaluateIn(std::shared_ptr<Scope> names, const Expr &expr);
  /// The text of statements, with `scope` as their names.
  std::string render(const Block &block, std::shared_ptr<Scope> scope);

  /// What a macro was made of may refer to the macro: broken up at the end.
  void keep(std::shared_ptr<Scope> scope) { keptScopes.push_back(std::move(scope)); }
  /// Counts the calls of macros within each other.
  struct Deeper {
    explicit Deeper(Machine &machine) : machine(machine) {
      if (++machine.depth > machine.limits.calls)
        machine.fail("macros call each other too deep");
    }
    ~Deeper() { --machine.depth; }
    Machine &machine;
  };

private:
  enum class Flow { Next, Break, Continue };

  Value evaluateOperator(const Expr &expr);
  Value evaluateCall(const Expr &expr);
  Value concatenate(const Expr &expr);
  Value dictOf(const Expr &expr);
  bool comparison(const Expr &expr);
  Arguments evaluate(const ArgumentExprs *arguments);
  Value filterChain(const Expr *filters, Value subject);

  Flow execute(const Block &block);
  Flow execute(const Statement &statement);
  Flow loop(const Statement &statement);
  void assign(const Target &target, const Value &value);
  Flow inScope(const Block &block, std::shared_ptr<Scope> scope);
  std::string capture(const Block &block);
  void callBlock(const Statement &statement);
  void write(llvm::StringRef text);

  llvm::StringRef name;
  RenderLimits limits;
  std::string out, message;
  std::shared_ptr<Scope> scope;
  std::vector<std::shared_ptr<Scope>> keptScopes;
  std::vector<std::shared_ptr<Namespace>> spaces;
  Value caller; ///< of the call that is evaluated next
  uint64_t steps = 0;
  unsigned depth = 0, line = 1;
};

/// Sorts by insertion, which is stable, and safe with an order that fails on the way.
template <typename Item, typename Less>
void sortStable(Machine &machine, std::vector<Item> &items, Less less) {
  std::vector<Item> sorted;
  for (Item &item : items) {
    auto at = std::upper_bound(sorted.begin(), sorted.end(), item, less);
    machine.spend(1 + (sorted.end() - at) / 16);
    if (machine.failed())
      return;
    sorted.insert(at, std::move(item));
  }
  items = std::move(sorted);
}

/// The global functions: range, dict, namespace, raise_exception, strftime_now.
std::vector<std::pair<std::string, Value>> globalFunctions();
/// A macro with the names around it.
Value makeMacro(const Statement &macro, std::shared_ptr<Scope> scope);
/// A method of a value, bound to it; none where its type has no such method.
std::optional<Value> method(const Value &object, llvm::StringRef name);
/// The function of a loop's `cycle`.
Value makeCycle(int64_t index);
/// `loop.changed` of one loop.
Value makeChanged();
/// The method `format` of `pattern`.
Value makeFormat(llvm::StringRef pattern);
/// json.dumps with these settings; `indent` below 0: on one line.
struct JsonStyle {
  bool ascii = false, sorted = false;
  int64_t indent = -1;
  std::optional<std::pair<std::string, std::string>> separators;
};
std::string toJson(Machine &machine, const Value &value, const JsonStyle &style);

} // namespace ctxc::jinja

#endif // CTXC_LIB_TEMPLATE_MACHINE_H
