#include "ctxc/Shard/Split.h"
#include "lib/Shard/Shapes.h"
#include "lib/Shard/Soonest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::shard;

#include "ctxc/Shard/SplitInterface.cpp.inc"

double shard::bytesOf(xf::ParamOp param) {
  // Elements and bytes of a block of each quantised format.
  constexpr double bytesEach[] = {
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES) double(BYTES) / double(ELEMENTS),
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES)                              \
  double(BYTES) / double(ELEMENTS),
#include "ctxc/Support/BlockFormats.def"
  };
  Type element = llvm::cast<RankedTensorType>(param.getType()).getElementType();
  if (auto quantized = llvm::dyn_cast<xf::QuantizedType>(element))
    return elementsOf(param) * bytesEach[static_cast<size_t>(quantized.getFormat())];
  return elementsOf(param) * element.getIntOrFloatBitWidth() / 8;
}

double shard::bytesSent(const Exchange &exchange, int64_t ranks, int64_t streams) {
  double share = double(ranks - 1) / double(ranks);
  return (exchange.isSum ? 2 : 1) * share * double(exchange.elements) * sizeof(float) *
         double(streams);
}

double shard::secondsOf(const Exchange &exchange, int64_t ranks, int64_t streams,
                        const Machine &machine) {
  return machine.latency * llvm::Log2_64_Ceil(ranks) +
         bytesSent(exchange, ranks, streams) / machine.network;
}

namespace {

/// A split of what comes first in a region.
class Candidate {
public:
  Candidate(int64_t ranks, int64_t streams, const Machine &machine)
      : streams(streams), machine(&machine) {
    split.ranks = ranks;
  }

  RegionSplit split;

  /// The split of a value; what no op of the region made is whole.
  Split of(Value value) const {
    auto found = split.values.find(value);
    return found == split.values.end() ? Split() : found->second;
  }

  void setParameter(xf::ParamOp param, Split as) {
    auto [known, isNew] = split.parameters.try_emplace(param.getName().str(), as);
    split.values[param.getResult()] = known->second;
    if (isNew)
      split.stored += bytesOf(param) / (as.kind == Split::Part ? double(split.ranks) : 1);
  }

  /// Makes a value whole on every rank.
  void makeWhole(Value value) {
    Split now = of(value);
    if (now.kind == Split::Whole)
      return;
    Exchange exchange{value, now.kind == Split::Term, int64_t(elementsOf(value))};
    split.seconds += secondsOf(exchange, split.ranks, streams, *machine);
    split.exchanges.push_back(exchange);
    split.values[value] = Split();
  }

  void run(Operation &op) {
    auto interface = llvm::dyn_cast<SplitOpInterface>(op);
    if (!interface) {
      for (Value operand : op.getOperands())
        makeWhole(operand);
      for (Value result : op.getResults())
        split.values[result] = Split();
      return;
    }
    SplitRule rule = interface.getSplitRule(split.ranks);
    bool isOwned = false;
    int index = chooseIndex(op, rule, isOwned);
    bool isTerm = finishTerms(op, rule, index);
    fit(op, rule, index);
    for (auto [result, dims] : llvm::zip(op.getResults(), rule.results)) {
      Split made;
      if (isTerm || (index >= 0 && index == rule.summed))
        made.kind = Split::Term;
      else if (index >= 0)
        made = partOf(dims, index, isOwned);
      split.values[result] = made;
    }
    work(op, rule, index);
  }

private:
  static Split partOf(llvm::ArrayRef<int> dims, int index, bool isOwned) {
    auto at = llvm::find(dims, index);
    if (at == dims.end())
      return Split();
    return {Split::Part, int(at - dims.begin()), isOwned};
  }

  /// Whether all dimensions of the index have equal parts. Which slots a rank has is chosen by the
  /// data: only the dimension of the bank has to be divided.
  bool isDivisible(Operation &op, const SplitRule &rule, int index) const {
    auto divides = [&](ValueRange values, llvm::ArrayRef<llvm::SmallVector<int, 3>> allDims) {
      for (auto [value, dims] : llvm::zip(values, allDims))
        for (auto [size, at] : llvm::zip(shapeOf(value), dims)) {
          bool isChosen = index == rule.owned && !value.getDefiningOp<xf::ParamOp>();
          if (at == index && !isChosen && size % split.ranks)
            return false;
        }
      return true;
    };
    return divides(op.getOperands(), rule.operands) && divides(op.getResults(), rule.results);
  }

