#include "ctxc/Shard/Split.h"
#include "ctxc/Shard/Cut.h"
#include "ctxc/Support/Error.h"
#include "dialects/Patch/Patch.h"
#include "lib/Shard/Shapes.h"
#include "lib/Shard/Soonest.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::shard;

#include "ctxc/Shard/SplitInterface.cpp.inc"

double shard::bytesOf(xf::ParamOp param) {
  Type element = llvm::cast<RankedTensorType>(param.getType()).getElementType();
  if (auto quantized = llvm::dyn_cast<xf::QuantizedType>(element))
    return elementsOf(param) *
           (double(quantized.getBlockBytes()) / double(quantized.getBlockElements()));
  return elementsOf(param) * element.getIntOrFloatBitWidth() / 8;
}

double shard::bytesSent(const Exchange &exchange, int64_t ranks, int64_t streams) {
  int64_t ofAll = exchange.elements * (ranks - 1); // gathered: each part goes to all other ranks
  if (exchange.kind == ExchangeKind::Sum)
    ofAll *= 2;
  else if (exchange.kind == ExchangeKind::Collect)
    ofAll = exchange.elements - beginOfPart(exchange.elements, 1, ranks);
  return double(ofAll) / double(ranks) * sizeof(float) * double(streams);
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
  Candidate(int64_t ranks, int64_t streams, const Machine &machine, RegionRole role)
      : streams(streams), machine(&machine), role(role) {
    split.ranks = ranks;
  }

  RegionSplit split;
  bool keepsOps = false; ///< whether `split.ops` is filled

  /// The split of a value, as an op may take it: what no op of the region made is whole, and so is
  /// a sum that was taken. Parts that were gathered are there as parts, too.
  Split of(Value value) const {
    auto found = split.values.find(value);
    if (found == split.values.end() ||
        (found->second.kind == Split::Term && exchanged.contains(value)))
      return Split();
    return found->second;
  }

  void setParameter(xf::ParamOp param, Split as) {
    auto [known, isNew] = split.parameters.try_emplace(param.getName().str(), as);
    split.values[param.getResult()] = known->second;
    if (isNew)
      split.stored += bytesOf(param) * (as.kind == Split::Part ? partOfFirst(param, as.dim) : 1);
  }

  /// Makes a value whole on every rank; a result, where one rank alone needs it, on that one.
  void makeWhole(Value value, bool isResult = false) {
    Split now = of(value);
    if (now.kind == Split::Whole || !exchanged.insert(value).second)
      return;
    const ExchangeKind kind = now.kind == Split::Term       ? ExchangeKind::Sum
                              : isResult && role.isForFirst ? ExchangeKind::Collect
                                                            : ExchangeKind::Gather;
    Exchange exchange{value, kind, int64_t(elementsOf(value))};
    split.seconds += secondsOf(exchange, split.ranks, streams, *machine);
    split.exchanges.push_back(exchange);
  }

  void run(Operation &op) {
    OpSplit how;
    auto interface = llvm::dyn_cast<SplitOpInterface>(op);
    if (interface) {
      how.rule = interface.getSplitRule(split.ranks);
      how.index = chooseIndex(op, how.rule);
      const bool isTerm = finishTerms(op, how.rule, how.index);
      fit(op, how.rule, how.index);
      for (auto [result, dims] : llvm::zip(op.getResults(), how.rule.results))
        split.values[result] = isTerm || (how.index >= 0 && how.index == how.rule.summed)
                                   ? Split{Split::Term}
                                   : partOf(dims, how.index);
      work(op, how.rule, how.index);
    } else {
      for (Value operand : op.getOperands())
        makeWhole(operand, /*isResult=*/op.hasTrait<OpTrait::IsTerminator>());
      for (Value result : op.getResults())
        split.values[result] = Split();
    }
    if (!keepsOps)
      return;
    for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
      Split taken = interface ? partOf(how.rule.operands[i], how.index) : Split();
      how.operands.push_back(of(operand).kind == Split::Term ? of(operand) : taken);
    }
    split.ops[&op] = std::move(how);
  }

