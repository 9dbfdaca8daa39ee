// The blocks of one rank.
#include "ctxc/Shard/LocalBlock.h"
#include "ctxc/Support/Error.h"
#include "lib/Shard/Localize.h"
#include "lib/Shard/Shapes.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::shard;

/// What contextual ops keep of a token, for each of the runs in order.
static std::vector<std::string> statesOf(mlir::Block &body, const RegionSplit &split,
                                         const Pieces &pieces) {
  std::vector<std::string> states;
  for (bool isReduced : {false, true})
    body.walk([&](xf::ContextualOpInterface op) {
      if ((op.getStateRun() == xf::Run::reduced) != isReduced)
        return;
      for (OpOperand &operand : op->getOpOperands()) {
        if (!llvm::is_contained(op.getStateOperands(), operand.get()))
          continue;
        const Split as =
            split.ops.count(op) ? split.ops.at(op).operands[operand.getOperandNumber()] : Split();
        std::string text;
        llvm::raw_string_ostream os(text);
        os << operand.get().getType();
        if (as.kind == Split::Part)
          for (int64_t piece : pieces.cutOf(operand.get(), as.dim).pieces)
            os << " " << as.dim << ":" << piece;
        states.push_back(text);
      }
    });
  return states;
}

LocalBlocks::LocalBlocks(MLIRContext &context, int64_t rank, int64_t ranks)
    : own(rank), all(ranks), segments(ModuleOp::create(UnknownLoc::get(&context))) {}

const LocalBlock *LocalBlocks::find(xf::BlockOp block) const {
  auto found = blocks.find(block);
  return found == blocks.end() ? nullptr : &found->second;
}

double LocalBlocks::shareOf(xf::BlockOp plain, xf::ParamOp param) const {
  if (const LocalBlock *block = find(plain))
    for (const auto &source : block->sources)
      if (const LocalSource &cut = source.second; cut.name == param.getName())
        return double(cut.cut.partSize(own)) / double(cut.cut.wholeSize());
  return 1;
}

// Memory is what is short: a network that costs little splits all matrices that can be split, and
// of these splits takes the one with the fewest bytes.
static constexpr Machine machine = {/*bandwidth=*/1e9, /*rate=*/std::nullopt, /*network=*/1e13,
                                    /*latency=*/0};

static bool isAllWhole(const RegionSplit &split) {
  return llvm::all_of(split.parameters,
                      [](const auto &each) { return each.second.kind == Split::Whole; });
}

llvm::Error LocalBlocks::localize(xf::BlockOp block, RegionSplit split, RegionRole role) {
  mlir::Block &body = block.getBody().front();
  llvm::Expected<Pieces> pieces = Pieces::find(body, split, role);
  if (!pieces)
    return makeError("tensor=" + Twine(all) + ": block '" + block.getSymName() +
                     "': " + llvm::toString(pieces.takeError()));
  LocalBlock &made = blocks[block];
  shard::localize(block, split, *pieces, own, *segments, made);
  made.states = statesOf(body, split, *pieces);
  return llvm::Error::success();
}

llvm::Error LocalBlocks::addEnd(xf::BlockOp end, bool isHead) {
  if (blocks.count(end))
    return llvm::Error::success();
  const RegionRole role = {Evenness::Uneven, isHead};
  RegionSplit best = splitRegion(end.getBody().front(), all, 1, machine, role);
  if (isAllWhole(best))
    return llvm::Error::success();
  splits.emplace(end, best);
  return localize(end, std::move(best), role);
}

llvm::Error LocalBlocks::add(const Program &program) {
  for (auto [i, step] : llvm::enumerate(program.steps))
    if (llvm::Error error = step.index ? add(step.block, step.dual, step.applied)
                                       : addEnd(step.block, program.head() == i))
      return error;
  return llvm::Error::success();
}

llvm::Error LocalBlocks::addPieces(const Program &program) {
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    if (i == 0 || program.head() == i) {
      if (llvm::Error error = addEnd(step.block, program.head() == i))
        return error;
      continue;
    }
    llvm::Expected<bool> isSplit = this->isSplit(step.block);
    if (!isSplit)
      return isSplit.takeError();
    if (*isSplit)
      if (llvm::Error error = add(step.block, {}, {}))
        return error;
  }
  return llvm::Error::success();
}

llvm::Expected<RegionRole> LocalBlocks::roleOf(xf::BlockOp layer) const {
  llvm::Expected<RegionRole> role = roleOfLayer(layer.getBody().front(), all);
  if (!role)
    return makeError("tensor=" + Twine(all) + ": block '" + layer.getSymName() + "' has " +
                     llvm::toString(role.takeError()));
  return role;
}

/// Whether the ranks share something of a layer's block; if so, how is known.
llvm::Expected<bool> LocalBlocks::isSplit(xf::BlockOp plain) {
  if (splits.count(plain))
    return true;
  llvm::Expected<RegionRole> role = roleOf(plain);
  if (!role)
    return role.takeError();
  RegionSplit best = splitRegion(plain.getBody().front(), all, 1, machine, *role);
  const bool isWhole = isAllWhole(best);
  if (!isWhole)
    splits.emplace(plain, std::move(best));
  return !isWhole;
}

llvm::Error LocalBlocks::add(xf::BlockOp plain, xf::BlockOp dual, xf::BlockOp applied) {
  llvm::Expected<bool> isSplit = this->isSplit(plain);
  if (!isSplit)
    return isSplit.takeError();
  if (!*isSplit)
    return makeError("tensor=" + Twine(all) + ": block '" + plain.getSymName() +
                     "' has no matrix that so many ranks can share evenly; expected a divisor of "
                     "its sizes");
  std::vector<std::string> states;
  for (xf::BlockOp block : {plain, dual, applied}) {
    if (!block || blocks.count(block))
      continue;
    llvm::Expected<RegionRole> role = roleOf(block);
    if (!role)
      return role.takeError();
    RegionSplit split =
        splitRegionAs(block.getBody().front(), all, 1, machine, splits.at(plain).parameters, *role);
    if (llvm::Error error = localize(block, std::move(split), *role))
      return error;
  }
  const std::vector<std::string> &ofOne = blocks.at(plain).states;
  for (xf::BlockOp block : {dual, applied}) {
    if (!block)
      continue;
    ArrayRef<std::string> found = blocks.at(block).states;
    for (; !found.empty(); found = found.drop_front(ofOne.size()))
      if (found.size() < ofOne.size() || found.take_front(ofOne.size()) != ArrayRef(ofOne))
        return makeError("tensor=" + Twine(all) + ": block '" + block.getSymName() +
                         "' would keep other parts of its context than '" + plain.getSymName() +
                         "'; expected a model whose patches leave these as they are");
  }
  return llvm::Error::success();
}
