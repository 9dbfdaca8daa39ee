#include "dialects/XF/BlockFacts.h"
#include "dialects/XF/EntryImage.h"
#include "dialects/XF/FactsArith.h"
#include "dialects/XF/Products.h"
#include "dialects/XF/Saturation.h"
#include "dialects/XF/Sizes.h"
#include "dialects/XF/SumFacts.h"
#include <map>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::xf;

//===----------------------------------------------------------------------===//
// One pass
//===----------------------------------------------------------------------===//

/// More terms than any block has: sums of more are taken as values of their own.
static constexpr size_t mostTerms = 512;

namespace ctxc::xf {
class FactsPass {
public:
  FactsPass(BlockFacts &result, LayerOp layer) : result(result), layer(layer) {}
  void run();

private:
  void visit(Operation *op);
  Facts factsOf(Operation *op) const;
  void setSources(Operation *op, Term &term) const;
  std::vector<uintptr_t> kindOf(Operation *op) const;
  void number(Operation *op, Term &term);
  void settle(Operation *op, Term &term, Facts &facts);
  std::vector<Combination> saturate(Operation *op, const Combination *sum, const Term &term,
                                    Facts &facts);
  void forgetDividedZeros();
  Combination combinationOf(Value value) const;
  std::vector<double> ratiosOf(Value a, Value b) const;
  std::vector<double> ratiosOf(Operation *a, Operation *b) const;
  std::optional<Combination> combine(Operation *op) const;
  void takeSum(const Combination &sum, Term &term, Facts &facts);
  /// The setting's value in the layer, or in the block if there is no layer; null if it has none.
  Attribute valueOf(SettingOp setting) const {
    LayerOp of = layer;
    return of ? of.getSettingValue(setting) : setting.getValueAttr();
  }
  const Term &term(Value value) const { return terms.find(value)->second; }
  const Facts &facts(Value value) const { return result.table.find(value)->second; }

  unsigned numberOf(std::vector<uintptr_t> key) {
    return numbers.try_emplace(std::move(key), numbers.size()).first->second;
  }

  BlockFacts &result;
  LayerOp layer;
  unsigned sources = 0;
  llvm::StringMap<unsigned> parameters; ///< sources by identity
  llvm::DenseMap<Operation *, unsigned> contexts;
  llvm::DenseMap<Value, Term> terms;
  llvm::DenseMap<Value, Combination> sums;
  Atoms atoms;
  std::map<std::vector<uintptr_t>, unsigned> numbers;
  std::map<std::vector<uintptr_t>, std::vector<Operation *>> kinds; ///< ops before, by kindOf
};
} // namespace ctxc::xf

Facts FactsPass::factsOf(Operation *op) const {
  if (auto setting = dyn_cast<SettingOp>(op)) {
    if (Attribute value = valueOf(setting)) {
      SmallVector<double> numbers = SettingOp::numbers(setting.getType(), value);
      Facts facts =
          factsOfNumbers(numbers, "the setting '" + setting.getName().str() + "' is zero");
      facts.numbers = std::make_shared<std::vector<double>>(numbers.begin(), numbers.end());
      return facts;
    }
  }
  auto speaker = dyn_cast<FactsOpInterface>(op);
  bool isContextual = isa<ContextualOpInterface>(op), readsPiecewise = false, readsLevels = false;
  SmallVector<Facts> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(facts(operand));
    operands.back().levels.reset(); // not handed on by ops that copy their operand's facts
    operands.back().total.reset();
    operands.back().limits.clear();
    auto param = operand.getDefiningOp<ParamOp>();
    if (param && param.getConstant() && !speaker)
      continue; // the op itself says nothing
    readsPiecewise |= operands.back().piecewise;
    readsLevels |=
        operands.back().piecewise && !operands.back().free; // of what is moved none stays
  }
  Facts found = speaker ? speaker.inferFacts(operands) : Facts();
  found.numbers.reset();
  if (!speaker)
    found.piecewise = !isContextual;
  found.piecewise |= readsPiecewise;
  if (readsLevels)
    found.levels.reset();
  if (isContextual && result.readsContext(op) && !found.getConstant())
    found.free = true; // by other tokens
  else if (isContextual)
    found.piecewise = true; // it may be one of its operands
  return found;
}

