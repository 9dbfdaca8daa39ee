// Words that the text, the JSON and the page of an inspection share.
#include "ctxc/Report/InspectReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

using namespace ctxc;

std::string ctxc::textOf(const Inspection &inspection, const InspectSettings &settings,
                         const TokenName &name, llvm::ArrayRef<int64_t> positions) {
  auto texts = llvm::map_range(
      positions, [&](int64_t position) { return name.bytes(inspection.tokens[position]); });
  return llvm::json::fixUTF8(llvm::join(texts, settings.hasNames ? "" : " "));
}

std::string ctxc::readableText(const Inspection &inspection, const InspectSettings &settings,
                               const TokenName &name, llvm::ArrayRef<int64_t> positions) {
  std::string text = textOf(inspection, settings, name, positions);
  return llvm::StringRef(text).trim().str();
}

MostOfPatch ctxc::mostOfPatch(llvm::ArrayRef<PatchNorm> layers, double PatchNorm::*norm) {
  auto square = [&](int64_t layer) { return layers[layer].*norm * (layers[layer].*norm); };
  std::vector<int64_t> order(layers.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](int64_t a, int64_t b) {
    return std::pair(-square(a), a) < std::pair(-square(b), b);
  });
  double total = 0;
  for (int64_t layer : order)
    total += square(layer);
  MostOfPatch most;
  if (!(total > 0))
    return most;
  for (int64_t layer : llvm::ArrayRef(order).take_front(3)) {
    if (most.share >= 0.5)
      break;
    most.layers.push_back(layer);
    most.share += square(layer) / total;
  }
  return most;
}
