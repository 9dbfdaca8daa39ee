#include "ctxc/Verify/PatchNorms.h"
#include "ctxc/Program/PatchSize.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace ctxc;

llvm::Expected<double> PatchNorms::squaredNorm(llvm::StringRef parameter) {
  std::lock_guard<std::mutex> lock(known->mutex);
  auto found = known->squared.find(parameter);
  if (found != known->squared.end())
    return found->second;
  llvm::Expected<double> norm = computeSquaredNorm(parameter);
  if (norm)
    known->squared[parameter] = *norm;
  return norm;
}

static double sumOfSquares(llvm::ArrayRef<double> values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return sum;
}

double ctxc::squaredNorm(const ParameterPatch &patch) {
  if (patch.kind == ParameterPatch::Kind::Rank1)
    return sumOfSquares(patch.u) * sumOfSquares(patch.v);
  return sumOfSquares(patch.delta);
}

std::string ctxc::whyTooLarge(const PatchNorm &norm) {
  std::string why;
  if (!isPatchOfSize(norm.largest))
    llvm::raw_string_ostream(why) << llvm::format(
        "the patch of a parameter is %.2g times the parameter, more than %.0e: it divides by "
        "roundings, and shows nothing",
        norm.largest, largestRelativeNorm);
  return why;
}

namespace {
/// Sums of squares, from which a PatchNorm is computed.
struct Sums {
  double matrix = 0, matrixStored = 0, vector = 0, vectorStored = 0, largest = 0;

  void add(bool isMatrix, double change, double stored) {
    (isMatrix ? matrix : vector) += change;
    (isMatrix ? matrixStored : vectorStored) += stored;
    double own = std::sqrt(stored > 0 ? change / stored : change);
    if (!std::isnan(largest) && !(own <= largest)) // what is no number is the largest
      largest = own;
  }
  static double ratio(double change, double stored) {
    return stored > 0 ? std::sqrt(change / stored) : 0;
  }
  PatchNorm norm() const {
    return {std::sqrt(matrix), ratio(matrix, matrixStored), std::sqrt(vector),
            ratio(vector, vectorStored), largest};
  }
};
} // namespace

llvm::Expected<PatchNormTable> ctxc::measure(const Patch &patch, int64_t layers,
                                             PatchNorms &norms) {
  std::vector<Sums> sums(layers);
  Sums total;
  for (const ParameterPatch &parameter : patch.parameters) {
    double change = squaredNorm(parameter);
    llvm::Expected<double> stored = norms.squaredNorm(parameter.parameter);
    if (!stored)
      return stored.takeError();
    bool isMatrix = parameter.shape.size() > 1;
    total.add(isMatrix, change, *stored);
    int64_t layer = norms.layerOf(parameter.parameter);
    if (layer >= 0 && layer < layers)
      sums[layer].add(isMatrix, change, *stored);
  }
  PatchNormTable table;
  table.total = total.norm();
  for (const Sums &layer : sums)
    table.layers.push_back(layer.norm());
  return table;
}
