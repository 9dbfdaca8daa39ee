#include "lib/Runtime/Parts.h"
#include "ctxc/Support/Error.h"
#include "dialects/Patch/Patch.h"
#include <cstring>

using namespace mlir;
using namespace ctxc;

/// Some elements of a tensor that `weights` have as a whole: where they are in memory, or a copy in
/// `copies`.
static llvm::Expected<const void *> partOfWhole(Weights &weights, llvm::StringRef name,
                                                RankedTensorType type,
                                                llvm::ArrayRef<ElementRun> runs,
                                                PartCopies &copies) {
  llvm::Expected<const void *> whole = weights.get(name, type);
  if (!whole)
    return whole;
  const DType dtype = storageOf(type.getElementType());
  const auto *from = static_cast<const char *>(*whole);
  if (runs.size() == 1)
    return from + bytesOf(dtype, runs.front().begin);
  std::vector<int64_t> key = {reinterpret_cast<intptr_t>(*whole)};
  int64_t size = 0;
  for (const ElementRun &run : runs) {
    key.insert(key.end(), {run.begin, run.count});
    size += run.count;
  }
  const void *&copy = copies.known[key];
  if (copy)
    return copy;
  auto *to = reinterpret_cast<char *>(copies.memory->take(bytesOf(dtype, size)));
  if (!to)
    return makeError("there is no memory for this rank's part of " + name + ", " +
                     llvm::Twine(bytesOf(dtype, size)) + " bytes; free some, or use more ranks");
  copy = to;
  for (const ElementRun &run : runs)
    to = std::copy_n(from + bytesOf(dtype, run.begin), bytesOf(dtype, run.count), to);
  return copy;
}

/// Fails for matrices whose scales lie in another tensor.
static llvm::Error checkStorage(const shard::LocalSource &source) {
  const DType dtype = storageOf(source.whole.getElementType());
  if (dtype != DType::ScaledF8E4M3 && dtype != DType::MXFP4)
    return llvm::Error::success();
  return makeError(
      "tensor=" + llvm::Twine(source.cut.ranks) + ": a matrix is stored as " + nameOf(dtype) +
      ", with scales in another tensor, which ranks cannot share yet; expected weights "
      "of another storage type");
}

static llvm::Expected<const void *> partOf(Weights &weights, llvm::StringRef name,
                                           RankedTensorType type, llvm::ArrayRef<ElementRun> runs,
                                           PartCopies &copies) {
  llvm::Expected<const void *> part = weights.getPart(name, type, runs);
  if (!part || *part)
    return part;
  return partOfWhole(weights, name, type, runs, copies);
}

llvm::Expected<const void *> ctxc::partOfParameter(Weights &weights, llvm::StringRef stored,
                                                   const shard::LocalSource &source, int64_t rank,
                                                   PartCopies &copies) {
  if (llvm::Error error = checkStorage(source))
    return std::move(error);
  return partOf(weights, stored, source.whole, runsOf(source.cut, rank), copies);
}

llvm::Expected<std::vector<const void *>> ctxc::partOfBank(Weights &weights, llvm::StringRef name,
                                                           const shard::LocalSource &source,
                                                           int64_t rank, PartCopies &copies) {
  if (llvm::Error error = checkStorage(source))
    return std::move(error);
  const RankedTensorType type = source.whole;
  const int64_t count = type.getDimSize(0);
  const shard::Cut cut = cutOfSlice(source.cut, count);
  auto each = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  std::vector<const void *> bank;
  for (int64_t i = 0; i < count; ++i) {
    auto part = isBankName(name)
                    ? partOf(weights, sliceName(name, i), each, runsOf(cut, rank), copies)
                    : partOf(weights, name, type, runsOf(cut, rank, i), copies);
    if (!part)
      return part.takeError();
    bank.push_back(*part);
  }
  return bank;
}

std::vector<char> ctxc::partOfSetting(ProgramStep step, const shard::LocalSource &source,
                                      int64_t rank) {
  const std::vector<char> whole = settingBytes(step, source.name);
  std::vector<char> part(source.cut.partSize(rank) * sizeof(float));
  source.cut.visitRuns(rank, [&](int64_t inWhole, int64_t inPart, int64_t count) {
    std::memcpy(part.data() + inPart * sizeof(float), whole.data() + inWhole * sizeof(float),
                count * sizeof(float));
  });
  return part;
}

void ctxc::partOfRows(ArrayRef<float> whole, const shard::Cut &cut, int64_t rank, Rows &part) {
  part.resize(cut.partSize(rank));
  cut.visitRuns(rank, [&](int64_t inWhole, int64_t inPart, int64_t count) {
    std::copy_n(whole.begin() + inWhole, count, part.begin() + inPart);
  });
}

llvm::SmallVector<KernelArg> ctxc::loadArguments(xf::BlockOp block) {
  llvm::SmallVector<KernelArg> args;
  for (patch::LoadOp load : block.getBody().getOps<patch::LoadOp>())
    for (auto [i, part] : llvm::enumerate(load.getParts())) {
      auto type = cast<RankedTensorType>(part.getType());
      args.push_back({KernelArgKind::Load, load.getParameter().str(), int64_t(i), 0,
                      MemRefType::get(type.getShape(), type.getElementType())});
    }
  return args;
}
