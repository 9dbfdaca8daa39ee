#include "JointRuns.h"
#include "Sequences.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Verify/ProgramNorms.h"

using namespace mlir;
using namespace ctxc;

using Numbers = std::vector<float>;

/// Whether what the site reads depends on other tokens. If not, as in the MLP of a block in
/// parallel, equal tokens read the same in the first layer.
static bool readsOtherTokens(const SplitProgram &split, const SplitSite &site) {
  llvm::SmallVector<Value> open = {site.data}; // of the split model, each from a step's block
  while (!open.empty()) {
    auto value = cast<OpResult>(open.pop_back_val());
    auto step = llvm::find_if(split.program.steps, [&](const ProgramStep &each) {
      return xf::LayerOp(each.layer) == value.getOwner();
    });
    if (step == split.program.steps.end() || step->index)
      continue; // the layer before has ended
    xf::BlockOp block = step->block;
    llvm::SmallVector<Value> inside = {
        block.getBody().front().getTerminator()->getOperand(value.getResultNumber())};
    while (!inside.empty()) {
      Value each = inside.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(each)) {
        open.push_back(xf::LayerOp(step->layer).getInputs()[argument.getArgNumber()]);
        continue;
      }
      if (isa<xf::ContextualOpInterface>(each.getDefiningOp()))
        return true;
      llvm::append_range(inside, each.getDefiningOp()->getOperands());
    }
  }
  return false;
}

std::vector<llvm::SmallVector<size_t, 2>> ctxc::jointSites(const SplitProgram &split) {
  std::vector<llvm::SmallVector<size_t, 2>> layers;
  for (auto [i, site] : llvm::enumerate(split.sites)) {
    if (layers.empty() || split.sites[layers.back().front()].layer != site.layer) {
      layers.push_back({i});
      continue;
    }
    // The last one stands for all behind the first. Behind a norm, only what the norm can give is
    // a target, and what it gives in the full run is none of that beside another residual stream.
    layers.back().truncate(1);
    if (site.scale.empty() && !site.experts && readsOtherTokens(split, site))
      layers.back().push_back(i);
  }
  return layers;
}

int64_t ctxc::inputsOf(const SplitSite &site) { return site.shape[!site.transposed]; }

/// `count` rows of `all`, which has `rows`.
static FloatMatrix rowsOf(const Numbers &all, int64_t rows, int64_t from, int64_t count) {
  const int64_t width = all.size() / rows;
  return Eigen::Map<const FloatMatrix>(all.data() + from * width, count, width);
}

static FloatMatrix rowsOf(const Passage &run, Value value) {
  return rowsOf(run.values(value), run.rows(), 0, run.rows());
}

/// Puts what `fit` adds to the product behind what the matrix itself has given.
static void addTo(Passage &run, const SplitSite &site, const JointFit &fit) {
  const FloatMatrix sum =
      (rowsOf(run, site.product).cast<double>() + fit.products(rowsOf(run, site.data)))
          .cast<float>();
  run.replace(site.product, Numbers(sum.data(), sum.data() + sum.size()));
}

llvm::Expected<JointChanges> JointChanges::of(const SplitProgram &split, const Adapter &adapter) {
  JointChanges changes;
  if (!adapter.vectors.empty())
    return makeError(adapter.vectors.front().parameter +
                     ": a joint patch changes matrices alone, and this is a vector");
  for (const MatrixChange &change : adapter.matrices) {
    auto site = llvm::find_if(split.sites, [&](const SplitSite &each) {
      return each.matrix == change.parameter && !each.experts;
    });
    if (site == split.sites.end() ||
        llvm::ArrayRef<int64_t>({change.rows, change.columns}) != llvm::ArrayRef(site->shape))
      return makeError(change.parameter + ": is no matrix of this model that a joint patch "
                                          "changes, or has another shape");
    const Matrix first =
        Eigen::Map<const FloatMatrix>(change.left.data(), change.rows, change.rank).cast<double>();
    const Matrix second =
        Eigen::Map<const FloatMatrix>(change.right.data(), change.rank, change.columns)
            .cast<double>();
    changes.fits.emplace(site - split.sites.begin(),
                         change.inFirst ? JointFit(second.transpose(), first.transpose())
                                        : JointFit(first, second));
  }
  return std::move(changes);
}

llvm::Error JointChanges::runUpTo(const SplitProgram &split, Passage &passage, size_t end) const {
  for (const auto &[number, fit] : fits) {
    const SplitSite &site = split.sites[number];
    if (site.step < passage.nextStep() || site.step >= end)
      continue;
    if (llvm::Error error = passage.runUpTo(site.step + 1))
      return error;
    addTo(passage, site, fit);
  }
  return passage.runUpTo(end);
}

