#include "ctxc/Inspect/PatchDistance.h"
#include "ctxc/Verify/PatchNorms.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <cmath>

using namespace ctxc;
using llvm::ArrayRef;

static double dot(ArrayRef<double> a, ArrayRef<double> b) {
  double sum = 0;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sum += x * y;
  return sum;
}

double ctxc::innerProduct(const ParameterPatch &a, const ParameterPatch &b) {
  if (a.kind == ParameterPatch::Kind::Rank1)
    return dot(a.u, b.u) * dot(a.v, b.v);
  return dot(a.delta, b.delta);
}

/// u vᵀ scaled to ‖v‖ = 1, so that the factors of two patches can be compared.
static ParameterPatch withUnitV(const ParameterPatch &patch, double sign) {
  ParameterPatch result = patch;
  double norm = std::sqrt(dot(patch.v, patch.v));
  if (norm == 0)
    return result;
  for (double &x : result.u)
    x *= sign * norm;
  for (double &x : result.v)
    x *= sign / norm;
  return result;
}

static std::vector<double> difference(ArrayRef<double> a, ArrayRef<double> b) {
  std::vector<double> result;
  for (auto [x, y] : llvm::zip_equal(a, b))
    result.push_back(x - y);
  return result;
}

double ctxc::squaredDistance(const ParameterPatch &a, const ParameterPatch &b) {
  if (a.kind != ParameterPatch::Kind::Rank1) {
    std::vector<double> delta = difference(a.delta, b.delta);
    return dot(delta, delta);
  }
  ParameterPatch first = withUnitV(a, 1);
  ParameterPatch second = withUnitV(b, dot(a.v, b.v) < 0 ? -1 : 1);
  std::vector<double> du = difference(first.u, second.u), dv = difference(first.v, second.v);
  double sum = dot(du, du) * dot(first.v, first.v) + dot(second.u, second.u) * dot(dv, dv) +
               2 * dot(du, second.u) * dot(first.v, dv);
  return std::max(sum, 0.0); // the last term is rounded, and may be negative
}

static bool isMatrix(const ParameterPatch &patch) { return patch.shape.size() > 1; }

static llvm::StringMap<const ParameterPatch *> byName(const Patch &patch) {
  llvm::StringMap<const ParameterPatch *> result;
  for (const ParameterPatch &parameter : patch.parameters)
    result[parameter.parameter] = &parameter;
  return result;
}

namespace {
/// ‖a‖², ‖b‖² and ⟨a, b⟩, from which a cosine is computed.
struct Products {
  double a = 0, b = 0, ab = 0;

  std::optional<double> cosine() const {
    double norms = std::sqrt(a) * std::sqrt(b);
    if (!(norms > 0))
      return std::nullopt;
    return std::clamp(ab / norms, -1.0, 1.0);
  }
};

struct ProductsOfBoth {
  Products matrix, vector;

  Products &of(const ParameterPatch &patch) { return isMatrix(patch) ? matrix : vector; }
  PatchCosine cosine() const { return {matrix.cosine(), vector.cosine()}; }
};
} // namespace

PatchCosines ctxc::cosines(const Patch &a, const Patch &b, int64_t layers, LayerOf layerOf) {
  ProductsOfBoth total;
  std::vector<ProductsOfBoth> each(layers);
  auto add = [&](const ParameterPatch &patch, double Products::*sum, double value) {
    total.of(patch).*sum += value;
    int64_t layer = layerOf(patch.parameter);
    if (layer >= 0 && layer < layers)
      each[layer].of(patch).*sum += value;
  };
  llvm::StringMap<const ParameterPatch *> second = byName(b);
  for (const ParameterPatch &patch : a.parameters) {
    add(patch, &Products::a, squaredNorm(patch));
    if (const ParameterPatch *other = second.lookup(patch.parameter))
      add(patch, &Products::ab, innerProduct(patch, *other));
  }
  for (const ParameterPatch &patch : b.parameters)
    add(patch, &Products::b, squaredNorm(patch));
  PatchCosines result{total.cosine(), {}};
  for (const ProductsOfBoth &layer : each)
    result.layers.push_back(layer.cosine());
  return result;
}

OfBoth ctxc::distance(const Patch &a, const Patch &b) {
  OfBoth sums;
  auto add = [&](const ParameterPatch &patch, double value) {
    (isMatrix(patch) ? sums.matrix : sums.vector) += value;
  };
  llvm::StringMap<const ParameterPatch *> first = byName(a), second = byName(b);
  for (const ParameterPatch &patch : a.parameters) {
    const ParameterPatch *other = second.lookup(patch.parameter);
    add(patch, other ? squaredDistance(patch, *other) : squaredNorm(patch));
  }
  for (const ParameterPatch &patch : b.parameters)
    if (!first.contains(patch.parameter))
      add(patch, squaredNorm(patch));
  return {std::sqrt(sums.matrix), std::sqrt(sums.vector)};
}

std::optional<double> ctxc::cosine(ArrayRef<double> a, ArrayRef<double> b) {
  return Products{dot(a, a), dot(b, b), dot(a, b)}.cosine();
}
