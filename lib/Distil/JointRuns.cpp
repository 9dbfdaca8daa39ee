#include "JointRuns.h"
#include "Sequences.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Verify/ProgramNorms.h"
#include <numeric>

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
    // Of the sites behind the first only the last is tried. Behind a norm it has no target: only
    // results of the norm are reachable, and the full run's result belongs to another residual
    // stream.
    layers.back().truncate(1);
    if (site.scale.empty() && !site.experts && readsOtherTokens(split, site))
      layers.back().push_back(i);
  }
  return layers;
}

int64_t ctxc::inputsOf(const SplitSite &site) { return site.shape[!site.transposed]; }

size_t ctxc::firstOf(const SplitProgram &split, const SplitSite &site) {
  auto isSame = [&](const SplitSite &each) { return each.matrix == site.matrix; };
  return llvm::find_if(split.sites, isSame) - split.sites.begin();
}

int64_t ctxc::runsOf(const SplitProgram &split, const SplitSite &site) {
  return llvm::count_if(split.sites,
                        [&](const SplitSite &each) { return each.matrix == site.matrix; });
}

int64_t ctxc::capacityOf(const SplitProgram &split, const SplitSite &site) {
  return inputsOf(site) / runsOf(split, site);
}

size_t ctxc::widestOf(const SplitProgram &split, llvm::ArrayRef<size_t> candidates) {
  return *llvm::max_element(candidates, [&](size_t a, size_t b) {
    return capacityOf(split, split.sites[a]) < capacityOf(split, split.sites[b]);
  });
}

/// `count` rows of `all`, which has `rows`.
static FloatMatrix rowsOf(const Numbers &all, int64_t rows, int64_t from, int64_t count) {
  const int64_t width = all.size() / rows;
  return Eigen::Map<const FloatMatrix>(all.data() + from * width, count, width);
}

/// The rows of `run` from `from` on.
static FloatMatrix rowsOf(const Passage &run, Value value, int64_t from) {
  return rowsOf(run.values(value), run.rows(), from, run.rows() - from);
}

/// Puts what `fit` adds to the products from row `from` on behind what the matrix itself has given.
static void addTo(Passage &run, const SplitSite &site, const JointFit &fit, int64_t from = 0) {
  const FloatMatrix sum =
      (rowsOf(run, site.product, from).cast<double>() + fit.products(rowsOf(run, site.data, from)))
          .cast<float>();
  Numbers all = run.values(site.product);
  std::copy_n(sum.data(), sum.size(), all.end() - sum.size());
  run.replace(site.product, std::move(all));
}

