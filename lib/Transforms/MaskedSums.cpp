#include "MaskedSums.h"
#include "dialects/XF/FixedMatrix.h"
#include "mlir/IR/Builders.h"
#include <map>

using namespace mlir;
using namespace ctxc;

namespace {

using Numbers = std::vector<double>;

struct Addend {
  Value value;
  double factor;
};

/// What a known vector with zeros is multiplied with: entries of several values, each with a mask
/// of its own.
struct Masked {
  Numbers mask; ///< of all, with the addends' factors
  SmallVector<std::pair<Value, Numbers>> parts;
  xf::SettingOp first; ///< of those that the mask is made of
  Type type() const { return parts.front().first.getType(); }
};

} // namespace

static bool isSum(Operation *op) { return isa_and_nonnull<xf::AddOp, xf::SubOp>(op); }

/// What a sum adds up, through sums that nothing else reads.
static void collect(Value value, double factor, bool isOuter, SmallVectorImpl<Addend> &addends) {
  Operation *op = value.getDefiningOp();
  if (!isSum(op) || !(isOuter || op->hasOneUse()))
    return addends.push_back({value, factor});
  for (xf::SumTerm term : cast<xf::FactsOpInterface>(op).getSumTerms())
    collect(op->getOperand(term.operand), factor * term.factor, false, addends);
}

/// The numbers of a value that is a sum of settings; none where it is another. `first` is the first
/// of these.
static std::optional<Numbers> numbersOf(Value value, xf::SettingOp &first) {
  Operation *op = value.getDefiningOp();
  if (auto setting = dyn_cast_or_null<xf::SettingOp>(op)) {
    first = first ? first : setting;
    return xf::ownNumbers(setting);
  }
  auto speaker = dyn_cast_or_null<xf::FactsOpInterface>(op);
  std::optional<Numbers> sum;
  for (xf::SumTerm term : speaker ? speaker.getSumTerms() : SmallVector<xf::SumTerm>()) {
    std::optional<Numbers> each = numbersOf(op->getOperand(term.operand), first);
    if (!each || (sum && sum->size() != each->size()))
      return std::nullopt;
    sum = sum ? sum : Numbers(each->size(), 0.0);
    for (size_t i = 0; i < each->size(); ++i)
      (*sum)[i] += term.factor * (*each)[i];
  }
  return sum;
}

static std::optional<Masked> maskedOf(Addend addend) {
  auto product = addend.value.getDefiningOp<xf::MulOp>();
  if (!product || !product->hasOneUse() ||
      cast<RankedTensorType>(product.getType()).getRank() != 1 ||
      product.getLhs().getType() != product.getRhs().getType())
    return std::nullopt;
  for (auto [known, other] :
       {std::pair(product.getLhs(), product.getRhs()), {product.getRhs(), product.getLhs()}}) {
    xf::SettingOp first;
    std::optional<Numbers> mask = numbersOf(known, first);
    auto isZero = [](double number) { return number == 0; };
    if (!mask || llvm::none_of(*mask, isZero) || llvm::all_of(*mask, isZero))
      continue;
    for (double &number : *mask)
      number *= addend.factor;
    return Masked{*mask, {{other, *mask}}, first};
  }
  return std::nullopt;
}

static bool shareAnEntry(const Numbers &a, const Numbers &b) {
  return llvm::any_of(llvm::zip_equal(a, b),
                      [](auto pair) { return std::get<0>(pair) != 0 && std::get<1>(pair) != 0; });
}

/// `one` with `other`, where these are of one value, or share no entry; false where they are not.
static bool join(Masked &one, const Masked &other) {
  bool isOfOne = one.parts.size() == 1 && other.parts.front().first == one.parts.front().first;
  if (one.type() != other.type() || (!isOfOne && shareAnEntry(one.mask, other.mask)))
    return false;
  for (size_t i = 0; i < one.mask.size(); ++i)
    one.mask[i] += other.mask[i];
  if (isOfOne)
    one.parts.front().second = one.mask;
  else
    llvm::append_range(one.parts, other.parts);
  return true;
}

