#include "ctxc/Program/PatchParts.h"
#include "ctxc/Program/MaterializedWeights.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;
using patch::PatchForm;

/// The ops whose results reach the block's outputs.
static llvm::DenseSet<Operation *> liveOps(xf::BlockOp block) {
  llvm::DenseSet<Operation *> live;
  for (Operation &op : llvm::reverse(block.getBody().front()))
    if (op.hasTrait<OpTrait::IsTerminator>() ||
        llvm::any_of(op.getUsers(), [&](Operation *user) { return live.contains(user); }))
      live.insert(&op);
  return live;
}

/// The form of a patch of the parameter, by the op that reads it: of several, one that reaches the
/// outputs, since only that is patched.
static PatchForm formOf(xf::BlockOp block, StringRef name) {
  SmallVector<Operation *> readers;
  for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>())
    if (param.getName() == name)
      for (Operation *user : param->getUsers())
        if (isa<patch::PatchableOpInterface>(user) &&
            cast<xf::AssignableOpInterface>(user).getParameterOperand().get() == param)
          readers.push_back(user);
  if (readers.size() > 1) {
    llvm::DenseSet<Operation *> live = liveOps(block);
    llvm::erase_if(readers,
                   [&](Operation *op) { return readers.size() > 1 && !live.contains(op); });
  }
  return readers.empty() ? PatchForm()
                         : cast<patch::PatchableOpInterface>(readers.back()).getPatchForm();
}

llvm::Expected<PatchedParameter> ctxc::findPatched(xf::BlockOp block, xf::LayerOp layer,
                                                   StringRef name) {
  for (xf::ParamOp param : block.getBody().getOps<xf::ParamOp>()) {
    if (param.getName() != name)
      continue;
    PatchedParameter found;
    found.stored = layer ? layer.getStoredName(name) : name.str();
    llvm::append_range(found.shape, cast<RankedTensorType>(param.getType()).getShape());
    found.form = formOf(block, name);
    return found;
  }
  return makeError("block '" + block.getSymName() + "' has no parameter '" + name +
                   "', whose patch it is");
}

/// Whether the slices are vectors, whose changes are stored as such: u_j, times the one number v_j.
static bool hasVectors(const PatchedParameter &p) { return p.shape.size() == 2; }

/// How many numbers u (or v) has for one slice.
static int64_t sideOf(const PatchedParameter &p, bool isU) {
  if (hasVectors(p))
    return isU ? p.shape.back() : 1;
  return p.shape[p.shape.size() - (isU != p.form.transposed ? 2 : 1)];
}

static llvm::Error wrongSize(const PatchedParameter &p, size_t found, int64_t expected) {
  return makeError(p.stored + ": the patch has " + Twine(found) +
                   " numbers where the model's parameter needs " + Twine(expected));
}

static ParameterPatch deltaEntry(std::string name, ArrayRef<int64_t> shape,
                                 std::vector<double> delta) {
  return {std::move(name), ParameterPatch::Kind::Delta, shape.vec(), {}, {}, std::move(delta)};
}

static ParameterPatch rank1Entry(std::string name, ArrayRef<int64_t> shape, bool transposed,
                                 std::vector<double> u, std::vector<double> v) {
  if (transposed)
    std::swap(u, v);
  return {
      std::move(name), ParameterPatch::Kind::Rank1, shape.vec(), std::move(u), std::move(v), {}};
}

/// A change for each slot that has a slice.
static llvm::Expected<std::vector<ParameterPatch>> slicesToStored(const PatchedParameter &p,
                                                                  const PatchParts &parts) {
  std::vector<ParameterPatch> entries;
  int64_t m = sideOf(p, true), n = sideOf(p, false), slots = parts[2].size();
  for (auto [i, side] : {std::pair(0, m), std::pair(1, n)})
    if (int64_t(parts[i].size()) != slots * side)
      return wrongSize(p, parts[i].size(), slots * side);
  ArrayRef<int64_t> shape = ArrayRef(p.shape).drop_front();
  for (int64_t j = 0; j < slots; ++j) {
    if (parts[2][j] < 0)
      continue;
    std::string name = sliceName(p.stored, int64_t(parts[2][j]));
    std::vector<double> u = ArrayRef(parts[0]).slice(j * m, m).vec(),
                        v = ArrayRef(parts[1]).slice(j * n, n).vec();
    if (hasVectors(p)) {
      for (double &x : u)
        x *= v.front();
      entries.push_back(deltaEntry(std::move(name), shape, std::move(u)));
    } else {
      entries.push_back(
          rank1Entry(std::move(name), shape, p.form.transposed, std::move(u), std::move(v)));
    }
  }
  return entries;
}

