// What each layer's patch writes into the residual stream, and which tokens that is nearest to.
#include "Subject.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Program/SliceName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>
#include <numeric>

using namespace ctxc;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;

std::vector<TokenScore> ctxc::extremes(ArrayRef<double> scores, size_t count, bool smallest) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    double x = smallest ? -scores[a] : scores[a], y = smallest ? -scores[b] : scores[b];
    return x > y || (x == y && a < b);
  });
  std::vector<TokenScore> result;
  for (int64_t token : ArrayRef(order).take_front(count))
    result.push_back({token, scores[token]});
  return result;
}

static double norm(ArrayRef<double> x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

/// One token's forward in the reduced run under `patch`: the output of every layer.
static Expected<LayerRecord> runPatched(SubjectRuns &runs, const Patch &patch) {
  LayerRecord record;
  ForwardOptions options;
  options.patch = &patch;
  options.append = false;
  options.observer = record.observer();
  auto logits = runs.executor.forward(*runs.reduced, runs.token(), runs.position(), options);
  if (!logits)
    return logits.takeError();
  return record;
}

/// The patch without the output-side parameters of `layer`; none where it has none of them.
static std::optional<Patch> withoutOutputOf(const SubjectRuns &runs, const Patch &patch,
                                            int64_t layer, ArrayRef<ParameterChange> parameters) {
  llvm::StringSet<> removed;
  for (const ParameterChange &change : parameters)
    if (change.layer == layer && change.isOutput)
      removed.insert(change.parameter);
  if (removed.empty())
    return std::nullopt;
  Patch rest;
  llvm::copy_if(patch.parameters, std::back_inserter(rest.parameters),
                [&](const ParameterPatch &entry) { return !removed.contains(entry.parameter); });
  return rest;
}

/// Reads a direction through the head: ½ (head(d) − head(−d)), d of root mean square 1.
static Error readThroughHead(SubjectRuns &runs, LayerWrite &write) {
  double scale = std::sqrt(double(write.direction.size())) / write.norm;
  std::vector<double> directions;
  for (double sign : {scale, -scale})
    for (double x : write.direction)
      directions.push_back(sign * x);
  auto logits = runs.executor.readHead(directions, 2);
  if (!logits)
    return logits.takeError();
  size_t vocabulary = logits->size() / 2;
  for (size_t i = 0; i < vocabulary; ++i)
    (*logits)[i] = ((*logits)[i] - (*logits)[vocabulary + i]) / 2;
  logits->resize(vocabulary);
  write.towards = extremes(*logits, runs.request.nearest);
  write.away = extremes(*logits, runs.request.nearest, /*smallest=*/true);
  return Error::success();
}

Error ctxc::readWrites(SubjectRuns &runs, const Patch &patch, SubjectInspection &subject) {
  Expected<LayerRecord> whole = runPatched(runs, patch);
  if (!whole)
    return whole.takeError();
  for (int64_t layer = 0; layer < runs.executor.layers(); ++layer) {
    std::optional<Patch> rest = withoutOutputOf(runs, patch, layer, subject.parameters);
    if (!rest)
      continue;
    Expected<LayerRecord> without = runPatched(runs, *rest);
    if (!without)
      return without.takeError();
    LayerWrite write;
    write.layer = layer;
    const std::vector<double> &output = whole->outputs().at(layer);
    for (auto [with, less] : llvm::zip_equal(output, without->outputs().at(layer)))
      write.direction.push_back(with - less);
    write.norm = norm(write.direction);
    if (double size = norm(output); size > 0)
      write.relative = write.norm / size;
    if (write.norm > 0 && subject.noLens.empty())
      if (Error error = readThroughHead(runs, write))
        subject.noLens = llvm::toString(std::move(error));
    subject.writes.push_back(std::move(write));
  }
  for (const LayerWrite &a : subject.writes)
    for (const LayerWrite &b : subject.writes)
      subject.writeCosines.push_back(cosine(a.direction, b.direction));
  return Error::success();
}