private:
  static Split partOf(llvm::ArrayRef<int> dims, int index) {
    auto at = index < 0 ? dims.end() : llvm::find(dims, index);
    if (at == dims.end())
      return Split();
    return {Split::Part, int(at - dims.begin())};
  }

  /// The share of a value, cut along a dimension, that the first rank has; none has more.
  double partOfFirst(Value value, int dim) const {
    const int64_t size = shapeOf(value)[dim];
    const bool isOfUnits = role.units && size % split.ranks && size % role.units == 0;
    const int64_t parts = isOfUnits ? role.units : size;
    return double(beginOfPart(parts, 1, split.ranks)) / double(parts);
  }

  /// Whether all dimensions of the index have equal parts; or the same ones, where parts may
  /// differ.
  bool isDivisible(Operation &op, const SplitRule &rule, int index) const {
    llvm::SmallVector<int64_t> sizes;
    auto add = [&](ValueRange values, llvm::ArrayRef<llvm::SmallVector<int, 3>> allDims) {
      for (auto [value, dims] : llvm::zip(values, allDims))
        for (auto [size, at] : llvm::zip(shapeOf(value), dims))
          if (at == index)
            sizes.push_back(size);
    };
    add(op.getOperands(), rule.operands);
    add(op.getResults(), rule.results);
    if (llvm::all_of(sizes, [&](int64_t size) { return size % split.ranks == 0; }))
      return true;
    if (role.units && index != rule.stretched)
      return llvm::all_of(sizes, [&](int64_t size) { return size % role.units == 0; });
    return role.parts == Evenness::Uneven && index != rule.stretched && llvm::all_equal(sizes);
  }

  /// The index that the op is cut along: the first that an operand is cut along, parameters first.
  int chooseIndex(Operation &op, const SplitRule &rule) const {
    for (bool isParameter : {true, false})
      for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands)) {
        Split now = of(operand);
        if (now.kind != Split::Part || bool(operand.getDefiningOp<xf::ParamOp>()) != isParameter)
          continue;
        int index = dims[now.dim];
        const bool lacksTerm = index == rule.summed && rule.addend >= 0 &&
                               of(op.getOperand(rule.addend)).kind != Split::Term;
        if (index >= 0 && !lacksTerm && isDivisible(op, rule, index))
          return index;
      }
    return -1;
  }

  /// Sums the terms that the op cannot take as they are. Returns whether the result is a term
  /// because an operand is.
  bool finishTerms(Operation &op, const SplitRule &rule, int index) {
    unsigned terms = llvm::count_if(op.getOperands(),
                                    [&](Value operand) { return of(operand).kind == Split::Term; });
    bool isTaken = index < 0 && terms > 0 &&
                   (rule.sums == SumUse::Add || (rule.sums == SumUse::Scale && terms == 1));
    for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
      const bool isAddend = index >= 0 && index == rule.summed && int(i) == rule.addend;
      if (!isTaken && !isAddend && of(operand).kind == Split::Term)
        makeWhole(operand);
    }
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
      if (auto at = llvm::find(dims, index); index >= 0 && at != dims.end())
        share *= partOfFirst(param, at - dims.begin());
      double bytes = bytesOf(param) * share;
      double operations = (rule.summed >= 0 && rule.sums == SumUse::Finish ? 2 : 1) *
                          elementsOf(param) * share * double(streams);
      split.read += bytes;
      split.operations += operations;
      const bool isForTwo = streams > 1 || llvm::isa<patch::LinearsOp, patch::ExpertLinearsOp>(op);
      const double bandwidth =
          isForTwo ? machine->bandwidthOfTwo.value_or(machine->bandwidth) : machine->bandwidth;
      split.seconds += std::max(bytes / bandwidth, machine->rate ? operations / *machine->rate : 0);
    }
  }

  int64_t streams;
  const Machine *machine;
  RegionRole role;
  llvm::DenseSet<Value> exchanged;
};

/// Whether the parameter may be cut along the dimension at all: matrices and banks, and these into
/// whole blocks where they are quantised. A vector is small, and a rank takes its part of it where
/// it needs one.
bool mayCut(xf::ParamOp param, int dim, int64_t ranks, RegionRole role) {
  llvm::ArrayRef<int64_t> shape = shapeOf(param);
  if (shape.size() < 2 || shape[dim] == 0)
    return false;
  if (role.parts == Evenness::Uneven)
    return dim == 0 && shape[dim] >= ranks;
  const int64_t shares = shape[dim] % ranks == 0 ? ranks : role.units;
  if (!shares || shape[dim] % shares)
    return false;
  auto quantized = llvm::dyn_cast<xf::QuantizedType>(
      llvm::cast<RankedTensorType>(param.getType()).getElementType());
  const bool isAlongRows = dim + 1 == int(shape.size());
  auto fits = [&](int64_t by) { return shape[dim] / by % quantized.getBlockElements() == 0; };
  return !quantized || !isAlongRows || (fits(shares) && (!role.units || fits(role.units)));
}

} // namespace

llvm::Expected<RegionRole> shard::roleOfLayer(mlir::Block &body, int64_t ranks) {
  RegionRole role;
  for (xf::AttentionOp op : body.getOps<xf::AttentionOp>()) {
    const int64_t heads = shapeOf(op.getQuery())[0], keyHeads = shapeOf(op.getKey())[0];
    if (heads % ranks == 0 && (keyHeads == 1 || keyHeads % ranks == 0))
      continue;
    const int64_t units = keyHeads > 1 ? keyHeads : heads;
    if (units < ranks || (role.units && role.units != units))
      return makeError(llvm::Twine(heads) + " heads over " + llvm::Twine(keyHeads) +
                       " of keys, which " + llvm::Twine(ranks) + " ranks cannot share; expected " +
                       (units < ranks ? "no more ranks than " + llvm::Twine(units)
                                      : "heads of one number in all attentions of a layer"));
    role.units = units;
  }
  return role;
}

RegionSplit shard::splitRegionAs(mlir::Block &body, int64_t ranks, int64_t streams,
                                 const Machine &machine,
                                 const std::map<std::string, Split> &parameters, RegionRole role) {
  Candidate candidate(ranks, streams, machine, role);
  candidate.keepsOps = true;
  for (Operation &op : body) {
    auto param = llvm::dyn_cast<xf::ParamOp>(op);
    if (!param) {
      candidate.run(op);
      continue;
    }
    auto known = parameters.find(param.getName().str());
    candidate.setParameter(param, known == parameters.end() ? Split() : known->second);
  }
  return std::move(candidate.split);
}

RegionSplit shard::splitRegion(mlir::Block &body, int64_t ranks, int64_t streams,
                               const Machine &machine, RegionRole role) {
  // Of the splits of the ops so far, those in which a rank is done first.
  constexpr size_t width = 256;
  std::vector<Candidate> candidates(1, Candidate(ranks, streams, machine, role));
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
        if (mayCut(param, dim, ranks, role)) {
          next.push_back(candidate);
          next.back().setParameter(param, {Split::Part, dim});
        }
      next.push_back(candidate);
      next.back().setParameter(param, Split());
    }
    if (param)
      candidates = std::move(next);
    keepSoonest(candidates, [](const Candidate &each) { return each.split.seconds; }, width);
  }
  return splitRegionAs(body, ranks, streams, machine, candidates.front().split.parameters, role);
}
