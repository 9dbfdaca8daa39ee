#include "ctxc/Analysis/TokenAxes.h"
#include "TokenRules.h"

using namespace mlir;
using namespace ctxc;

/// Whether the text of a size has the symbol `symbol`, as a word.
static bool mentions(StringRef text, StringRef symbol) {
  for (size_t at = text.find(symbol); at != StringRef::npos; at = text.find(symbol, at + 1)) {
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    size_t end = at + symbol.size();
    if ((at == 0 || !isWord(text[at - 1])) && (end == text.size() || !isWord(text[end])))
      return true;
  }
  return false;
}

/// Whether `axis` is as long as the tokens are many, or its length is made of their number.
static bool isOfTokens(Attribute axis, Attribute tokens) {
  if (axis == tokens)
    return true;
  if (auto symbol = dyn_cast<StringAttr>(tokens))
    return isa<StringAttr>(axis) && mentions(cast<StringAttr>(axis), symbol);
  auto number = dyn_cast<IntegerAttr>(axis);
  int64_t fixed = cast<IntegerAttr>(tokens).getInt();
  return !number || (number.getInt() > 0 && number.getInt() % fixed == 0);
}

std::optional<unsigned> TokenAxes::axis(graph::SymbolicType type) const {
  std::optional<unsigned> found;
  for (auto [i, length] : llvm::enumerate(type.getSizes())) {
    bool isSymbol = isa<StringAttr>(length);
    if (!isSymbol && !isOfTokens(length, size))
      continue;
    // A length that is not the tokens' number itself may be anything, that of merged axes too.
    if (found || length != size)
      return std::nullopt;
    found = i;
  }
  return found;
}

std::optional<unsigned> TokenAxes::axis(Value value) const {
  return axis(cast<graph::SymbolicType>(value.getType()));
}

unsigned TokenAxes::countAxes(Value value) const {
  return llvm::count_if(cast<graph::SymbolicType>(value.getType()).getSizes(),
                        [&](Attribute length) { return isOfTokens(length, size); });
}

StringRef TokenAxes::reason(graph::CallOp call) const {
  auto known = calls.find(call);
  return known == calls.end() ? StringRef() : StringRef(known->second.second);
}

TokenAxes::TokenAxes(graph::ProgramOp program) : size(program.getTokens()) {
  for (Operation &op : program.getBody().front()) {
    if (auto input = dyn_cast<graph::InputOp>(op); input && input.getRole() != "position")
      data.insert(input);
    auto call = dyn_cast<graph::CallOp>(op);
    if (!call || llvm::none_of(op.getOperands(), [&](Value v) { return isData(v); }) ||
        ignoresNumbers(call))
      continue;
    data.insert(op.result_begin(), op.result_end());
    auto lacksAxis = [&](Value v) { return isData(v) && !axis(v); };
    auto &[mixing, why] = calls[call];
    if (llvm::any_of(op.getOperands(), lacksAxis)) {
      mixing = Mixing::Tokens;
      why = "reads a value of several tokens";
    } else if (llvm::any_of(op.getResults(), lacksAxis)) {
      mixing = Mixing::Tokens;
      why = "makes a value of several tokens";
    } else {
      mixing = ruleFor({call, *this});
      why = mixing == Mixing::None     ? "each token by itself"
            : mixing == Mixing::Tokens ? "joins tokens"
                                       : "no rule says how it treats tokens";
    }
  }
}