void FactsPass::setSources(Operation *op, Term &term) const {
  term.reads.resize(sources);
  term.movers.resize(sources);
  auto own = [&](unsigned source) {
    term.reads.set(source);
    term.movers.set(source);
  };
  auto param = dyn_cast<ParamOp>(op);
  if (param && isGeneric(param))
    own(parameters.lookup(result.names[param.getName()]));
  auto setting = dyn_cast<SettingOp>(op);
  term.fixed = setting ? bool(valueOf(setting))
               : param ? !isGeneric(param)
                       : op->getNumOperands() > 0;
  for (Value operand : op->getOperands()) {
    term.reads |= this->term(operand).reads;
    term.fixed &= this->term(operand).fixed;
  }
  if (auto context = contexts.find(op); context != contexts.end() && result.readsContext(op)) {
    own(context->second);
    term.fixed = false;
  }
  auto readsOfOthers = [&](unsigned index) {
    Sources others(sources);
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (i != index)
        others |= this->term(operand).reads;
    return others;
  };
  auto handOn = [&](unsigned index) {
    Sources movers = this->term(op->getOperand(index)).movers;
    movers.reset(readsOfOthers(index));
    term.movers |= movers;
  };
  if (auto site = dyn_cast<AssignableOpInterface>(op);
      site && isGeneric(site.getParameterOperand().get())) {
    handOn(site.getParameterOperand().getOperandNumber());
    if (site.getObligation() != Obligation::None)
      handOn(site.getDataOperand().getOperandNumber());
  } else if (auto link = dyn_cast<SolvableOpInterface>(op); link && !contexts.count(op)) {
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (handsOnMovers(link, i))
        handOn(i);
  }
}

/// What makes an op the same as another, but for its operands.
std::vector<uintptr_t> FactsPass::kindOf(Operation *op) const {
  auto opaque = [](auto thing) { return reinterpret_cast<uintptr_t>(thing.getAsOpaquePointer()); };
  std::vector<uintptr_t> key{opaque(op->getName())};
  if (auto param = dyn_cast<ParamOp>(op)) {
    key.push_back(parameters.lookup(result.names[param.getName()]));
    // Banks that overlap are not the same, though they share tensors.
    key.push_back(opaque(StringAttr::get(op->getContext(), param.getName())));
    if (result.names.aliases().empty() || !StringRef(param.getName()).contains('*'))
      key.back() = 0;
  } else {
    Attribute attributes = op->getAttrDictionary();
    if (auto setting = dyn_cast<SettingOp>(op))
      if (Attribute value = valueOf(setting))
        attributes = value;
    key.push_back(opaque(attributes));
    for (Type type : op->getOperandTypes())
      key.push_back(opaque(type));
  }
  for (Type type : op->getResultTypes())
    key.push_back(opaque(type));
  if (auto linear = dyn_cast<LinearOp>(op); // one number is its own transpose
      linear && cast<ShapedType>(linear.getWeight().getType()).getNumElements() == 1)
    key[1] = 0;
  return key;
}

