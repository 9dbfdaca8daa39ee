// Finds which parameters of a block are the same stored tensor.
#include "dialects/XF/BlockFacts.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::xf;

SmallVector<std::string> xf::storedTensors(ParamOp param, LayerOp layer) {
  std::string name = layer ? layer.getStoredName(param.getName()) : param.getName().str();
  size_t star = name.find('*');
  if (star == std::string::npos)
    return {name};
  SmallVector<std::string> names;
  for (int64_t i = 0; i < cast<RankedTensorType>(param.getType()).getDimSize(0); ++i)
    names.push_back(name.substr(0, star) + std::to_string(i) + name.substr(star + 1));
  return names;
}

Identities::Identities(BlockOp block, LayerOp layer) {
  bool isBound = layer && layer.getBindAttr(), anyBank = false;
  block.walk([&](ParamOp param) { anyBank |= StringRef(param.getName()).contains('*'); });
  if (!isBound && !anyBank)
    return;                            // other names are other tensors
  llvm::StringMap<std::string> owners; // for each stored tensor, a name in the block
  block.walk([&](ParamOp param) {
    StringRef name = param.getName();
    for (const std::string &tensor : storedTensors(param, layer)) {
      auto [owner, isNew] = owners.try_emplace(tensor, name.str());
      StringRef mine = (*this)[name], theirs = (*this)[owner->second];
      if (isNew || mine == theirs)
        continue;
      // Everything that is identical with one of the two is identical with the other.
      std::string from = mine.str(), to = theirs.str();
      first[name] = to;
      if (from != to)
        first[from] = to;
      for (auto &entry : first)
        if (entry.second == from)
          entry.second = to;
    }
  });
}

StringRef Identities::operator[](StringRef name) const {
  auto found = first.find(name);
  return found == first.end() ? name : StringRef(found->second);
}
