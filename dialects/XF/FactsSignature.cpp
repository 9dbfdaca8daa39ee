// What a layer makes of a block, as texts: layers of equal texts share a verdict.
#include "dialects/XF/BlockFacts.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::xf;

std::string xf::settingValues(BlockOp block, LayerOp layer) {
  std::string text;
  llvm::raw_string_ostream os(text);
  block.walk([&](SettingOp setting) {
    LayerOp of = layer;
    llvm::SHA256 sum;
    if (Attribute value = of ? of.getSettingValue(setting) : setting.getValueAttr()) {
      SmallVector<double> numbers = SettingOp::numbers(setting.getType(), value);
      sum.update(ArrayRef(reinterpret_cast<const uint8_t *>(numbers.data()),
                          numbers.size() * sizeof(double)));
    }
    os << setting.getName() << "=" << llvm::toHex(sum.final(), /*LowerCase=*/true) << ";";
  });
  return text;
}

std::string BlockFacts::signature() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto number = [&](const std::optional<double> &x) {
    if (x)
      os << llvm::bit_cast<uint64_t>(*x);
    os << ",";
  };
  BlockOp op = block;
  for (Operation &each : op.getBody().front()) {
    if (isa<SettingOp, ParamOp>(each))
      continue;
    if (isa<ContextualOpInterface>(each))
      os << readsContext(&each);
    for (Value value : each.getResults()) {
      const Facts &f = (*this)[value];
      os << int(f.elements) << int(f.vector) << f.bothSigns << f.zeroSomewhere << f.free
         << f.zeroedBy << "," << f.overflows() << f.overflows(2);
      for (const std::optional<double> *x : {&f.bound, &f.length, &f.floor, &f.ceiling})
        number(*x);
      for (double limit : f.limits)
        number(limit);
    }
  }
  std::vector<std::string> pairs;
  for (auto &alias : names.aliases())
    pairs.push_back((alias.first() + "=" + alias.second).str());
  llvm::sort(pairs);
  return text + llvm::join(pairs, ";");
}