JointPatcher::JointPatcher(SplitModel model, int64_t tokens, bool chooses)
    : model(model), layers(jointSites(model.split)) {
  for (auto &candidates : layers) {
    llvm::erase_if(candidates,
                   [&](size_t number) { return inputsOf(model.split.sites[number]) < tokens; });
    if (!chooses)
      candidates.truncate(std::min<size_t>(candidates.size(), 1));
  }
}

/// JointSite::replayError: roundings of what the site reads, which go through its change.
static double replayErrorOf(const JointFit &fit, double stretch) {
  return float32UnitRoundoff * stretch * fit.norm() / std::sqrt(double(fit.width()));
}

/// What the matrix should write for each token of the texts.
llvm::Expected<FloatMatrix> JointPatcher::wantedOf(size_t number, JointPassages &passages) const {
  const SplitSite &site = model.split.sites[number];
  auto &[full, reduced, taught, learned, names] = passages;
  const int64_t count = reduced.rows() - learned;
  // Behind a norm that forgets lengths, what the same matrix writes in the full run is one of the
  // products that the norm's result asks for, and needs no inversion.
  if (!site.scale.empty())
    return rowsOf(full.values(site.product), full.rows(), taught, count);
  xf::LayerOp target = model.split.targets.steps[number].layer;
  std::vector<Numbers> inputs;
  for (auto [i, value] : llvm::enumerate(target.getInputs())) {
    const Passage &run = i == 0 ? full : reduced;
    FloatMatrix rows = rowsOf(run.values(value), run.rows(), i == 0 ? taught : learned, count);
    inputs.emplace_back(rows.data(), rows.data() + rows.size());
  }
  std::vector<const Numbers *> pointers;
  for (const Numbers &input : inputs)
    pointers.push_back(&input);
  auto solved = model.targets.call(number, model.weights, count, pointers);
  if (!solved)
    return solved.takeError();
  return rowsOf(solved->front(), count, 0, count);
}

/// The last row depends on those before it, and something is missing.
llvm::Error JointPatcher::whyNone(const JointFit &fit) const {
  const JointFit::Nearest nearest = fit.nearestToLast();
  const std::string &last = names[fit.rows() - 1], &other = names[nearest.row];
  constexpr double same = 1 - 1e-9;
  if (nearest.cosine > same)
    return makeError("it reads the same for " + other + " and for " + last +
                     ", and should write different things, so that no change serves both; keep "
                     "another token of the context in front, or leave one of the two out");
  return makeError("what it reads for " + last + " is a combination of what it reads for the " +
                   llvm::Twine(fit.rows() - 1) + " tokens before it, most nearly " + other +
                   ", and it should write something else, so that no change serves all; in a text "
                   "of few different tokens the first layer has few states: keep other tokens of "
                   "the context in front, or take a shorter text");
}

/// Row by row, with what the matrix has written without its change.
llvm::Error JointPatcher::grow(size_t number, Grown &grown, JointPassages &passages,
                               const FloatMatrix &wanted) const {
  const SplitSite &site = model.split.sites[number];
  JointFit &fit = grown.fit;
  const FloatMatrix data = rowsOf(passages.reduced, site.data),
                    product = rowsOf(passages.reduced, site.product);
  const FloatMatrix goals =
      rowsOf(passages.full.values(site.goal), passages.full.rows(), passages.taught, wanted.rows());
  const int64_t learned = passages.learned;
  if (!data.allFinite() || !product.allFinite() || !wanted.allFinite())
    return makeError("what it reads or should write is not finite");
  const double scale = std::max<double>(wanted.norm(), product.norm()) / std::sqrt(wanted.rows());
  for (int64_t row = 0; row < data.rows(); ++row) {
    const bool stays = row < learned;
    const Vector own =
        (stays ? product.row(row) : wanted.row(row - learned)).transpose().cast<double>();
    const Vector missing = own - product.row(row).transpose().cast<double>() -
                           fit.products(data.row(row)).row(0).transpose();
    if (!fit.grow(data.row(row).transpose().cast<double>(), missing, scale))
      return whyNone(fit);
    if (const double length = stays ? 0 : goals.row(row - learned).cast<double>().norm())
      grown.stretch = std::max(grown.stretch, data.row(row).cast<double>().norm() / length);
  }
  return llvm::Error::success();
}

