#include "Shrink.h"
#include "dialects/XF/Sizes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <set>

using namespace mlir;
using namespace ctxc;
using xf::SizeRelation;

static xf::BlockOp blockOf(ModuleOp module) { return *module.getOps<xf::BlockOp>().begin(); }

namespace {

/// Sizes in ascending order are given new ones, each the smallest that is possible, with a step
/// back where none is.
class SizeSearch {
public:
  SizeSearch(ModuleOp module, llvm::function_ref<bool(xf::BlockOp)> accept)
      : module(module), accept(accept) {
    collect();
  }

  Shrunk run() {
    assign(0);
    return std::move(found);
  }

private:
  void collect();
  bool assign(size_t index);
  std::optional<int64_t> derive(int64_t size) const;
  SmallVector<int64_t> candidates(int64_t size, int64_t least) const;
  bool holds(const SizeRelation &relation) const;
  bool allHold(int64_t size) const;
  bool isKnown(const SizeRelation &relation) const;
  bool finish();
  OwningOpRef<ModuleOp> apply() const;
  int64_t of(int64_t size) const {
    auto known = f.find(size);
    return known == f.end() ? size : known->second;
  }

  ModuleOp module;
  llvm::function_ref<bool(xf::BlockOp)> accept;
  std::vector<int64_t> sizes;
  std::vector<SizeRelation> relations;
  std::map<int64_t, int64_t> f;
  static constexpr unsigned mostTried = 32; ///< blocks
  unsigned steps = 0, tried = 0;
  Shrunk found;
};

} // namespace

void SizeSearch::collect() {
  std::set<int64_t> all;
  auto add = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      all.insert(tensor.getShape().begin(), tensor.getShape().end());
  };
  xf::BlockOp block = blockOf(module);
  llvm::for_each(block.getArgumentTypes(), add);
  block.walk([&](Operation *op) {
    llvm::for_each(op->getResultTypes(), add);
    auto sized = dyn_cast<xf::SizesOpInterface>(op);
    if (!sized)
      return;
    for (SizeRelation &relation : sized.getSizeRelations()) {
      all.insert(relation.left.begin(), relation.left.end());
      if (!relation.fixed)
        all.insert(relation.right.begin(), relation.right.end());
      relations.push_back(std::move(relation));
    }
  });
  all.erase(1);
  f[1] = 1;
  sizes.assign(all.begin(), all.end());
}

bool SizeSearch::isKnown(const SizeRelation &relation) const {
  auto known = [&](int64_t size) { return f.count(size) != 0; };
  return llvm::all_of(relation.left, known) &&
         (relation.fixed || llvm::all_of(relation.right, known));
}

bool SizeSearch::holds(const SizeRelation &relation) const {
  auto total = [&](ArrayRef<int64_t> side) {
    bool isSum = relation.kind == SizeRelation::Sum;
    int64_t result = isSum ? 0 : 1;
    for (int64_t size : side)
      result = isSum ? result + of(size) : result * of(size);
    return result;
  };
  if (relation.kind != SizeRelation::Multiple)
    return total(relation.left) == total(relation.right);
  int64_t divisor = relation.fixed ? relation.right[0] : of(relation.right[0]);
  return of(relation.left[0]) % divisor == 0;
}

/// Whether what speaks of `size`, and of known sizes else, holds.
bool SizeSearch::allHold(int64_t size) const {
  return llvm::all_of(relations, [&](const SizeRelation &relation) {
    bool speaks =
        llvm::is_contained(relation.left, size) || llvm::is_contained(relation.right, size);
    return !speaks || !isKnown(relation) || holds(relation);
  });
}

