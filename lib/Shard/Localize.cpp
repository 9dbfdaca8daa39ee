// Cuts a block into segments of one rank.
//
// An op belongs to the first segment in which its operands are there, as the split wants them; an
// exchange makes a value whole before the segment that follows the one in which it is made. What a
// later segment alone reads moves there if it has no matrix: queries are rotated beside the keys
// that were gathered, by the same table.
#include "lib/Shard/Localize.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Patch/Patch.h"
#include "lib/Shard/Shapes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::shard;

namespace {

/// A value as a rank has it: whole, one of its parts, or a term of it.
using Version = std::pair<Value, Split>;
struct VersionLess {
  bool operator()(const Version &a, const Version &b) const {
    return std::make_pair(a.first.getAsOpaquePointer(), a.second) <
           std::make_pair(b.first.getAsOpaquePointer(), b.second);
  }
};
template <typename T> using VersionMap = std::map<Version, T, VersionLess>;

/// Params, settings, loads, the token: every segment has its own.
bool isSource(Operation *op) {
  return op && op->getNumOperands() == 0 && !llvm::isa<xf::ContextualOpInterface>(op);
}

/// Indices, which are chosen again in each segment that reads them: what crosses is float32.
bool isRepeated(Operation *op) {
  return op && op->getNumResults() == 1 && op->getNumOperands() > 0 &&
         llvm::isa<RankedTensorType>(op->getResult(0).getType()) &&
         !llvm::cast<RankedTensorType>(op->getResult(0).getType()).getElementType().isF32();
}

class Localizer {
public:
  Localizer(xf::BlockOp source, const RegionSplit &split, const Pieces &pieces, int64_t rank,
            ModuleOp module, LocalBlock &made)
      : source(source), body(source.getBody().front()), split(split), pieces(pieces), rank(rank),
        module(module), b(source->getContext()), made(made) {}

  void run();

private:
  struct Building {
    xf::BlockOp block;
    VersionMap<Value> values; ///< in this segment
    llvm::SmallVector<Version> inputs;
    bool hasOps = false;
  };

  Split nativeOf(Value value) const {
    auto found = split.values.find(value);
    return found == split.values.end() ? Split() : found->second;
  }
  Split takenBy(OpOperand &operand) const {
    auto how = split.ops.find(operand.getOwner());
    return how == split.ops.end() ? Split() : how->second.operands[operand.getOperandNumber()];
  }

  int depthOf(const Version &version);
  void place(Operation &op, int &lastContextual);
  bool canMove(Operation &op) const;
  void moveToReaders(Operation &op);
  unsigned slotOf(const Version &version);
  Type typeOf(const Version &version) const;

  Value use(Building &segment, const Version &version);
  Value cloneSource(Building &segment, const Version &version);
  void clone(Building &segment, Operation &op);
  Operation *cloneLocal(Building &segment, Operation &op);
  Value withoutAddends(Building &segment, Operation &op);
  Transfer::Kind kindOf(Value value) const;
  void addTransfers();
  void finish(Building &segment, Segment &into);

  xf::BlockOp source;
  mlir::Block &body;
  const RegionSplit &split;
  const Pieces &pieces;
  const int64_t rank;
  ModuleOp module;
  OpBuilder b;
  LocalBlock &made;