llvm::Expected<std::vector<ParameterPatch>> ctxc::toStored(const PatchedParameter &p,
                                                           PatchParts parts) {
  std::vector<ParameterPatch> entries;
  size_t expected = p.form.kind == PatchForm::Delta ? 1 : p.form.kind == PatchForm::Rank1 ? 2 : 3;
  if (parts.size() != expected)
    return makeError(p.stored + ": a patch of " + Twine(parts.size()) + " parts, expected " +
                     Twine(expected));
  ArrayRef<int64_t> shape = p.shape;
  if (p.form.kind == PatchForm::Delta) {
    entries.push_back(deltaEntry(p.stored, shape, std::move(parts[0])));
  } else if (p.form.kind == PatchForm::Rank1) {
    entries.push_back(
        rank1Entry(p.stored, shape, p.form.transposed, std::move(parts[0]), std::move(parts[1])));
  } else {
    return slicesToStored(p, parts);
  }
  if (llvm::Error error = checkSizes(entries.front(), shape))
    return std::move(error);
  return entries;
}

/// One slot after the other; slots that are left over are zero and change nothing.
static llvm::Expected<PatchParts> slicesFromStored(const PatchedParameter &p, const Patch &patch,
                                                   ArrayRef<int64_t> sizes) {
  int64_t slots = sizes[2], m = sideOf(p, true), n = sideOf(p, false);
  PatchParts parts = {std::vector<double>(slots * m), std::vector<double>(slots * n),
                      std::vector<double>(slots, -1.0)};
  const auto kind = hasVectors(p) ? ParameterPatch::Kind::Delta : ParameterPatch::Kind::Rank1;
  const std::vector<double> one = {1.0};
  int64_t next = 0;
  for (const ParameterPatch &entry : patch.parameters) {
    std::optional<int64_t> index = sliceIndex(p.stored, entry.parameter);
    if (!index)
      continue;
    if (llvm::Error error = checkSizes(entry, ArrayRef(p.shape).drop_front()))
      return std::move(error);
    if (entry.kind != kind) // no vector is one, by its sizes
      return makeError(entry.parameter + ": the patch is no pair of factors, which the model takes "
                                         "here; materialize the patch to run it");
    if (next == slots)
      return makeError(p.stored + ": the patch changes more of its slices than the " +
                       Twine(slots) + " that a token selects; materialize the patch to run it");
    auto put = [&](size_t part, int64_t size, const std::vector<double> &numbers) {
      std::copy(numbers.begin(), numbers.end(), parts[part].begin() + next * size);
    };
    put(0, m,
        kind == ParameterPatch::Kind::Delta ? entry.delta
        : p.form.transposed                 ? entry.v
                                            : entry.u);
    put(1, n, kind == ParameterPatch::Kind::Delta ? one : p.form.transposed ? entry.u : entry.v);
    parts[2][next++] = *index;
  }
  return next ? parts : PatchParts();
}

llvm::Expected<PatchParts> ctxc::fromStored(const PatchedParameter &p, const Patch &patch,
                                            ArrayRef<int64_t> sizes) {
  if (p.form.kind == PatchForm::Rank1EachSlice)
    return slicesFromStored(p, patch, sizes);
  PatchParts parts;
  for (const ParameterPatch &entry : patch.parameters) {
    if (entry.parameter != p.stored)
      continue;
    if (llvm::Error error = checkSizes(entry, p.shape))
      return std::move(error);
    parts.clear();
    if (entry.kind == ParameterPatch::Kind::Delta) {
      parts.push_back(entry.delta);
    } else {
      parts.push_back(p.form.transposed ? entry.v : entry.u);
      parts.push_back(p.form.transposed ? entry.u : entry.v);
    }
    if (parts.size() != sizes.size())
      return makeError(entry.parameter + ": is given " + Twine(parts.size()) +
                       " parts of a patch, expected " + Twine(sizes.size()) +
                       "; materialize the patch to run it");
  }
  return parts;
}