  /// The index that the op is cut along: the first that an operand is cut along, parameters first.
  int chooseIndex(Operation &op, const SplitRule &rule, bool &isOwned) const {
    for (bool isParameter : {true, false})
      for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands)) {
        Split now = of(operand);
        if (now.kind != Split::Part || bool(operand.getDefiningOp<xf::ParamOp>()) != isParameter)
          continue;
        int index = dims[now.dim];
        if (index < 0 || !(now.isOwned || isDivisible(op, rule, index)))
          continue;
        isOwned = now.isOwned || index == rule.owned;
        return index;
      }
    return -1;
  }

  /// Sums the terms that the op cannot take as they are. Returns whether the result is a term.
  bool finishTerms(Operation &op, const SplitRule &rule, int index) {
    unsigned terms = llvm::count_if(op.getOperands(),
                                    [&](Value operand) { return of(operand).kind == Split::Term; });
    bool isTaken = index < 0 && terms > 0 &&
                   (rule.sums == SumUse::Add || (rule.sums == SumUse::Scale && terms == 1));
    if (!isTaken)
      for (Value operand : op.getOperands())
        if (of(operand).kind == Split::Term)
          makeWhole(operand);
    return isTaken;
  }

  /// Gathers operands that are cut along something else. Of whole ones a rank takes its part.
  void fit(Operation &op, const SplitRule &rule, int index) {
    for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands)) {
      Split now = of(operand);
      if (now.kind == Split::Part && (index < 0 || dims[now.dim] != index))
        makeWhole(operand);
    }
  }

  /// What a rank reads of parameters and computes with them.
  void work(Operation &op, const SplitRule &rule, int index) {
    for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands)) {
      auto param = operand.getDefiningOp<xf::ParamOp>();
      if (!param)
        continue;
      double share = rule.share;
      bool isCut = index >= 0 && llvm::is_contained(dims, index);
      if (isCut && index == rule.owned) // the rank with the most active experts
        share *= double(llvm::divideCeil(rule.active, split.ranks)) / double(rule.active);
      else if (isCut)
        share /= double(split.ranks);
      double bytes = bytesOf(param) * share;
      double operations = (rule.summed >= 0 && rule.sums == SumUse::Finish ? 2 : 1) *
                          elementsOf(param) * share * double(streams);
      split.read += bytes;
      split.operations += operations;
      split.seconds +=
          std::max(bytes / machine->bandwidth, machine->rate ? operations / *machine->rate : 0);
    }
  }

  int64_t streams;
  const Machine *machine;
};

/// Whether the parameter may be cut along the dimension at all: matrices and banks. A vector is
/// small, and a rank takes its part of it where it needs one.
bool mayCut(xf::ParamOp param, int dim, int64_t ranks) {
  llvm::ArrayRef<int64_t> shape = shapeOf(param);
  return shape.size() >= 2 && shape[dim] > 0 && shape[dim] % ranks == 0;
}

} // namespace

RegionSplit shard::splitRegion(mlir::Block &body, int64_t ranks, int64_t streams,
                               const Machine &machine) {
  // Of the splits of the ops so far, those in which a rank is done first.
  constexpr size_t width = 256;
  std::vector<Candidate> candidates(1, Candidate(ranks, streams, machine));
  for (Operation &op : body) {
    auto param = llvm::dyn_cast<xf::ParamOp>(op);
    std::vector<Candidate> next;
    for (Candidate &candidate : candidates) {
      if (!param) {
        candidate.run(op);
        continue;
      }
      bool isKnown = candidate.split.parameters.count(param.getName().str());
      for (int dim = 0, rank = shapeOf(param).size(); !isKnown && ranks > 1 && dim < rank; ++dim)
        if (mayCut(param, dim, ranks)) {
          next.push_back(candidate);
          next.back().setParameter(param, {Split::Part, dim, false});
        }
      next.push_back(candidate);
      next.back().setParameter(param, Split());
    }
    if (param)
      candidates = std::move(next);
    keepSoonest(candidates, [](const Candidate &each) { return each.split.seconds; }, width);
  }
  return std::move(candidates.front().split);
}
