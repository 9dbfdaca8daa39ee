//===- Value.h - the values of a template ---------------------------------===//
//
// The types that Jinja takes from Python: None, booleans, integers (of 64 bits), floats, text,
// lists, tuples, dictionaries (in the order of insertion), generators, namespaces and functions.
// All but namespaces are immutable, as in the sandbox that transformers renders chat templates in.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TEMPLATE_VALUE_H
#define CTXC_TEMPLATE_VALUE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ctxc::jinja {

class Callable;
class Value;
using Entries = std::vector<std::pair<Value, Value>>;

/// The one value that changes: what `namespace(...)` makes.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

class Value {
public:
  enum class Kind : uint8_t {
    Undefined,
    None,
    Boolean,
    Integer,
    Real,
    String,
    List,
    Tuple,
    Generator, ///< the result of select, map and the like: always true, and without a length
    Dict,
    Namespace,
    Function
  };

  Value() = default;
  /// A value that is not there; `why` explains it where it is used.
  static Value undefined(std::string why);
  static Value none() { return Value(Kind::None, std::monostate()); }
  static Value boolean(bool value) { return Value(Kind::Boolean, value); }
  static Value integer(int64_t value) { return Value(Kind::Integer, value); }
  static Value real(double value) { return Value(Kind::Real, value); }
  static Value string(std::string value); ///< UTF-8
  /// List, Tuple or Generator.
  static Value sequence(Kind kind, std::vector<Value> items);
  static Value list(std::vector<Value> items) { return sequence(Kind::List, std::move(items)); }
  static Value dict(Entries entries);
  /// A dictionary of text.
  static Value record(llvm::ArrayRef<std::pair<std::string, std::string>> entries);
  static Value space(std::shared_ptr<Namespace> space);
  static Value function(std::shared_ptr<const Callable> function);

  Kind kind() const { return which; }
  bool is(Kind kind) const { return which == kind; }
  bool isNumber() const { return is(Kind::Boolean) || is(Kind::Integer) || is(Kind::Real); }
  /// An integer or a boolean, which Python counts among the integers.
  bool isWhole() const { return is(Kind::Boolean) || is(Kind::Integer); }
  bool isSequence() const { return is(Kind::List) || is(Kind::Tuple) || is(Kind::Generator); }

  // Each only of a value of that kind.
  bool boolean() const { return std::get<bool>(data); }
  int64_t integer() const { return is(Kind::Boolean) ? boolean() : std::get<int64_t>(data); }
  double real() const { return is(Kind::Real) ? std::get<double>(data) : double(integer()); }
  llvm::StringRef string() const { return *std::get<Text>(data); }
  llvm::ArrayRef<Value> items() const;
  const Entries &entries() const;
  Namespace &space() const { return *std::get<std::shared_ptr<Namespace>>(data); }
  const Callable &function() const { return *std::get<Function>(data); }

  /// Why an undefined value is not there.
  llvm::StringRef reason() const;

  /// Python's truth.
  bool truth() const;
  /// What Python calls the type, for messages.
  llvm::StringRef typeName() const;
  /// The number of levels of lists and dictionaries within each other.
  unsigned depth() const;
  /// Whether both are the same object in memory; numbers and None, the same value.
  bool isSame(const Value &other) const;

private:
  struct Sequence;
  struct Dict;
  using Text = std::shared_ptr<const std::string>;
  using Function = std::shared_ptr<const Callable>;
  using Data =
      std::variant<std::monostate, bool, int64_t, double, Text, std::shared_ptr<const Sequence>,
                   std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, Function>;
  Value(Kind kind, Data data) : which(kind), data(std::move(data)) {}

  Kind which = Kind::Undefined;
  Data data;
};

} // namespace ctxc::jinja

#endif // CTXC_TEMPLATE_VALUE_H
