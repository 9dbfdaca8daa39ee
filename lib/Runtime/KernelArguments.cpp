#include "lib/Runtime/KernelArguments.h"
#include "ctxc/Runtime/PatchParts.h"

using namespace mlir;
using namespace ctxc;

int64_t ctxc::elementsOf(Type type) {
  int64_t n = 1;
  for (int64_t d : cast<ShapedType>(type).getShape())
    n *= ShapedType::isDynamic(d) ? 1 : d;
  return n;
}

std::vector<char> ctxc::settingBytes(ProgramStep step, StringRef name) {
  xf::SettingOp op;
  for (xf::BlockOp block : {step.block, step.dual, step.applied})
    if (block && !op)
      for (xf::SettingOp s : block.getBody().getOps<xf::SettingOp>())
        if (s.getName() == name)
          op = s;
  llvm::SmallVector<double> numbers =
      xf::SettingOp::numbers(op.getType(), step.layer.getSettingValue(op));
  bool integer = isa<IndexType>(op.getType());
  std::vector<char> bytes(numbers.size() * (integer ? sizeof(int64_t) : sizeof(float)));
  for (auto [i, x] : llvm::enumerate(numbers))
    if (integer)
      reinterpret_cast<int64_t *>(bytes.data())[i] = int64_t(x);
    else
      reinterpret_cast<float *>(bytes.data())[i] = float(x);
  return bytes;
}

static bool isIndices(const KernelArg &arg) {
  return cast<MemRefType>(arg.type).getElementType().isInteger(32);
}

llvm::Error ctxc::loadParts(ProgramStep at, ArrayRef<KernelArg> args, const Patch &patch,
                            std::vector<Rows> &loaded) {
  std::vector<const KernelArg *> group; // of one parameter
  size_t next = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const KernelArg &arg = args[i];
    if (arg.kind != KernelArgKind::Load)
      continue;
    group.push_back(&arg);
    if (i + 1 < args.size() && args[i + 1].kind == KernelArgKind::Load &&
        args[i + 1].name == arg.name)
      continue;
    auto parameter = findPatched(at.block, at.layer, arg.name);
    if (!parameter)
      return parameter.takeError();
    SmallVector<int64_t> sizes;
    for (const KernelArg *part : group)
      sizes.push_back(elementsOf(part->type));
    auto parts = fromStored(*parameter, patch, sizes);
    if (!parts)
      return parts.takeError();
    for (auto [j, part] : llvm::enumerate(group)) {
      if (loaded.size() <= next)
        loaded.resize(next + 1);
      Rows &numbers = loaded[next++];
      numbers.assign(sizes[j], 0.0f); // a parameter that is not in the patch is unpatched
      if (parts->empty())
        continue;
      if (!isIndices(*part)) {
        std::copy((*parts)[j].begin(), (*parts)[j].end(), numbers.begin());
        continue;
      }
      for (auto [number, x] : llvm::zip(numbers, (*parts)[j])) {
        int32_t index = int32_t(x);
        memcpy(&number, &index, sizeof index);
      }
    }
    group.clear();
  }
  return llvm::Error::success();
}

llvm::Error ctxc::readParts(ProgramStep at, ArrayRef<KernelArg> args, ArrayRef<Rows> rows,
                            int64_t row, Patch &patch) {
  PatchParts parts; // of one parameter
  size_t next = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const KernelArg &arg = args[i];
    if (arg.kind != KernelArgKind::Store)
      continue;
    int64_t size = elementsOf(arg.type);
    ArrayRef<float> part = ArrayRef(rows[next++]).slice(row * size, size);
    parts.emplace_back(part.begin(), part.end());
    for (size_t e = 0; isIndices(arg) && e < part.size(); ++e) {
      int32_t index;
      memcpy(&index, &part[e], sizeof index);
      parts.back()[e] = index;
    }
    if (i + 1 < args.size() && args[i + 1].kind == KernelArgKind::Store &&
        args[i + 1].name == arg.name)
      continue;
    auto parameter = findPatched(at.block, at.layer, arg.name);
    if (!parameter)
      return parameter.takeError();
    auto entries = toStored(*parameter, parts);
    if (!entries)
      return entries.takeError();
    llvm::append_range(patch.parameters, std::move(*entries));
    parts.clear();
  }
  return llvm::Error::success();
}
