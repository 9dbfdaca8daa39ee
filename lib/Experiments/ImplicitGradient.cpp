// The half of the gradient view that is mathematics: targets in, steps of gradient descent out.
#include "ctxc/Experiments/ImplicitGradient.h"
#include "ctxc/Numerics/NormInversion.h"
#include "ctxc/Support/Error.h"
#include "lib/Experiments/Vectors.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>
#include <limits>

using namespace ctxc;
using namespace ctxc::experiments;

namespace {

/// ‖a − b‖ / ‖b‖; 0 where both are zero.
double relativeDifference(const Vector &a, const Vector &b) {
  Vector apart = minus(a, b);
  double square = dot(apart, apart), size = dot(b, b);
  return square == 0 ? 0
         : size > 0  ? std::sqrt(square / size)
                     : std::numeric_limits<double>::infinity();
}

/// One parameter during the steps. A matrix moves by a vᵀ with v = x / ‖x‖², the same at every
/// step.
class Mover {
public:
  Mover(const ParameterTargets &targets)
      : targets(targets), isMatrix(!targets.isBias), acted(targets.current),
        sum(targets.t.front().size(), 0.0) {
    double square = dot(targets.x, targets.x);
    for (double x : targets.x)
      v.push_back(square > 0 ? x / square : 0);
    if (isMatrix)
      weight = dot(v, v);
  }

  /// Takes step `i`; adds its part of the losses.
  void step(size_t i, GradientStep &result) {
    a = minus(targets.t[i + 1], targets.t[i]);
    // With the learning rate 1/‖x‖² the step is a vᵀ, by which W x moves by a (vᵀ x).
    result.loss -= dot(a, acted);
    double reach = isMatrix ? dot(v, targets.x) : 1;
    for (size_t k = 0; k < a.size(); ++k)
      acted[k] += a[k] * reach;
    result.lossAfter -= dot(a, acted);
    add(sum, a);
  }

  /// The change by the steps up to now.
  llvm::Expected<std::vector<ParameterPatch>> change() const {
    return toStored(targets.parameter, isMatrix ? PatchParts{sum, v} : PatchParts{sum});
  }

  const ParameterTargets &targets;
  bool isMatrix;
  Vector v, acted;   ///< W_i x, or the bias
  Vector a, sum;     ///< of the last step, and of all
  double weight = 1; ///< ‖v‖²
};

/// The scale during the steps: r_{i+1} − r_i over h', element by element.
class ScaleMover {
public:
  ScaleMover(const Vector &m, Vector terminal, std::vector<Vector> r)
      : h(std::move(terminal)), r(std::move(r)), m(m), sum(m.size(), 0.0), moved(m.size()) {
    // Entries that are zero in exact arithmetic are the rounding of a sum (NormInversion.h).
    double zero = 8 * std::numeric_limits<double>::epsilon() * std::sqrt(dot(h, h) / h.size());
    for (double &x : h)
      if (std::fabs(x) <= zero)
        x = 0;
  }

  void step(size_t i, GradientStep &result) {
    Vector a = minus(r[i + 1], r[i]);
    for (size_t k = 0; k < a.size(); ++k) {
      // −a ⊙ h' is the gradient, 1 ⊘ (h' ⊙ h') the rate; where h' is zero nothing can be done.
      moved[k] = h[k] == 0 ? 0 : a[k] / h[k];
      result.loss -= a[k] * (m[k] + sum[k]) * h[k];
      sum[k] += moved[k];
      result.lossAfter -= a[k] * (m[k] + sum[k]) * h[k];
    }
  }

  /// The change in one step: (r_n − r_0) ⊘ h'.
  Vector whole() const {
    Vector change = minus(r.back(), r.front());
    for (size_t k = 0; k < h.size(); ++k)
      change[k] = h[k] == 0 ? 0 : change[k] / h[k];
    return change;
  }

  std::vector<size_t> undivided() const {
    std::vector<size_t> components;
    for (size_t k = 0; k < h.size(); ++k)
      if (h[k] == 0 && r.back()[k] != 0)
        components.push_back(k);
    return components;
  }

  Vector h;
  std::vector<Vector> r;
  const Vector &m;
  Vector sum, moved;
};

/// h_target and r of every prefix.
struct Inversion {
  std::vector<Vector> targets, r;
  Vector terminal; ///< h' = Norm(h_target,n)
};

Inversion invert(const LayerTargets::PostNorm &post, Update update) {
  const Vector &m = post.m, &data = post.matrix.current;
  size_t d = m.size();
  Inversion result;
  Vector n(d), scratch(scratchDoubles(d)), branch(d);
  rmsNormalize(data, post.eps, n);
  for (size_t k = 0; k < d; ++k)
    branch[k] = m[k] * n[k];
  for (size_t i = 0; i < post.shift.size(); ++i) {
    Vector g = branch, target = data;
    add(g, post.shift[i]);
    // The first target asks for no change.
    if (i > 0 && update != Update::Naive)
      invertRmsNorm(update, g, m, data, post.eps, target, scratch);
    rmsNormalize(target, post.eps, n);
    for (size_t k = 0; k < d; ++k)
      g[k] -= m[k] * n[k];
    result.targets.push_back(std::move(target));
    result.r.push_back(std::move(g));
  }
  result.terminal = n;
  return result;
}

/// The path of all matrices, as far as norms and angles go: vectors a, weighed by ‖v‖².
class Path {
public:
  explicit Path(llvm::ArrayRef<Mover> movers) {
    for (const Mover &mover : movers)
      if (mover.isMatrix) {
        this->movers.push_back(&mover);
        Vector end = minus(mover.targets.t.back(), mover.targets.t.front());
        endSquare += dot(end, end) * mover.weight;
        ends.push_back(std::move(end));
      }
    before.resize(this->movers.size());
  }

