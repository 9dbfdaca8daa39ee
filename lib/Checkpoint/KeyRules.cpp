#include "ctxc/Checkpoint/KeyRules.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace ctxc;

bool ctxc::matchesPattern(StringRef pattern, StringRef text) {
  bool before = pattern.consume_front("*"), behind = pattern.consume_back("*");
  if (before && behind)
    return text.contains(pattern);
  if (before)
    return text.ends_with(pattern);
  return behind ? text.starts_with(pattern) : text == pattern;
}

bool KeyRule::allows(StringRef key, const json::Object &config) const {
  const json::Value &value = *config.get(key);
  if (inert == isRead)
    return false;
  if (inert.empty() || value.kind() == json::Value::Null || config.getBoolean(turnedOnBy) == false)
    return true;
  json::Value values = cantFail(json::parse(inert));
  auto isInert = [&](const json::Value &one) {
    return llvm::is_contained(*values.getAsArray(), one);
  };
  const json::Array *array = value.getAsArray();
  return isInert(value) || (array && !array->empty() && llvm::all_of(*array, isInert));
}

std::string KeyRule::expectation() const {
  if (inert == isRead)
    return "another place or form";
  if (inert == off)
    return "it to be off or absent";
  StringRef list = inert.drop_front().drop_back();
  return list.empty() ? "no such key" : (list + " or no such key").str();
}

const KeyRule &KeyTable::ruleFor(StringRef key, StringRef at, ArrayRef<KeyRule> own) const {
  auto find = [](ArrayRef<KeyRule> among, StringRef name) {
    return llvm::find_if(among,
                         [&](const KeyRule &rule) { return matchesPattern(rule.pattern, name); });
  };
  if (const KeyRule *found = find(own, key); found != own.end())
    return *found;
  const KeyRule *found = find(rules, key);
  return found->pattern == "*" && !at.empty() ? *find(rules, at) : *found;
}
