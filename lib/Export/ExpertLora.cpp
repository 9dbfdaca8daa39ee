#include "ExpertLora.h"
#include "Lora.h"
#include "PeftConfig.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Program/SliceName.h"
#include "llvm/ADT/MapVector.h"

using namespace llvm;
using namespace ctxc;

/// transformers' module and parameter of a bank; empty where it has none.
static std::pair<std::string, std::string> nameInTransformers(StringRef bank) {
  if (!isBankName(bank)) {
    auto [module, parameter] = bank.rsplit('.');
    return module.ends_with(".experts") ? std::pair(moduleOf(module), parameter.str())
                                        : std::pair<std::string, std::string>();
  }
  StringRef module = bank;
  if (module.consume_back(".experts.*.down_proj.weight"))
    return {moduleOf((module + ".experts").str()), "down_proj"};
  if (module.consume_back(".block_sparse_moe.experts.*.w2.weight"))
    return {moduleOf((module + ".mlp.experts").str()), "down_proj"};
  return {};
}

bool ctxc::hasExpertName(StringRef bank) { return !nameInTransformers(bank).first.empty(); }

std::optional<ExpertPlace> ctxc::expertPlace(StringRef parameter) {
  ExpertPlace place;
  if (auto slice = splitSliceName(parameter)) {
    place.bank = slice->first.str();
    place.index = slice->second;
  } else {
    auto [before, rest] = parameter.split(".experts.");
    auto [number, after] = rest.split('.');
    if (after.empty() || number.getAsInteger(10, place.index))
      return std::nullopt;
    place.bank = (before + ".experts.*." + after).str();
  }
  std::tie(place.module, place.parameter) = nameInTransformers(place.bank);
  return place.module.empty() ? std::nullopt : std::optional(std::move(place));
}

/// How many matrices a bank has.
static int64_t countOf(StringRef bank, const Checkpoint &checkpoint) {
  if (!isBankName(bank)) {
    const TensorView *whole = checkpoint.find(bank);
    return whole && whole->shape.size() == 3 ? whole->shape[0] : 0;
  }
  int64_t count = 0;
  while (checkpoint.find(sliceName(bank, count)))
    ++count;
  return count;
}

std::vector<ExpertLora> ctxc::expertLoras(const Adapter &adapter, const Checkpoint &checkpoint) {
  MapVector<StringRef, std::vector<std::pair<int64_t, const MatrixChange *>>> changes;
  std::vector<ExpertPlace> places;
  places.reserve(adapter.matrices.size()); // whose names are the keys
  for (const MatrixChange &change : adapter.matrices)
    if (auto place = expertPlace(change.parameter)) {
      places.push_back(std::move(*place));
      changes[places.back().bank].emplace_back(places.back().index, &change);
    }
  std::vector<ExpertLora> all;
  for (const auto &[bank, experts] : changes) {
    const MatrixChange &first = *experts.front().second;
    ExpertLora lora;
    lora.place = *expertPlace(first.parameter);
    lora.experts = countOf(bank, checkpoint);
    lora.in = first.inFirst ? first.rows : first.columns;
    lora.out = first.inFirst ? first.columns : first.rows;
    for (auto [index, change] : experts)
      lora.rank = std::max(lora.rank, change->rank);
    lora.a.resize(lora.experts * lora.rank * lora.in);
    lora.b.resize(lora.experts * lora.out * lora.rank);
    for (auto [index, change] : experts) {
      auto [a, b] = loraFactors(*change);
      llvm::copy(a, lora.a.begin() + index * lora.rank * lora.in);
      for (int64_t row = 0; row < lora.out; ++row)
        llvm::copy(ArrayRef(b).slice(row * change->rank, change->rank),
                   lora.b.begin() + (index * lora.out + row) * lora.rank);
    }
    all.push_back(std::move(lora));
  }
  return all;
}

std::vector<MatrixChange> ctxc::expertChanges(const ExpertLora &lora, bool inFirst) {
  std::vector<MatrixChange> changes;
  for (int64_t i = 0; i < lora.experts; ++i) {
    auto a = ArrayRef(lora.a).slice(i * lora.rank * lora.in, lora.rank * lora.in),
         b = ArrayRef(lora.b).slice(i * lora.out * lora.rank, lora.out * lora.rank);
    if (all_of(b, [](float x) { return x == 0; }))
      continue;
    MatrixChange change;
    change.parameter = sliceName(lora.place.bank, i);
    change.rank = lora.rank;
    change.rows = inFirst ? lora.in : lora.out;
    change.columns = inFirst ? lora.out : lora.in;
    change.left = inFirst ? transposed(a, lora.rank) : b.vec();
    change.right = inFirst ? transposed(b, lora.out) : a.vec();
    change.inFirst = inFirst;
    changes.push_back(std::move(change));
  }
  return changes;
}

std::optional<StoredExperts> ctxc::findExperts(StringRef module, StringRef parameter,
                                               const Checkpoint &checkpoint) {
  for (const TensorView &tensor : checkpoint.tensors()) {
    StringRef name = tensor.name;
    auto place = expertPlace(tensor.shape.size() == 3 ? (name + "[0]").str() : name.str());
    if (place && place->index == 0 && place->module == module && place->parameter == parameter)
      return StoredExperts{place->bank,
                           countOf(place->bank, checkpoint),
                           {tensor.shape.end() - 2, tensor.shape.end()}};
  }
  return std::nullopt;
}