/// The vector whose entry j is entry `from[j]` of `x`.
static Value reordered(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> from) {
  std::map<int64_t, int64_t> sizes; // of stretches of x that stay together, by their first entry
  SmallVector<int64_t> starts;
  for (size_t j = 0; j < from.size(); ++j) {
    if (j == 0 || from[j] != from[j - 1] + 1)
      starts.push_back(from[j]);
    ++sizes[starts.back()];
  }
  auto parts = llvm::map_to_vector(sizes, [](auto &part) { return part.second; });
  auto order = llvm::map_to_vector(starts, [&](int64_t start) {
    return int64_t(std::distance(sizes.begin(), sizes.find(start)));
  });
  if (llvm::is_sorted(order))
    return x;
  return xf::PermuteOp::create(b, loc, x.getType(), x, parts, order);
}

/// Each entry of the part whose mask has it; what none has is of the last.
static Value selected(OpBuilder &b, Location loc, const Masked &masked) {
  if (masked.parts.size() == 1)
    return masked.parts.front().first;
  auto type = cast<RankedTensorType>(masked.type());
  SmallVector<Value> stretches;
  SmallVector<int64_t> places; // of the entries, where the stretches are put together
  for (const auto &[value, mask] : masked.parts) {
    bool isLast = &mask == &masked.parts.back().second;
    SmallVector<int64_t> own, others;
    for (size_t i = 0; i < mask.size(); ++i)
      (mask[i] != 0 || (isLast && masked.mask[i] == 0) ? own : others).push_back(i);
    llvm::append_range(places, own);
    auto stretch = RankedTensorType::get({int64_t(own.size())}, type.getElementType());
    llvm::append_range(own, others);
    stretches.push_back(
        xf::SliceOp::create(b, loc, stretch, reordered(b, loc, value, own), uint64_t(0)));
  }
  Value all = xf::ConcatOp::create(b, loc, stretches, uint64_t(0));
  SmallVector<int64_t> back(places.size());
  for (auto [j, place] : llvm::enumerate(places))
    back[place] = j;
  return reordered(b, loc, all, back);
}

static Value multiplied(OpBuilder &b, Location loc, const Masked &masked) {
  Value value = selected(b, loc, masked);
  if (llvm::all_of(masked.mask, [](double number) { return number == 1; }))
    return value;
  SmallVector<float> numbers(masked.mask.begin(), masked.mask.end());
  auto type = cast<RankedTensorType>(value.getType());
  xf::SettingOp first = masked.first;
  Value mask = xf::SettingOp::create(b, loc, type, (first.getName() + " and others").str(),
                                     DenseElementsAttr::get(type, ArrayRef(numbers)));
  return xf::MulOp::create(b, loc, value, mask);
}

/// The sum `op` with its masked terms joined where that is possible; null where it is not.
static Value joinTermsOf(Operation *op, unsigned &count) {
  SmallVector<Addend> addends;
  collect(op->getResult(0), 1, /*isOuter=*/true, addends);
  OpBuilder b(op);
  Location loc = op->getLoc();
  SmallVector<Masked> masked, kept;
  SmallVector<Addend> others;
  for (Addend addend : addends)
    if (std::optional<Masked> each = maskedOf(addend))
      masked.push_back(*each);
    else
      others.push_back(addend);
  unsigned before = count;
  for (const Masked &each : masked)
    if (llvm::any_of(kept, [&](Masked &other) { return join(other, each); }))
      ++count;
    else
      kept.push_back(each);
  if (count == before)
    return {};
  Value sum;
  auto add = [&](Value value, double factor) {
    if (factor != 1 && (!sum || factor != -1))
      value = xf::TimesOp::create(b, loc, value, llvm::APFloat(float(factor)));
    sum = !sum           ? value
          : factor == -1 ? Value(xf::SubOp::create(b, loc, sum, value))
                         : Value(xf::AddOp::create(b, loc, sum, value));
  };
  for (Addend each : others)
    add(each.value, each.factor);
  for (const Masked &each : kept)
    add(multiplied(b, loc, each), 1);
  return sum;
}

unsigned ctxc::joinMaskedTerms(xf::BlockOp block) {
  unsigned count = 0;
  for (Operation &op : llvm::make_early_inc_range(block.getBody().front())) {
    bool isInner = op.hasOneUse() && isSum(*op.user_begin());
    if (!isSum(&op) || isInner)
      continue;
    if (Value sum = joinTermsOf(&op, count))
      op.getResult(0).replaceAllUsesWith(sum);
  }
  return count;
}