llvm::Expected<JointChanges> JointChanges::of(const SplitProgram &split, const Adapter &adapter) {
  JointChanges changes;
  if (!adapter.vectors.empty())
    return makeError(adapter.vectors.front().parameter +
                     ": a joint patch changes matrices alone, and this is a vector");
  for (const MatrixChange &change : adapter.matrices) {
    llvm::SmallVector<size_t> sites; // several, of a layer that runs again
    for (auto [i, site] : llvm::enumerate(split.sites))
      if (site.matrix == change.parameter && !site.experts &&
          llvm::ArrayRef<int64_t>({change.rows, change.columns}) == llvm::ArrayRef(site.shape))
        sites.push_back(i);
    if (sites.empty())
      return makeError(change.parameter + ": is no matrix of this model that a joint patch "
                                          "changes, or has another shape");
    const Matrix first =
        Eigen::Map<const FloatMatrix>(change.left.data(), change.rows, change.rank).cast<double>();
    const Matrix second =
        Eigen::Map<const FloatMatrix>(change.right.data(), change.rank, change.columns)
            .cast<double>();
    for (size_t site : sites)
      changes.fits.emplace(site, change.inFirst ? JointFit(second.transpose(), first.transpose())
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

/// The step of `program` that computes `value`.
static size_t stepOf(const Program &program, Value value) {
  auto step = llvm::find_if(program.steps, [&](const ProgramStep &each) {
    return xf::LayerOp(each.layer) == value.getDefiningOp();
  });
  return step - program.steps.begin();
}

/// Whether the layer's result depends on what stands before the site by the site's goal alone. In
/// a block in parallel, the MLP reads the layer's input.
static bool endsInGoal(const SplitProgram &split, const SplitSite &site) {
  llvm::SmallPtrSet<Value, 8> known = {site.goal};
  const auto &steps = split.program.steps;
  for (size_t i = stepOf(split.program, site.goal); steps[i].index != site.layer;) {
    xf::LayerOp layer = steps[++i].layer;
    if (!llvm::all_of(layer.getInputs(), [&](Value input) { return known.contains(input); }))
      return false;
    known.insert(layer.getOutputs().begin(), layer.getOutputs().end());
  }
  return true;
}

JointPatcher::JointPatcher(SplitModel model, int64_t tokens, bool chooses)
    : model(model), layers(jointSites(model.split)) {
  for (auto &candidates : layers) {
    auto isSmall = [&](size_t number) {
      return capacityOf(model.split, model.split.sites[number]) < tokens;
    };
    if (llvm::all_of(candidates, isSmall)) // then it is exact for the first tokens
      candidates = {widestOf(model.split, candidates)};
    if (candidates.size() > 1)
      llvm::erase_if(candidates, isSmall);
    // All runs of a layer change the same matrix.
    const bool runsAgain = llvm::any_of(candidates, [&](size_t number) {
      return runsOf(model.split, model.split.sites[number]) > 1;
    });
    if (!chooses || runsAgain)
      candidates.truncate(std::min<size_t>(candidates.size(), 1));
    bringsBack &= llvm::all_of(candidates, [&](size_t number) {
      return endsInGoal(model.split, model.split.sites[number]);
    });
  }
}

int64_t JointPatcher::lastLayer() const { return model.split.sites[layers.back().front()].layer; }

bool JointPatcher::mayLeave(const SplitSite &site) const {
  return bringsBack && site.layer != lastLayer();
}

/// JointSite::replayError: roundings of what the site reads, which go through its change.
static double replayErrorOf(const JointFit &fit, double stretch) {
  return float32UnitRoundoff * stretch * fit.norm() / std::sqrt(double(fit.width()));
}

/// What the chain behind the matrix asks of its product for each token of the texts, or of the
/// norm and scale that follow it.
llvm::Expected<FloatMatrix> JointPatcher::targetOf(size_t number, JointPassages &passages) const {
  return ctxc::targetOf(model, number, [&](Value value, bool isGoal) {
    const Passage &run = isGoal ? passages.full : passages.reduced;
    return rowsOf(run.values(value), run.rows(),
                  isGoal ? passages.taught : passages.begin + passages.learned,
                  passages.rows() - passages.learned);
  });
}

/// What the matrix should write for each token of the texts.
llvm::Expected<FloatMatrix> JointPatcher::wantedOf(size_t number, JointPassages &passages,
                                                   std::map<int64_t, double> &remains) const {
  const SplitSite &site = model.split.sites[number];
  if (site.scale.empty())
    return targetOf(number, passages);
  // Behind a norm that forgets lengths, what the same matrix writes in the full run is one of the
  // products that the norm's result asks for, and needs no inversion; unless what stands beside the
  // norm's result is not that of the full run.
  const int64_t count = passages.rows() - passages.learned, first = names.size() - count;
  FloatMatrix wanted =
      rowsOf(passages.full.values(site.product), passages.full.rows(), passages.taught, count);
  if (llvm::none_of(llvm::seq(first, first + count), [&](int64_t row) { return astray[row] > 0; }))
    return wanted;
  auto target = targetOf(number, passages);
  if (!target)
    return target.takeError();
  auto scale = normScaleOf(model, site);
  if (!scale)
    return scale.takeError();
  const FloatMatrix goals =
      rowsOf(passages.full.values(site.goal), passages.full.rows(), passages.taught, count);
  for (int64_t row = 0; row < count; ++row) {
    if (astray[first + row] == 0)
      continue;
    const Vector asked = target->row(row).transpose().cast<double>(),
                 near = nearestThroughNorm(asked, wanted.row(row).transpose().cast<double>(),
                                           *scale, site.eps, FitOptions()),
                 normed = near / std::sqrt(near.squaredNorm() / near.size() + site.eps);
    remains[first + row] = (asked - scale->cwiseProduct(normed)).norm() /
                           std::max<double>(goals.row(row).norm(), 1e-30);
    wanted.row(row) = near.transpose().cast<float>();
  }
  return wanted;
}

std::string JointPatcher::nameOf(const Grown &grown, size_t row) const {
  const int64_t layer = grown.rows[row].second;
  const bool isOne = llvm::all_of(grown.rows, [&](auto each) { return each.second == layer; });
  return names[grown.rows[row].first] + (isOne ? "" : " in layer " + std::to_string(layer));
}

/// `row` depends on those before it, and something is missing.
std::string JointPatcher::whyNone(const Grown &grown, size_t row, const SplitSite &site) const {
  const JointFit::Nearest nearest = grown.fit.nearestTo(row);
  const std::string last = nameOf(grown, row), other = nameOf(grown, nearest.row);
  if (nearest.isSame)
    return site.matrix + ": it reads the same for " + other + " and for " + last +
           ", and should write different things, so that no change serves both; keep another "
           "token of the context in front, or leave one of the two out";
  const bool isOfRuns = row >= names.size();
  return site.matrix + ": what it reads for " + last +
         " is a combination of what it reads for the " + std::to_string(row) +
         (isOfRuns ? " rows" : " tokens") + " before it, most nearly " + other +
         ", and it should write something else, so that no change serves all; keep other tokens of "
         "the context in front, or take a shorter text";
}

/// Row by row, with what the matrix has written without its change.
llvm::Error JointPatcher::grow(const SplitSite &site, Grown &grown, JointPassages &passages,
                               const FloatMatrix &wanted) const {
  JointFit &fit = grown.fit;
  const FloatMatrix data = rowsOf(passages.reduced, site.data, passages.begin),
                    product = rowsOf(passages.reduced, site.product, passages.begin);
  const FloatMatrix goals =
      rowsOf(passages.full.values(site.goal), passages.full.rows(), passages.taught, wanted.rows());
  const int64_t learned = passages.learned, token = names.size() - data.rows();
  if (!data.allFinite() || !product.allFinite() || !wanted.allFinite())
    return makeError(site.matrix + ": what it reads or should write is not finite");
  // Data and products are known to float32: a smaller distance from the span of other rows says
  // nothing. What would be amplified by much is left to the next layer where that brings it back.
  const double least = mayLeave(site) ? 1e-3 : 1e-5,
               scale = std::max<double>(wanted.norm(), product.norm()) / std::sqrt(wanted.rows());
  for (int64_t row = 0; row < data.rows(); ++row) {
    const bool stays = row < learned;
    const Vector own =
        (stays ? product.row(row) : wanted.row(row - learned)).transpose().cast<double>();
    const Vector missing = own - product.row(row).transpose().cast<double>() -
                           fit.products(data.row(row)).row(0).transpose();
    grown.rows.emplace_back(token + row, site.layer);
    if (!fit.grow(data.row(row).transpose().cast<double>(), missing, scale, least)) {
      grown.left[site.layer].push_back(token + row);
      // Equal states of two tokens stay equal in all layers.
      const JointFit::Nearest nearest = fit.nearestTo(fit.rows() - 1);
      if (nearest.isSame && grown.rows[nearest.row].second == site.layer)
        return makeError(whyNone(grown, fit.rows() - 1, site));
      continue;
    }
    if (const double length = stays ? 0 : goals.row(row - learned).cast<double>().norm())
      grown.stretch = std::max(grown.stretch, data.row(row).cast<double>().norm() / length);
  }
  return llvm::Error::success();
}

/// The change of one site, with the tokens that the passages bring; the reduced run stands behind
/// the site, or further.
llvm::Expected<JointPatcher::Grown> JointPatcher::tried(size_t number, JointPassages &passages) {
  const SplitSite &site = model.split.sites[number];
  if (llvm::Error error = passages.reduced.runUpTo(site.step + 1))
    return std::move(error);
  auto known = changes.find(firstOf(model.split, site));
  Grown grown = known == changes.end()
                    ? Grown{JointFit(site.shape[site.transposed], inputsOf(site))}
                    : std::move(known->second);
  grown.remains.clear();
  auto wanted = wantedOf(number, passages, grown.remains);
  if (!wanted)
    return wanted.takeError();
  if (llvm::Error error = grow(site, grown, passages, *wanted))
    return std::move(error);
  return std::move(grown);
}

/// What the change of a layer leaves of the last rows.
void JointPatcher::note(const Grown &grown, const SplitSite &site) {
  constexpr double rounding = 1e-4;
  const bool isLast = site.layer == lastLayer();
  llvm::fill(astray, 0);
  for (auto [row, distance] : grown.remains)
    astray[row] = distance;
  const auto found = grown.left.find(site.layer);
  const std::vector<int64_t> left =
      found == grown.left.end() ? std::vector<int64_t>() : found->second;
  for (int64_t row : left)
    astray[row] = 1;
  for (int64_t row = 0; row < served() && (isLast || !bringsBack); ++row) {
    if (astray[row] <= rounding)
      continue;
    exact = row;
    const std::pair<int64_t, int64_t> own(row, site.layer);
    reason = llvm::is_contained(left, row)
                 ? whyNone(grown, llvm::find(grown.rows, own) - grown.rows.begin(), site)
                 : site.matrix + ": what a layer before it leaves of " + names[row] +
                       ", whose state is a combination of others', is not brought back behind "
                       "norms; keep other tokens of the context in front, or take a shorter text";
  }
}

/// Tries the candidates one after the other, none with the change of another, and goes back to the
/// chosen one.
llvm::Error JointPatcher::fit(llvm::ArrayRef<size_t> candidates, JointPassages &passages) {
  Passage &full = passages.full, &reduced = passages.reduced;
  const auto &steps = model.split.program.steps;
  const size_t begin = model.split.sites[candidates.front()].step;
  size_t end = begin;
  llvm::SmallVector<Value> taught, read;
  for (size_t number : candidates) {
    const SplitSite &site = model.split.sites[number];
    xf::LayerOp target = model.split.targets.steps[number].layer;
    llvm::append_values(taught, site.goal, site.product);
    llvm::append_range(read, llvm::drop_begin(target.getInputs()));
    llvm::append_values(read, site.data, site.product);
    end = std::max(end, stepOf(model.split.program, site.goal) + 1);
  }
  for (size_t step = begin; step < end; ++step) { // they may come again
    xf::LayerOp layer = steps[step].layer;
    llvm::append_range(read, layer.getInputs());
  }
  for (Value value : taught)
    full.keep(value);
  for (Value value : read)
    reduced.keep(value);
  // The full run goes ahead, since its goal may be behind other sites.
  if (llvm::Error error = full.runUpTo(end))
    return error;
  std::optional<Grown> best;
  size_t chosen = candidates.front();
  for (size_t number : candidates) {
    auto grown = tried(number, passages);
    if (!grown)
      return grown.takeError();
    // A second site has to be worth that the MLP then computes something else inside.
    auto error = [](const Grown &of) { return replayErrorOf(of.fit, of.stretch); };
    const int64_t layer = model.split.sites[number].layer;
    auto left = [&](Grown &of) { return of.left[layer].size(); };
    if (!best || std::make_pair(left(*grown), 2 * error(*grown)) <
                     std::make_pair(left(*best), error(*best))) {
      best = std::move(*grown);
      chosen = number;
    }
  }
  const SplitSite &site = model.split.sites[chosen];
  reduced.goBackTo(site.step + 1);
  addTo(reduced, site, best->fit, passages.begin);
  note(*best, site);
  changes.insert_or_assign(firstOf(model.split, site), std::move(*best));
  for (Value value : read)
    reduced.release(value);
  for (Value value : taught)
    full.release(value);
  return llvm::Error::success();
}

llvm::Error JointPatcher::read(JointPassages passages, const ProgressCall &fitted) {
  llvm::append_range(names, passages.names);
  astray.assign(names.size(), 0);
  for (auto &[number, grown] : changes)
    grown.before = grown.fit.rank();
  for (auto [done, candidates] : llvm::enumerate(layers)) {
    tell(fitted, done, layers.size());
    if (llvm::Error error = fit(candidates, passages))
      return error;
  }
  tell(fitted, layers.size(), layers.size());
  for (auto &candidates : layers) // what is chosen stays
    llvm::erase_if(candidates, [&](size_t number) {
      return !changes.count(firstOf(model.split, model.split.sites[number]));
    });
  return llvm::Error::success();
}

/// JointSite::shares, of all runs of a layer together.
std::vector<std::vector<double>> JointPatcher::sharesOf(const Grown &grown) const {
  std::vector<std::vector<double>> all(names.size());
  for (auto [row, own] : llvm::enumerate(grown.fit.shares())) {
    std::vector<double> &shares = all[grown.rows[row].first];
    shares.resize(own.size());
    for (size_t i = 0; i < own.size(); ++i)
      shares[i] += own[i];
  }
  for (std::vector<double> &shares : all)
    if (const double sum = std::accumulate(shares.begin(), shares.end(), 0.0); sum > 0)
      for (double &share : shares)
        share /= sum;
  return all;
}

llvm::Expected<JointPatch> JointPatcher::patch(int64_t tokens) const {
  JointPatch made;
  made.tokens = tokens;
  auto norms = programNorms(model.split.program, model.weights);
  for (const auto &[number, grown] : changes) {
    const JointFit &fit = grown.fit;
    const SplitSite &site = model.split.sites[number];
    auto stored = norms->squaredNorm(site.matrix);
    if (!stored)
      return stored.takeError();
    JointSite about;
    about.matrix = site.matrix;
    about.layer = site.layer;
    about.capacity = capacityOf(model.split, site);
    about.change = *stored > 0 ? fit.norm() / std::sqrt(*stored) : 0;
    about.independence = fit.leastDistance();
    about.replayError = replayErrorOf(fit, grown.stretch);
    for (const auto &[layer, left] : grown.left)
      about.left += bringsBack && layer != lastLayer() ? left.size() : 0;
    about.spectrum = fit.spectrum();
    about.shares = sharesOf(grown);
    made.sites.push_back(std::move(about));
    MatrixChange change = changeOf(fit.left(), fit.right(), site, site.matrix);
    if (change.rank > 0)
      made.adapter.matrices.push_back(std::move(change));
  }
  return std::move(made);
}

std::vector<MatrixChange> JointPatcher::added() const {
  std::vector<MatrixChange> all;
  for (const auto &[number, grown] : changes) {
    const SplitSite &site = model.split.sites[number];
    MatrixChange change =
        changeOf(grown.fit.left(grown.before), grown.fit.right(grown.before), site, site.matrix);
    if (change.rank > 0)
      all.push_back(std::move(change));
  }
  return all;
}

Adapter JointPatcher::ridged(double strength, int64_t first) const {
  Adapter adapter;
  for (const auto &change : changes) {
    const Grown &grown = change.second;
    const SplitSite &site = model.split.sites[change.first];
    MatrixChange ridged = changeOf(
        grown.fit.ridgedLeft(strength, [&](size_t row) { return grown.rows[row].first >= first; }),
        grown.fit.right(), site, site.matrix);
    if (ridged.rank > 0)
      adapter.matrices.push_back(std::move(ridged));
  }
  return adapter;
}