  llvm::DenseMap<Operation *, int> depths; ///< of ops
  VersionMap<int> transferred;             ///< versions that a transfer makes: before which segment
  std::vector<Version> transfers;          ///< the same, in order
  VersionMap<unsigned> slots;
  std::vector<Building> segments;
};

Type Localizer::typeOf(const Version &version) const {
  auto type = llvm::dyn_cast<RankedTensorType>(version.first.getType());
  if (!type || version.second.kind != Split::Part)
    return version.first.getType();
  SmallVector<int64_t> shape(type.getShape());
  shape[version.second.dim] = pieces.cutOf(version.first, version.second.dim).extent(rank);
  return RankedTensorType::get(shape, type.getElementType());
}

/// The segment from which on a version is there: −1 is before the first. What has to be
/// transferred for it is noted.
int Localizer::depthOf(const Version &version) {
  const auto &[value, as] = version;
  Operation *def = value.getDefiningOp();
  if (isSource(def))
    return -1;
  if (isRepeated(def)) {
    int depth = -1;
    for (OpOperand &operand : def->getOpOperands())
      depth = std::max(depth, depthOf({operand.get(), takenBy(operand)}));
    return depth;
  }
  const Split native = nativeOf(value);
  if (as == native)
    return def ? depths.at(def) : -1;
  if (auto known = transferred.find(version); known != transferred.end())
    return known->second;
  const bool isWhole = as.kind == Split::Whole;
  const Version from = {value, isWhole ? native : Split()};
  int depth = depthOf(from) + 1;
  // A part is taken of a sum as soon as that is there.
  if (!isWhole && transferred.count(from))
    --depth;
  transferred[version] = depth;
  transfers.push_back(version);
  return depth;
}

/// Finds the segment of an op.
void Localizer::place(Operation &op, int &lastContextual) {
  int depth = 0;
  for (OpOperand &operand : op.getOpOperands())
    depth = std::max(depth, depthOf({operand.get(), takenBy(operand)}));
  if (llvm::isa<xf::ContextualOpInterface>(op)) // their order identifies their states
    depth = lastContextual = std::max(depth, lastContextual);
  depths[&op] = depth;
}

/// Whether an op costs little, and may be computed where its result is read.
bool Localizer::canMove(Operation &op) const {
  if (op.getNumResults() != 1 || op.getNumOperands() == 0 ||
      !llvm::isa<xf::ReshapeOp, xf::NormalizeOp, xf::ScaleOp, xf::RotaryOp>(op))
    return false;
  return llvm::none_of(op.getUsers(), [](Operation *user) {
    return isRepeated(user) || user->hasTrait<OpTrait::IsTerminator>();
  });
}

/// Moves an op to the first segment that reads its result.
void Localizer::moveToReaders(Operation &op) {
  if (!canMove(op) || op.use_empty())
    return;
  int first = INT_MAX;
  for (OpOperand &use : op.getUses()) {
    const Version version = {op.getResult(0), takenBy(use)};
    // What is transferred has to be made before that.
    auto sent = transferred.find(version);
    first =
        std::min(first, sent != transferred.end() ? sent->second - 1 : depths.at(use.getOwner()));
  }
  depths[&op] = std::max(depths.at(&op), first);
}

unsigned Localizer::slotOf(const Version &version) {
  auto [slot, isNew] = slots.try_emplace(version, made.slots);
  made.slots += isNew;
  return slot->second;
}

/// A source, under a name of its own where it is cut.
Value Localizer::cloneSource(Building &segment, const Version &version) {
  const auto &[value, as] = version;
  Operation *def = value.getDefiningOp();
  IRMapping none;
  Operation *clone = b.clone(*def, none);
  const unsigned number = llvm::cast<OpResult>(value).getResultNumber();
  if (as.kind == Split::Part) {
    const bool isLoad = llvm::isa<patch::LoadOp>(def);
    const char *attribute = isLoad ? "parameter" : "name";
    const std::string name = def->getAttrOfType<StringAttr>(attribute).str();
    // Each part of a loaded patch is cut by itself.
    const std::string local =
        (Twine(name) + "@" + Twine(as.dim) + (isLoad ? " of part " + Twine(number) : Twine()))
            .str();
    clone->setAttr(attribute, b.getStringAttr(local));
    LocalSource &entry = made.sources[local];
    entry.name = name;
    entry.whole = llvm::cast<RankedTensorType>(value.getType());
    entry.cut = pieces.cutOf(value, as.dim);
    entry.part = number;
    clone->removeAttr("value"); // a setting's default, which is of the whole
    clone->getResult(number).setType(typeOf(version));
    return clone->getResult(number);
  }
  for (auto [result, local] : llvm::zip(def->getResults(), clone->getResults()))
    segment.values[{result, Split()}] = local;
  return clone->getResult(number);
}

Value Localizer::use(Building &segment, const Version &version) {
  if (auto known = segment.values.find(version); known != segment.values.end())
    return known->second;
  const auto &[value, as] = version;
  Operation *def = value.getDefiningOp();
  Value local;
  if (isSource(def)) {
    local = cloneSource(segment, version);
  } else if (isRepeated(def)) {
    local = cloneLocal(segment, *def)->getResult(0);
  } else {
    local = segment.block.getBody().front().addArgument(typeOf(version), value.getLoc());
    segment.inputs.push_back(version);
    slotOf(version);
  }
  return segment.values[version] = local;
}

/// The op on this rank's versions of its operands, with their types.
Operation *Localizer::cloneLocal(Building &segment, Operation &op) {
  IRMapping values;
  SmallVector<Value> operands;
  for (OpOperand &operand : op.getOpOperands())
    operands.push_back(use(segment, {operand.get(), takenBy(operand)}));
  Operation *clone = b.clone(op, values);
  clone->setOperands(operands);
  for (auto [result, local] : llvm::zip(op.getResults(), clone->getResults()))
    local.setType(typeOf({result, nativeOf(result)}));
  auto how = split.ops.find(&op);
  if (how == split.ops.end())
    return clone;
  const OpSplit &opSplit = how->second;
  const bool isStretch = opSplit.index >= 0 && opSplit.index == opSplit.rule.stretched;
  if (auto slice = llvm::dyn_cast<xf::SliceOp>(clone); slice && isStretch)
    slice.setFrom(slice.getFrom() / split.ranks);
  if (auto embed = llvm::dyn_cast<xf::EmbedOp>(clone);
      embed && opSplit.index >= 0 && opSplit.index == opSplit.rule.summed) {
    const int64_t rows = shapeOf(op.getOperand(0)).front();
    kernel::RowsFrom(op.getContext())
        .setAttr(embed, b.getI32IntegerAttr(beginOfPart(rows, rank, split.ranks)));
  }
  return clone;
}

/// Of a sum of terms and of values that every rank has whole, rank 0 adds the latter: elsewhere
/// they are zero. Null where the op has no such operand.
Value Localizer::withoutAddends(Building &segment, Operation &op) {
  auto how = split.ops.find(&op);
  if (rank == 0 || how == split.ops.end() || how->second.index >= 0 ||
      how->second.rule.sums != SumUse::Add || op.getNumResults() != 1 ||
      nativeOf(op.getResult(0)).kind != Split::Term)
    return {};
  Operation *clone = cloneLocal(segment, op);
  b.setInsertionPoint(clone);
  for (auto [i, as] : llvm::enumerate(how->second.operands)) {
    if (as.kind == Split::Term)
      continue;
    if (llvm::isa_and_nonnull<xf::ParamOp>(op.getOperand(i).getDefiningOp())) { // a bias
      Value data = clone->getOperand(1 - i);
      clone->erase();
      b.setInsertionPointToEnd(&segment.block.getBody().front());
      return data;
    }
    Value whole = clone->getOperand(i);
    clone->setOperand(
        i, xf::TimesOp::create(b, op.getLoc(), whole.getType(), whole, b.getF32FloatAttr(0)));
  }
  b.setInsertionPointToEnd(&segment.block.getBody().front());
  return clone->getResult(0);
}

void Localizer::clone(Building &segment, Operation &op) {
  segment.hasOps = true;
  if (Value sum = withoutAddends(segment, op)) {
    segment.values[{op.getResult(0), nativeOf(op.getResult(0))}] = sum;
    return;
  }
  Operation *clone = cloneLocal(segment, op);
  for (auto [result, local] : llvm::zip(op.getResults(), clone->getResults()))
    segment.values[{result, nativeOf(result)}] = local;
}

/// How the ranks make a value whole.
Transfer::Kind Localizer::kindOf(Value value) const {
  auto exchange =
      llvm::find_if(split.exchanges, [&](const Exchange &each) { return each.value == value; });
  assert(exchange != split.exchanges.end() && "the split lacks an exchange");
  switch (exchange->kind) {
  case ExchangeKind::Sum:
    return Transfer::Sum;
  case ExchangeKind::Gather:
    return Transfer::Gather;
  case ExchangeKind::Collect:
    return Transfer::Collect;
  }
  llvm_unreachable("all kinds are above");
}

void Localizer::addTransfers() {
  for (const Version &to : transfers) {
    const auto &[value, as] = to;
    Transfer transfer;
    const Split native = nativeOf(value);
    const bool isWhole = as.kind == Split::Whole;
    transfer.kind = isWhole ? kindOf(value) : Transfer::Take;
    transfer.from = slotOf({value, isWhole ? native : Split()});
    transfer.to = slotOf(to);
    transfer.elements = int64_t(elementsOf(value));
    if (transfer.kind != Transfer::Sum)
      transfer.cut = pieces.cutOf(value, isWhole ? native.dim : as.dim);
    made.segments[transferred.at(to)].before.push_back(std::move(transfer));
  }
}

/// Gives a segment its results: what has a slot and is made in it.
void Localizer::finish(Building &segment, Segment &into) {
  for (const Version &input : segment.inputs)
    into.inputs.push_back(slots.at(input));
  if (!segment.hasOps) {
    segment.block.erase();
    return;
  }
  std::map<unsigned, Value> outputs;
  for (const auto &[version, slot] : slots)
    if (auto local = segment.values.find(version);
        local != segment.values.end() && !llvm::is_contained(segment.inputs, version))
      outputs[slot] = local->second;
  SmallVector<Value> results;
  for (const auto &[slot, local] : outputs) {
    results.push_back(local);
    into.outputs.push_back(slot);
  }
  b.setInsertionPointToEnd(&segment.block.getBody().front());
  xf::YieldOp::create(b, source.getLoc(), results);
  segment.block.setFunctionType(b.getFunctionType(segment.block.getBody().getArgumentTypes(),
                                                  ValueRange(results).getTypes()));
  into.block = segment.block;
}

void Localizer::run() {
  for (BlockArgument argument : body.getArguments())
    slotOf({argument, Split()});
  int lastContextual = 0, last = 0;
  patch::StoreOp lastStore;
  for (Operation &op : body.without_terminator()) {
    if (isSource(&op) || isRepeated(&op))
      continue;
    place(op, lastContextual);
    if (auto store = llvm::dyn_cast<patch::StoreOp>(op))
      lastStore = store;
  }
  for (Value result : body.getTerminator()->getOperands())
    depthOf({result, Split()});
  for (Operation &op : llvm::reverse(body.without_terminator()))
    if (depths.count(&op))
      moveToReaders(op);
  for (const auto &[op, depth] : depths)
    last = std::max(last, depth);
  for (const auto &[version, depth] : transferred)
    last = std::max(last, depth);

  made.segments.resize(last + 1);
  segments.resize(last + 1);
  for (int depth = 0; depth <= last; ++depth) {
    Building &segment = segments[depth];
    b.setInsertionPointToEnd(module.getBody());
    const std::string name = (source.getSymName() + "_segment" + Twine(depth)).str();
    segment.block = xf::BlockOp::create(b, source.getLoc(), b.getStringAttr(name),
                                        TypeAttr::get(b.getFunctionType({}, {})),
                                        /*sym_visibility=*/nullptr, /*arg_attrs=*/nullptr,
                                        /*res_attrs=*/nullptr);
    b.setInsertionPointToStart(&segment.block.getBody().emplaceBlock());
    for (Operation &op : body.without_terminator())
      if (auto at = depths.find(&op); at != depths.end() && at->second == depth)
        clone(segment, op);
    made.segments[depth].predictsReplay = lastStore && depths.at(lastStore) == depth;
  }
  addTransfers();
  for (Value result : body.getTerminator()->getOperands())
    made.results.push_back(slotOf({result, Split()}));
  for (auto [segment, into] : llvm::zip(segments, made.segments))
    finish(segment, into);
}

} // namespace

void shard::localize(xf::BlockOp block, const RegionSplit &split, const Pieces &pieces,
                     int64_t rank, ModuleOp into, LocalBlock &made) {
  Localizer(block, split, pieces, rank, into, made).run();
}