  void step(GradientStep &result) {
    double square = 0, product = 0, norm = 0, along = 0, rest = 0, left = 0;
    for (auto [k, mover] : llvm::enumerate(movers)) {
      square += dot(mover->a, mover->a) * mover->weight;
      if (!before[k].empty())
        product += dot(mover->a, before[k]) * mover->weight;
      norm += dot(mover->sum, mover->sum) * mover->weight;
      along += dot(mover->sum, ends[k]) * mover->weight;
      Vector missing = minus(ends[k], mover->sum);
      left += dot(missing, missing) * mover->weight;
      before[k] = mover->a;
    }
    double part = endSquare > 0 ? along / endSquare : 0;
    for (auto [k, mover] : llvm::enumerate(movers))
      for (size_t j = 0; j < ends[k].size(); ++j) {
        double aside = mover->sum[j] - part * ends[k][j];
        rest += aside * aside * mover->weight;
      }
    result.matrixStep = std::sqrt(square);
    result.matrixNorm = std::sqrt(norm);
    if (square > 0 && squareBefore > 0)
      result.cosine = product / std::sqrt(square * squareBefore);
    if (endSquare > 0) {
      result.along = part;
      result.aside = std::sqrt(rest / endSquare);
      result.toEnd = std::sqrt(left / endSquare);
    }
    squareBefore = square;
  }

private:
  std::vector<const Mover *> movers;
  std::vector<Vector> ends, before;
  double endSquare = 0, squareBefore = 0;
};

} // namespace

llvm::Expected<LayerTrace> experiments::traceLayer(const LayerTargets &targets, Update update) {
  if (targets.postNorm && update == Update::Scaled)
    return makeError("update scaled: multiplies the scale by one number, which is no step of "
                     "gradient descent on the trace loss; expected another update");
  std::vector<Mover> movers;
  for (const ParameterTargets &parameter : targets.parameters)
    movers.emplace_back(parameter);
  ParameterTargets matrix;
  std::optional<ScaleMover> scale;
  if (const auto &post = targets.postNorm) {
    Inversion inversion = invert(*post, update);
    matrix = post->matrix;
    matrix.t = std::move(inversion.targets);
    if (update != Update::Naive) // the naive update does not change the matrix
      movers.emplace_back(matrix);
    scale.emplace(post->m, std::move(inversion.terminal), std::move(inversion.r));
  }

  LayerTrace trace;
  trace.layer = targets.layer;
  Path path(movers);
  size_t n = targets.postNorm ? targets.postNorm->shift.size() - 1
                              : targets.parameters.front().t.size() - 1;
  for (size_t i = 0; i < n; ++i) {
    GradientStep step;
    double vectorStep = 0, vectorNorm = 0;
    for (Mover &mover : movers) {
      mover.step(i, step);
      if (!mover.isMatrix) {
        vectorStep += dot(mover.a, mover.a);
        vectorNorm += dot(mover.sum, mover.sum);
      }
    }
    if (scale) {
      scale->step(i, step);
      vectorStep += dot(scale->moved, scale->moved);
      vectorNorm += dot(scale->sum, scale->sum);
    }
    step.vectorStep = std::sqrt(vectorStep);
    step.vectorNorm = std::sqrt(vectorNorm);
    path.step(step);
    trace.steps.push_back(step);
  }
  for (const Mover &mover : movers) {
    trace.telescoping = std::max(
        trace.telescoping,
        relativeDifference(mover.sum, minus(mover.targets.t.back(), mover.targets.t.front())));
    auto change = mover.change();
    if (!change)
      return change.takeError();
    trace.sum.add(std::move(*change));
  }
  if (scale) {
    auto change = toStored(targets.postNorm->scale, {scale->sum});
    if (!change)
      return change.takeError();
    trace.sum.add(std::move(*change));
    trace.undivided = scale->undivided();
    trace.telescoping = std::max(trace.telescoping, relativeDifference(scale->sum, scale->whole()));
  }
  return trace;
}

double experiments::differenceFrom(const LayerTrace &trace, const Patch &patch) {
  Patch sum = trace.sum, other;
  for (ParameterPatch &mine : sum.parameters)
    for (const ParameterPatch &found : patch.parameters)
      if (found.parameter == mine.parameter) {
        other.parameters.push_back(found);
        if (mine.kind == ParameterPatch::Kind::Delta && !mine.delta.empty())
          for (size_t k : trace.undivided)
            mine.delta[k] = other.parameters.back().delta[k] = 0;
      }
  return largestRelativeDifference(sum, other);
}

double experiments::largestRelativeDifference(const Patch &a, const Patch &b) {
  llvm::StringMap<const ParameterPatch *> others;
  for (const ParameterPatch &parameter : b.parameters)
    others[parameter.parameter] = &parameter;
  double worst = 0;
  for (const ParameterPatch &one : a.parameters) {
    const ParameterPatch *other = others.lookup(one.parameter);
    if (!other || one.kind != other->kind || one.shape != other->shape)
      return std::numeric_limits<double>::infinity();
    auto norm = [](const Vector &x) { return std::sqrt(dot(x, x)); };
    bool rank1 = one.kind == ParameterPatch::Kind::Rank1;
    // u vᵀ − u' v'ᵀ = (u − u') vᵀ + u' (v − v')ᵀ
    double apart = rank1 ? norm(minus(one.u, other->u)) * norm(one.v) +
                               norm(other->u) * norm(minus(one.v, other->v))
                         : norm(minus(one.delta, other->delta));
    double size = rank1 ? norm(other->u) * norm(other->v) : norm(other->delta);
    if (apart > 0)
      worst = std::max(worst, size > 0 ? apart / size : std::numeric_limits<double>::infinity());
  }
  return worst;
}