/// The same op on the same values gives the same value.
void FactsPass::number(Operation *op, Term &term) {
  SmallVector<uintptr_t> operands;
  for (Value operand : op->getOperands())
    operands.push_back(this->term(operand).number);
  if (op->hasTrait<OpTrait::IsCommutative>())
    llvm::sort(operands);
  std::vector<uintptr_t> key = kindOf(op);
  key.insert(key.end(), operands.begin(), operands.end());
  if (op->getNumResults() != 1)
    key.push_back(reinterpret_cast<uintptr_t>(op)); // not looked into
  term.number = numberOf(std::move(key));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

std::optional<Combination> FactsPass::combine(Operation *op) const {
  auto speaker = dyn_cast<FactsOpInterface>(op);
  SmallVector<SumTerm> summands = speaker ? speaker.getSumTerms() : SmallVector<SumTerm>();
  if (summands.empty())
    return std::nullopt;
  Combination sum;
  std::map<unsigned, double> sizes; // of what was added, before anything cancelled
  auto add = [&](unsigned number, double factor) {
    sum.terms[number] += factor;
    sizes[number] = std::max(sizes[number], std::abs(factor));
  };
  double constants = 0;
  for (SumTerm summand : summands) {
    Value operand = op->getOperand(summand.operand);
    if (std::optional<double> constant = facts(operand).getConstant()) {
      sum.constant += summand.factor * *constant;
      constants = std::max(constants, std::abs(summand.factor * *constant));
    } else if (auto known = sums.find(operand); known != sums.end()) {
      for (auto [number, factor] : known->second.terms)
        add(number, summand.factor * factor);
      sum.constant += summand.factor * known->second.constant;
      constants = std::max(constants, std::abs(summand.factor * known->second.constant));
      sum.doubtful |= known->second.doubtful;
    } else {
      add(term(operand).number, summand.factor);
    }
  }
  // Factors are float32: what is left of 0.1 + 0.2 − 0.3 is a rounding, or is not.
  constexpr double rounding = 1e-6;
  for (auto it = sum.terms.begin(); it != sum.terms.end();) {
    double size = sizes[it->first];
    sum.doubtful |= it->second != 0 && std::abs(it->second) <= rounding * size;
    it = it->second == 0 ? sum.terms.erase(it) : std::next(it);
  }
  sum.doubtful |= sum.constant != 0 && std::abs(sum.constant) <= rounding * constants;
  if (sum.terms.size() > mostTerms)
    return std::nullopt;
  return sum;
}

void FactsPass::takeSum(const Combination &sum, Term &term, Facts &facts) {
  atoms.inferSum(sum, term, facts);
  if (sum.terms.size() == 1 && sum.constant == 0 && sum.terms.begin()->second == 1) {
    term.number = sum.terms.begin()->first;
    return;
  }
  std::vector<uintptr_t> key{0};
  auto bits = [](double x) { return uintptr_t(llvm::bit_cast<uint64_t>(x)); };
  for (auto [number, factor] : sum.terms) {
    key.push_back(number);
    key.push_back(bits(factor));
  }
  key.push_back(bits(sum.constant));
  term.number = numberOf(std::move(key));
}

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

/// What holds of any op, whatever it says.
void FactsPass::settle(Operation *op, Term &term, Facts &facts) {
  // One of several terms that the result adds up must be moved by what the others do not read,
  // unless none of them is negative.
  bool isMoved = true;
  if (auto link = dyn_cast<SolvableOpInterface>(op); link && facts.floor.value_or(-1) < 0)
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (link.isUnderdetermined(i))
        isMoved &= term.movers.any();
  if (auto site = dyn_cast<AssignableOpInterface>(op))
    if (site.getParameterOperand().get().getDefiningOp<ParamOp>()) {
      Sources shared = this->term(site.getParameterOperand().get()).reads;
      shared &= this->term(site.getDataOperand().get()).reads;
      isMoved &= shared.none();
    }
  if (isa<ContextualOpInterface>(op) && facts.piecewise)
    for (OpOperand &parameter : op->getOpOperands())
      for (OpOperand &data : op->getOpOperands())
        if (parameter.get().getDefiningOp<ParamOp>() && &data != &parameter) {
          Sources shared = this->term(parameter.get()).reads;
          shared &= this->term(data.get()).reads;
          isMoved = isMoved && shared.none();
        }
  if (!isMoved && !facts.isZero()) {
    facts.elements = facts.vector = Zeros::OpenSet;
    facts.free = false;
    if (facts.why.empty())
      facts.why = "its terms may cancel";
  }
  if (facts.excludes(0))
    facts.elements = facts.vector = Zeros::Never;
  else if (term.fixed && facts.elements == Zeros::NullSet)
    facts.elements = facts.vector = Zeros::OpenSet;
  if (term.fixed || facts.getConstant()) {
    facts.free = false;
    term.movers.reset();
  }
  if (facts.isZero())
    facts = Facts::constant(0, facts.why);
}

Combination FactsPass::combinationOf(Value value) const {
  auto known = sums.find(value);
  return known != sums.end() ? known->second : Combination{{{term(value).number, 1}}};
}

/// The numbers k with a = k b on open sets, by what both are rounded to there.
std::vector<double> FactsPass::ratiosOf(Value a, Value b) const {
  if (term(a).number == term(b).number)
    return {1};
  std::vector<double> ratios;
  std::vector<Combination> ofB = atoms.roundings(combinationOf(b));
  for (const Combination &x : atoms.roundings(combinationOf(a)))
    for (const Combination &y : ofB)
      if (std::optional<double> ratio = ratioOf(x, y); ratio && !llvm::is_contained(ratios, *ratio))
        ratios.push_back(*ratio);
  return ratios;
}

/// The same for the results of two ops of a kind, by their operands.
std::vector<double> FactsPass::ratiosOf(Operation *a, Operation *b) const {
  std::vector<double> ratios = {1};
  for (auto [x, y] : llvm::zip(a->getOpOperands(), b->getOperands())) {
    std::vector<double> next;
    for (double k : ratiosOf(x.get(), y))
      if (k == 1 || isLinearIn(x))
        for (double ratio : ratios)
          next.push_back(k * ratio);
    ratios = std::move(next);
    if (ratios.empty())
      break;
  }
  return ratios;
}

/// Sets the limits of a result; returns what else it is rounded to on open sets.
std::vector<Combination> FactsPass::saturate(Operation *op, const Combination *sum,
                                             const Term &term, Facts &facts) {
  constexpr size_t most = 64;
  std::vector<Combination> rounded;
  facts.zeroedBy = 0;
  facts.growth = 0;
  if (term.fixed) { // it is what it is
    if (facts.numbers)
      facts.limits = *facts.numbers;
    else if (!facts.getConstant())
      facts.limits = {std::numeric_limits<double>::quiet_NaN()};
    tidyLimits(facts);
    return rounded;
  }
  auto of = [&](Value v) -> const Facts & { return this->facts(v); };
  if (sum) {
    llvm::append_range(facts.limits, atoms.limitsOf(*sum));
  } else {
    auto [limits, followed] = saturationOf(op, of, [&](Value v) { return this->term(v).fixed; });
    llvm::append_range(facts.limits, limits);
    for (auto [value, factor] : followed) {
      Combination to = combinationOf(value);
      for (auto &[number, of] : to.terms)
        of *= factor;
      to.constant *= factor;
      for (Combination &each : atoms.roundings(to))
        if (each.terms.empty())
          facts.limits.push_back(each.constant);
        else if (rounded.size() < most)
          rounded.push_back(std::move(each));
    }
    // f(u tanh(w)) is rounded to f(u).
    if (op->getNumOperands() > 0 && op->getNumResults() == 1) {
      std::vector<Operation *> &alike = kinds[kindOf(op)];
      for (Operation *other : alike)
        for (double ratio : ratiosOf(op, other))
          if (unsigned number = this->term(other->getResult(0)).number;
              number != term.number && rounded.size() < most)
            rounded.push_back({{{number, ratio}}});
      alike.push_back(op);
    }
  }
  dropUnreached(op, facts.limits, of);
  tidyLimits(facts);
  setExtremes(op, sum != nullptr, of, facts);
  return rounded;
}

void FactsPass::visit(Operation *op) {
  if (op->getNumResults() == 0)
    return;
  if (isa<ContextualOpInterface>(op)) {
    auto ofOperands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return facts(v); });
    if (!readsContext(op, ofOperands))
      result.blind.insert(op);
  }
  Term term;
  setSources(op, term);
  number(op, term);
  Facts facts = factsOf(op);
  std::optional<Combination> sum = combine(op);
  if (sum)
    takeSum(*sum, term, facts);
  tightenImage(op, facts, [&](Value v) -> const Facts & { return this->facts(v); });
  // The other factor of a product may be a function of the same numbers, such as 1/u beside u.
  auto isFactor = [&](OpOperand &operand) {
    auto link = dyn_cast<SolvableOpInterface>(op);
    return link && op->getNumOperands() > 1 && handsOnMovers(link, operand.getOperandNumber());
  };
  if (llvm::any_of(op->getOpOperands(), isFactor) && term.movers.none())
    facts.free = false;
  settle(op, term, facts);
  std::vector<Combination> rounded = saturate(op, sum ? &*sum : nullptr, term, facts);
  if (isa<ContextualOpInterface>(op) && facts.getConstant())
    result.blind.insert(op);
  for (OpResult each : op->getResults()) {
    bool isFirst = each.getResultNumber() == 0;
    terms[each] = term;
    result.table[each] = isFirst ? facts : Facts();
  }
  if (isProduct(op))
    atoms.addProduct(term.number, this->term(op->getOperand(0)).number,
                     this->term(op->getOperand(1)).number);
  if (sum && !facts.getConstant())
    sums[op->getResult(0)] = std::move(*sum);
  atoms.add(term, facts, std::move(rounded));
}