/// The change of one site, with the tokens that the passages bring; the reduced run stands behind
/// the site.
llvm::Expected<JointPatcher::Grown> JointPatcher::tried(size_t number, JointPassages &passages) {
  const SplitSite &site = model.split.sites[number];
  if (llvm::Error error = passages.reduced.runUpTo(site.step + 1))
    return std::move(error);
  auto wanted = wantedOf(number, passages);
  if (!wanted)
    return wanted.takeError();
  auto known = all.fits.find(number);
  Grown grown{known == all.fits.end() ? JointFit(site.shape[site.transposed], inputsOf(site))
                                      : std::move(known->second),
              stretches[number]};
  if (llvm::Error error = grow(number, grown, passages, *wanted))
    return makeError(site.matrix + ": " + llvm::toString(std::move(error)));
  return std::move(grown);
}

/// Tries the candidates one after the other, none with the change of another, and goes back to the
/// chosen one.
llvm::Error JointPatcher::fit(llvm::ArrayRef<size_t> candidates, JointPassages &passages) {
  Passage &full = passages.full, &reduced = passages.reduced;
  const auto &steps = model.split.program.steps;
  const size_t begin = model.split.sites[candidates.front()].step;
  size_t end = begin;
  while (end < steps.size() && steps[end++].index != model.split.sites[candidates.front()].layer)
    ;
  llvm::SmallVector<Value> taught, read;
  for (size_t number : candidates) {
    const SplitSite &site = model.split.sites[number];
    xf::LayerOp target = model.split.targets.steps[number].layer;
    llvm::append_values(taught, site.goal, site.product);
    llvm::append_range(read, llvm::drop_begin(target.getInputs()));
    llvm::append_values(read, site.data, site.product);
  }
  if (candidates.size() > 1)
    for (size_t step = begin; step < end; ++step) {
      xf::LayerOp layer = steps[step].layer;
      llvm::append_range(read, layer.getInputs());
    }
  for (Value value : taught)
    full.keep(value);
  for (Value value : read)
    reduced.keep(value);
  // The full run ends the layer, since its goal may be behind other sites.
  if (llvm::Error error = full.runUpTo(end))
    return error;
  std::optional<Grown> best;
  size_t chosen = candidates.front();
  for (size_t number : candidates) {
    auto grown = tried(number, passages);
    if (!grown)
      return grown.takeError();
    // A second site has to be worth that the MLP then computes something else inside.
    if (!best ||
        replayErrorOf(grown->fit, grown->stretch) < replayErrorOf(best->fit, best->stretch) / 2) {
      best = std::move(*grown);
      chosen = number;
    }
  }
  const SplitSite &site = model.split.sites[chosen];
  if (chosen != candidates.back())
    if (llvm::Error error = reduced.run(site.step))
      return error;
  addTo(reduced, site, best->fit);
  stretches[chosen] = best->stretch;
  all.fits.insert_or_assign(chosen, std::move(best->fit));
  for (Value value : read)
    reduced.release(value);
  for (Value value : taught)
    full.release(value);
  return llvm::Error::success();
}

llvm::Error JointPatcher::read(JointPassages passages, const ProgressCall &fitted) {
  llvm::append_range(names, passages.names);
  for (auto [done, candidates] : llvm::enumerate(layers)) {
    tell(fitted, done, layers.size());
    if (llvm::Error error = fit(candidates, passages))
      return error;
  }
  tell(fitted, layers.size(), layers.size());
  for (auto &candidates : layers) // what is chosen stays
    llvm::erase_if(candidates, [&](size_t number) { return !all.fits.count(number); });
  return llvm::Error::success();
}

llvm::Expected<JointPatch> JointPatcher::patch(int64_t tokens) const {
  JointPatch made;
  made.tokens = tokens;
  auto norms = programNorms(model.split.program, model.weights);
  for (const auto &[number, fit] : all.fits) {
    const SplitSite &site = model.split.sites[number];
    auto stored = norms->squaredNorm(site.matrix);
    if (!stored)
      return stored.takeError();
    JointSite about;
    about.matrix = site.matrix;
    about.layer = site.layer;
    about.capacity = inputsOf(site);
    about.change = *stored > 0 ? fit.norm() / std::sqrt(*stored) : 0;
    about.independence = fit.leastDistance();
    about.replayError = replayErrorOf(fit, stretches.at(number));
    about.spectrum = fit.spectrum();
    about.shares = fit.shares();
    made.sites.push_back(std::move(about));
    MatrixChange change = changeOf(fit.left(), fit.right(), site, site.matrix);
    if (change.rank > 0)
      made.adapter.matrices.push_back(std::move(change));
  }
  return std::move(made);
}
