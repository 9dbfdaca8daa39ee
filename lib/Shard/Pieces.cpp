#include "lib/Shard/Pieces.h"
#include "ctxc/Support/Error.h"
#include "lib/Shard/Shapes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::shard;

int64_t Cut::wholeSize() const {
  int64_t size = 0;
  for (int64_t piece : pieces)
    size += piece;
  return before * size * behind;
}

int64_t Cut::partSize(int64_t rank) const {
  int64_t size = 0;
  for (int64_t piece : pieces)
    size += beginOf(piece, rank + 1) - beginOf(piece, rank);
  return before * size * behind;
}

void Cut::visitRuns(int64_t rank, Visit visit) const {
  int64_t inWhole = 0, inPart = 0;
  for (int64_t i = 0; i < before; ++i)
    for (int64_t piece : pieces) {
      const int64_t begin = beginOf(piece, rank) * behind;
      const int64_t count = beginOf(piece, rank + 1) * behind - begin;
      visit(inWhole + begin, inPart, count);
      inWhole += piece * behind;
      inPart += count;
    }
}

/// Two params of one name are one parameter.
static const void *keyOf(Value value) {
  auto param = value.getDefiningOp<xf::ParamOp>();
  return param ? param.getNameAttr().getAsOpaquePointer() : value.getAsOpaquePointer();
}

/// A value that an op reads or makes along the index that it is cut along.
struct Stretch {
  Value value;
  int dim;
  int64_t from, size;
};

static llvm::SmallVector<Stretch> stretchesOf(Operation *op, const OpSplit &how) {
  llvm::SmallVector<Stretch> all;
  auto add = [&](ValueRange values, llvm::ArrayRef<llvm::SmallVector<int, 3>> dims,
                 llvm::ArrayRef<int64_t> from) {
    for (auto [i, value] : llvm::enumerate(values)) {
      const int dim = llvm::find(dims[i], how.index) - dims[i].begin();
      if (dim < int(dims[i].size()))
        all.push_back(
            {value, dim, how.index == how.rule.stretched ? from[i] : 0, shapeOf(value)[dim]});
    }
  };
  add(op->getOperands(), how.rule.operands, how.rule.operandsFrom);
  add(op->getResults(), how.rule.results, how.rule.resultsFrom);
  return all;
}

llvm::Error Pieces::join(Operation *op, const OpSplit &how, bool &isNew) {
  const llvm::SmallVector<Stretch> stretches = stretchesOf(op, how);
  const bool isStretched = how.index == how.rule.stretched;
  int64_t extent = 0;
  bool isOfUnits = false;
  for (const Stretch &each : stretches) {
    extent = std::max(extent, each.from + each.size);
    isOfUnits |= ofUnits.count({keyOf(each.value), each.dim}) ||
                 (units && parts == Evenness::Even && each.size % ranks);
  }
  if (isOfUnits && isStretched)
    return makeError("op '" + op->getName().getStringRef() +
                     "' takes a part of heads that ranks share unevenly");
  for (const Stretch &each : stretches)
    isNew |= isOfUnits && ofUnits.insert({keyOf(each.value), each.dim}).second;
  // An entry of a value stands for several of the index: a head for the rows of its matrix.
  auto scaleOf = [&](const Stretch &each) { return isStretched ? 1 : extent / each.size; };
  Ends joint;
  for (const Stretch &each : stretches) {
    Ends &own = all[{keyOf(each.value), each.dim}];
    own.insert(each.size);
    for (int64_t end : own)
      joint.insert(each.from + end * scaleOf(each));
    joint.insert(each.from);
  }
  for (const Stretch &each : stretches) {
    Ends &own = all[{keyOf(each.value), each.dim}];
    for (int64_t end : joint) {
      if (end <= each.from || end > each.from + each.size * scaleOf(each))
        continue;
      if ((end - each.from) % scaleOf(each))
        return makeError("op '" + op->getName().getStringRef() +
                         "' cannot be shared by ranks: a piece ends within one of its entries");
      isNew |= own.insert((end - each.from) / scaleOf(each)).second;
    }
  }
  return llvm::Error::success();
}

llvm::Expected<Pieces> Pieces::find(mlir::Block &body, const RegionSplit &split, RegionRole role) {
  Pieces pieces(split.ranks, role);
  for (bool isNew = true; isNew;) {
    isNew = false;
    for (Operation &op : body) {
      auto how = split.ops.find(&op);
      if (how != split.ops.end() && how->second.index >= 0)
        if (llvm::Error error = pieces.join(&op, how->second, isNew))
          return std::move(error);
    }
  }
  for (const auto &[key, ends] : pieces.all) {
    if (role.parts == Evenness::Uneven)
      break;
    const bool isOfUnits = pieces.ofUnits.count(key);
    int64_t begin = 0;
    for (int64_t end : ends) {
      if ((end - begin) % (isOfUnits ? role.units : split.ranks))
        return makeError("a dimension falls into pieces of which one has " +
                         llvm::Twine(end - begin) + " entries, which " +
                         (isOfUnits ? "are no whole number of " + llvm::Twine(role.units) + " units"
                                    : llvm::Twine(split.ranks) + " ranks cannot share evenly"));
      begin = end;
    }
  }
  return pieces;
}

Cut Pieces::cutOf(Value value, int dim) const {
  Cut cut;
  cut.ranks = ranks;
  llvm::ArrayRef<int64_t> shape = shapeOf(value);
  for (int i = 0; i < int(shape.size()); ++i)
    if (i != dim)
      (i < dim ? cut.before : cut.behind) *= shape[i];
  cut.units = ofUnits.count({keyOf(value), dim}) ? units : 0;
  auto known = all.find({keyOf(value), dim});
  int64_t begin = 0;
  for (int64_t end : known == all.end() ? Ends{shape[dim]} : known->second) {
    cut.pieces.push_back(end - begin);
    begin = end;
  }
  return cut;
}