void FactsPass::run() {
  Block &body = result.block.getBody().front();
  sources = body.getNumArguments();
  for (Operation &op : body)
    if (auto param = dyn_cast<ParamOp>(op)) {
      if (parameters.try_emplace(result.names[param.getName()], sources).second)
        ++sources;
    } else if (isa<ContextualOpInterface>(op)) {
      contexts[&op] = sources++;
    }
  for (BlockArgument argument : body.getArguments()) {
    Facts facts = {Zeros::NullSet, Zeros::NullSet, std::nullopt, ""};
    facts.bothSigns = facts.free = true; // activations, in general
    Term term;
    term.number = numberOf({uintptr_t(1), argument.getArgNumber()});
    term.reads.resize(sources);
    term.reads.set(argument.getArgNumber());
    term.movers = term.reads;
    terms[argument] = term;
    result.table[argument] = facts;
    atoms.add(term, facts);
  }
  for (Operation &op : body)
    visit(&op);
  forgetDividedZeros();
}

/// A norm without epsilon divides by the length of what it reads. A zero that is one in exact
/// arithmetic alone, such as a + b − b − a, is a rounding then, divided by roundings: what comes
/// out depends on a and b. So nothing that leads to such a zero counts as a constant, unless it
/// depends on settings alone.
void FactsPass::forgetDividedZeros() {
  llvm::SmallVector<Value> todo;
  result.block.walk([&](NormalizeOp norm) {
    if (norm.getEps().isZero() &&
        (norm.getKind() == NormKind::layer || facts(norm.getData()).isZero()))
      todo.push_back(norm.getData());
  });
  while (!todo.empty()) {
    Value value = todo.pop_back_val();
    Facts &known = result.table.find(value)->second;
    if (!known.getConstant() || term(value).fixed)
      continue;
    known = Facts();
    known.elements = known.vector = Zeros::OpenSet;
    known.why = "it is zero but for roundings, which a norm without epsilon divides by themselves";
    if (Operation *op = value.getDefiningOp())
      todo.append(op->operand_begin(), op->operand_end());
  }
  // An op that gave a constant, or was kept from the context by one, may read it after all.
  llvm::SmallVector<Operation *> blind(result.blind.begin(), result.blind.end());
  for (Operation *op : blind) {
    auto ofOperands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return facts(v); });
    if (readsContext(op, ofOperands) && !facts(op->getResult(0)).getConstant())
      result.blind.erase(op);
  }
}

BlockFacts::BlockFacts(BlockOp block, LayerOp layer) : block(block), names(block, layer) {
  FactsPass(*this, layer).run();
}
