#include "ctxc/Verify/Trace.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <limits>

using namespace ctxc;

LayerObserver LayerRecord::observer() {
  return [this](int64_t layer, llvm::ArrayRef<double> values, int64_t rowCount) {
    if (rowCount > 0)
      rows[layer] = values.take_back(values.size() / rowCount).vec();
  };
}

static TraceLine compareLayer(int64_t layer, llvm::ArrayRef<double> a, llvm::ArrayRef<double> b,
                              double tolerance) {
  TraceLine line;
  line.layer = layer;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (a.size() != b.size())
    line.linf = infinite;
  for (size_t i = 0, count = std::min(a.size(), b.size()); i < count; ++i) {
    double difference = std::fabs(a[i] - b[i]);
    line.linf = std::isfinite(difference) ? std::max(line.linf, difference) : infinite;
    if (std::isfinite(a[i]))
      line.magnitude = std::max(line.magnitude, std::fabs(a[i]));
  }
  line.apart = line.linf > tolerance * line.magnitude;
  return line;
}

std::vector<TraceLine> ctxc::compareLayers(const LayerRecord &a, const LayerRecord &b,
                                           double tolerance) {
  std::vector<TraceLine> lines;
  for (const auto &[layer, values] : a.outputs()) {
    auto found = b.outputs().find(layer);
    if (found != b.outputs().end())
      lines.push_back(compareLayer(layer, values, found->second, tolerance));
  }
  return lines;
}

void Trace::add(int64_t position, std::string a, const LayerRecord &recordA, std::string b,
                const LayerRecord &recordB) {
  entries.push_back(
      {position, std::move(a), std::move(b), compareLayers(recordA, recordB, tolerance)});
}

/// JSON has no infinity.
static llvm::json::Value number(double value) {
  return std::isfinite(value) ? llvm::json::Value(value) : llvm::json::Value(nullptr);
}

void Trace::write(llvm::raw_ostream &os) const {
  for (const Entry &entry : entries)
    for (const TraceLine &line : entry.lines)
      os << llvm::json::Value(llvm::json::Object{{"format", "ctxc-trace"},
                                                 {"position", entry.position},
                                                 {"runs", llvm::json::Array{entry.a, entry.b}},
                                                 {"layer", line.layer},
                                                 {"linf", number(line.linf)},
                                                 {"magnitude", line.magnitude},
                                                 {"apart", line.apart}})
         << "\n";
}

static std::string layerName(int64_t layer) {
  return layer < 0 ? "the embedding" : "layer " + std::to_string(layer);
}

void Trace::summarize(llvm::raw_ostream &os) const {
  // One line for each pair of runs, in the order in which the pairs first came.
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Entry &entry : entries)
    if (!llvm::is_contained(pairs, std::make_pair(entry.a, entry.b)))
      pairs.emplace_back(entry.a, entry.b);
  for (const auto &[a, b] : pairs) {
    const TraceLine *first = nullptr, *worst = nullptr;
    int64_t position = 0;
    size_t layers = 0;
    for (const Entry &entry : entries) {
      if (entry.a != a || entry.b != b)
        continue;
      for (const TraceLine &line : entry.lines) {
        if (!first && line.apart) {
          first = &line;
          position = entry.position;
        }
        if (!worst || line.linf > worst->linf)
          worst = &line;
        layers = std::max(layers, entry.lines.size());
      }
    }
    os << a << " | " << b << ": ";
    if (!worst)
      os << "no layer was seen in both";
    else if (first)
      os << "part at " << layerName(first->layer) << " of position " << position
         << llvm::format(" (L∞ %.2g, largest output %.2g)", first->linf, first->magnitude);
    else
      os << "together in all " << layers
         << llvm::format(" outputs (L∞ at most %.2g, in ", worst->linf) << layerName(worst->layer)
         << ")";
    os << "\n";
  }
}