/// What a relation makes of `size`, which is alone unknown in it; none where no relation says.
std::optional<int64_t> SizeSearch::derive(int64_t size) const {
  for (const SizeRelation &relation : relations) {
    if (relation.kind == SizeRelation::Multiple)
      continue;
    bool isSum = relation.kind == SizeRelation::Sum;
    int64_t sides[2] = {isSum ? 0 : 1, isSum ? 0 : 1};
    int64_t times[2] = {0, 0};
    bool isOnly = true;
    for (int i : {0, 1})
      for (int64_t each : i ? relation.right : relation.left) {
        if (each == size)
          ++times[i];
        else if (!f.count(each))
          isOnly = false;
        else
          sides[i] = isSum ? sides[i] + of(each) : sides[i] * of(each);
      }
    if (!isOnly || times[0] + times[1] != 1)
      continue;
    int64_t other = sides[times[0] ? 1 : 0], own = sides[times[0] ? 0 : 1];
    if (isSum)
      return other - own;
    return other % own == 0 ? other / own : 0;
  }
  return std::nullopt;
}

/// What `size` may become, the likeliest first: what a relation says; what keeps it the sum of two
/// sizes, as slices that lie side by side need, or a multiple; the smallest.
SmallVector<int64_t> SizeSearch::candidates(int64_t size, int64_t least) const {
  constexpr int64_t most = 8;
  if (std::optional<int64_t> derived = derive(size))
    return {*derived};
  SmallVector<int64_t> result;
  for (auto [part, to] : f)
    if (part > 1 && 2 * part <= size && f.count(size - part))
      result.push_back(to + of(size - part));
  for (const SizeRelation &relation : relations)
    if (relation.kind == SizeRelation::Multiple && relation.left[0] == size) {
      int64_t divisor = relation.fixed ? relation.right[0] : of(relation.right[0]);
      result.push_back((least + divisor - 1) / divisor * divisor);
    }
  for (int64_t to = least; to <= least + most; ++to)
    result.push_back(to);
  return result;
}

/// Gives sizes from `index` on their new ones; true where `accept` takes the block.
bool SizeSearch::assign(size_t index) {
  constexpr unsigned mostSteps = 4096; // of all sizes together
  if (index == sizes.size())
    return finish();
  int64_t size = sizes[index], least = index ? of(sizes[index - 1]) + 1 : 2;
  for (int64_t to : candidates(size, least)) {
    if (to < least || to > size)
      continue;
    if (++steps > mostSteps || tried >= mostTried)
      return false;
    f[size] = to;
    if (allHold(size) && assign(index + 1))
      return true;
    f.erase(size);
  }
  return false;
}

OwningOpRef<ModuleOp> SizeSearch::apply() const {
  OwningOpRef<ModuleOp> result = cast<ModuleOp>(module->clone());
  xf::BlockOp block = blockOf(*result);
  auto map = [&](int64_t size) { return of(size); };
  auto typeOf = [&](Type type) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return type;
    Type element = tensor.getElementType();
    if (isa<xf::QuantizedType>(element))
      element = Float32Type::get(type.getContext());
    return RankedTensorType::get(llvm::map_to_vector(tensor.getShape(), map), element);
  };
  block.walk([&](xf::SizesOpInterface op) { op.resize(map); });
  block.walk([&](Operation *op) {
    if (op != block)
      for (Value value : op->getResults())
        value.setType(typeOf(value.getType()));
  });
  for (Value argument : block.getBody().getArguments())
    argument.setType(typeOf(argument.getType()));
  block.setFunctionType(FunctionType::get(block.getContext(),
                                          llvm::map_to_vector(block.getArgumentTypes(), typeOf),
                                          llvm::map_to_vector(block.getResultTypes(), typeOf)));
  return result;
}

bool SizeSearch::finish() {
  if (tried++ >= mostTried)
    return false;
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> smaller = apply();
  if (failed(verify(*smaller)) || !accept(blockOf(*smaller)))
    return false;
  found.module = std::move(smaller);
  for (auto [size, to] : llvm::reverse(f))
    if (size != to)
      found.sizes +=
          (found.sizes.empty() ? "" : ", ") + std::to_string(to) + " for " + std::to_string(size);
  return true;
}

Shrunk ctxc::shrink(ModuleOp module, llvm::function_ref<bool(xf::BlockOp)> accept) {
  return SizeSearch(module, accept).run();
}
