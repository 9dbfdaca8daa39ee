#include "lib/Runtime/KernelArguments.h"

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

llvm::Expected<PatchArgs> ctxc::patchArgs(ProgramStep step, ArrayRef<KernelArg> args) {
  PatchArgs made;
  const KernelArg *last = nullptr;
  for (const KernelArg &arg : args) {
    bool isLoad = arg.kind == KernelArgKind::Load;
    if (!isLoad && arg.kind != KernelArgKind::Store)
      continue;
    std::vector<PatchArg> &all = isLoad ? made.loads : made.stores;
    if (!last || last->kind != arg.kind || last->name != arg.name) {
      auto parameter = findPatched(step.block, step.layer, arg.name);
      if (!parameter)
        return parameter.takeError();
      all.push_back({std::move(*parameter), {}});
    }
    bool isIndices = cast<MemRefType>(arg.type).getElementType().isInteger(32);
    all.back().parts.push_back({elementsOf(arg.type), isIndices});
    last = &arg;
  }
  return made;
}

llvm::Error ctxc::loadParts(ArrayRef<PatchArg> loads, const Patch &patch,
                            std::vector<Rows> &loaded) {
  size_t next = 0;
  for (const PatchArg &load : loads) {
    SmallVector<int64_t> sizes;
    for (const PatchArg::Part &part : load.parts)
      sizes.push_back(part.size);
    auto parts = fromStored(load.parameter, patch, sizes);
    if (!parts)
      return parts.takeError();
    for (auto [i, part] : llvm::enumerate(load.parts)) {
      if (loaded.size() <= next)
        loaded.resize(next + 1);
      Rows &numbers = loaded[next++];
      if (parts->empty()) { // a parameter that is not in the patch is unpatched
        numbers.assign(part.size, 0.0f);
        continue;
      }
      numbers.assign((*parts)[i].begin(), (*parts)[i].end());
      for (size_t e = 0; part.isIndices && e < numbers.size(); ++e) {
        int32_t index = int32_t((*parts)[i][e]);
        memcpy(&numbers[e], &index, sizeof index);
      }
    }
  }
  return llvm::Error::success();
}

llvm::Error ctxc::readParts(ArrayRef<PatchArg> stores, ArrayRef<Rows> rows, int64_t row,
                            Patch &patch) {
  size_t next = 0;
  for (const PatchArg &store : stores) {
    PatchParts parts;
    parts.reserve(store.parts.size());
    for (const PatchArg::Part &part : store.parts) {
      ArrayRef<float> numbers = ArrayRef(rows[next++]).slice(row * part.size, part.size);
      parts.emplace_back(numbers.begin(), numbers.end());
      for (size_t e = 0; part.isIndices && e < numbers.size(); ++e) {
        int32_t index;
        memcpy(&index, &numbers[e], sizeof index);
        parts.back()[e] = index;
      }
    }
    auto entries = toStored(store.parameter, std::move(parts));
    if (!entries)
      return entries.takeError();
    patch.add(std::move(*entries));
  }
  return llvm::Error::success();
}
