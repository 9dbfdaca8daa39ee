// The pass over the layers: the full run and the reduced run side by side, and each site fitted in
// front of its step.
#include "ctxc/Distil/Distil.h"
#include "Refine.h"
#include "Regression.h"
#include "Room.h"
#include "Sinks.h"
#include "ctxc/Distil/Entries.h"
#include "ctxc/Numerics/Selection.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ctxc;

/// The texts of all contexts, in their order.
static std::vector<TextSequence> textsOf(const DistilRequest &request) {
  std::vector<TextSequence> all = request.texts;
  for (const OtherContext &other : request.others)
    llvm::append_range(all, other.texts);
  return all;
}

static size_t longestContext(const DistilRequest &request) {
  size_t longest = request.context.size();
  for (const OtherContext &other : request.others)
    longest = std::max(longest, other.context.size());
  return longest;
}

llvm::Expected<Vector> ctxc::normScaleOf(const SplitModel &model, const SplitSite &site) {
  Program program = model.split.program;
  auto type = RankedTensorType::get({site.shape[site.transposed]},
                                    Float32Type::get(program.module.getContext()));
  auto stored = model.weights.get(site.scale, type);
  if (!stored)
    return stored.takeError();
  Vector m =
      Eigen::Map<const Eigen::VectorXf>(static_cast<const float *>(*stored), type.getNumElements())
          .cast<double>();
  m.array() += site.offset;
  return m;
}

llvm::Expected<FloatMatrix>
ctxc::targetOf(const SplitModel &model, size_t number,
               llvm::function_ref<FloatMatrix(Value value, bool isGoal)> rowsOf) {
  xf::LayerOp target = model.split.targets.steps[number].layer;
  std::vector<std::vector<float>> inputs;
  int64_t count = 0;
  for (auto [i, value] : llvm::enumerate(target.getInputs())) {
    const FloatMatrix rows = rowsOf(value, i == 0);
    inputs.emplace_back(rows.data(), rows.data() + rows.size());
    count = rows.rows();
  }
  auto pointers = llvm::map_to_vector(inputs, [](const auto &input) { return &input; });
  auto solved = model.targets.call(number, model.weights, count, pointers);
  if (!solved)
    return solved.takeError();
  const std::vector<float> &all = solved->front();
  return FloatMatrix(Eigen::Map<const FloatMatrix>(all.data(), count, all.size() / count));
}

namespace {

using Numbers = std::vector<float>;

class Distiller {
public:
  Distiller(SplitModel model, const DistilRequest &request)
      : model(model), request(request), options(request.fit), weights(model.weights) {}
  llvm::Expected<Distilled> run();

private:
  /// Where the texts stand in both runs.
  struct Runs {
    std::vector<PassageSequence> full, reduced;
    std::vector<std::pair<size_t, size_t>> taught; ///< a context's first in `full`, and how many
    size_t taughtFront, taughtUnrelated, learned, texts;
    size_t taughtFirst;                     ///< the first tokens of each text, without the context
    llvm::ArrayRef<TextSequence> unrelated; ///< those that are protected
  };

  llvm::Error check() const;
  Runs runsWith(const Front &prefix) const;
  llvm::Error checkRoom() const;
  llvm::Error start();
  llvm::Error teach(int64_t layer);
  llvm::Error fit(size_t number);
  llvm::Expected<SiteRows> rowsOf(size_t number);
  llvm::Expected<SiteFit> solve(const SplitSite &site, const SiteRows &rows);
  llvm::Error solveExperts(const SplitSite &site, SiteRows rows);
  llvm::Error change(const SplitSite &site, const SiteFit &fit);
  llvm::Error change(const SplitMatrix &matrix, const std::string &name, const SiteFit &fit);
  FloatMatrix gather(const Numbers &all, int64_t rows, llvm::ArrayRef<int64_t> wanted) const;

  SplitModel model;
  const DistilRequest &request;
  FitOptions options;
  AdaptedWeights weights; ///< the student's
  std::optional<OwnedFront> prefix;
  std::optional<Passage> teacher, student;
  FittedRows rows;
  Distilled result;
};

llvm::Error Distiller::check() const {
  if (model.split.sites.empty())
    return makeError("no matrix of this model can take a context: none is on the way of all that "
                     "the context changes; ctxc check says more");
  llvm::StringSet<> matrices;
  for (const SplitSite &site : model.split.sites)
    if (!matrices.insert(site.matrix).second)
      return makeError(site.matrix +
                       ": its layer runs several times, and what is fitted to one run "
                       "changes all; one patch for a whole text serves all runs");
  if (request.texts.empty())
    return makeError("there is no text to fit");
  int64_t tokens = 0;
  for (const TextSequence &text : textsOf(request))
    tokens += text.tokens.size();
  if (tokens < request.fit.rank)
    return makeError("the text has " + llvm::Twine(tokens) + " tokens, fewer than the rank, " +
                     llvm::Twine(request.fit.rank) + "; expected more text, or a smaller rank");
  if (request.context.empty())
    return makeError("the context is empty");
  if (request.fit.otherRank > 0 && !request.seen.empty())
    return makeError(
        "the matrices that make keys and values cannot change beside tokens whose keys "
        "and values are kept; expected sites alone, or tokens kept as text");
  for (const OtherContext &other : request.others)
    if (other.context.empty() || other.texts.empty())
      return makeError("a context that is fitted with another one is empty, or has no text");
  return llvm::Error::success();
}

/// The sequences of both runs, with `prefix` in front of the reduced run's.
Distiller::Runs Distiller::runsWith(const Front &prefix) const {
  Runs runs;
  if (request.protection > 0)
    runs.unrelated = request.unrelated;
  runs.taught.emplace_back(addAfter(runs.full, request.context, request.texts),
                           request.texts.size());
  for (const OtherContext &other : request.others)
    runs.taught.emplace_back(addAfter(runs.full, other.context, other.texts), other.texts.size());
  // What should not change: tokens in front, and unrelated text as the model without any token of
  // the context reads it.
  const std::vector<int64_t> &plain = plainFront(request);
  std::vector<TextSequence> all = textsOf(request);
  runs.texts = all.size();
  std::vector<TextSequence> first = FittedRows::firstTokens(prefix, all);
  runs.taughtFront = runs.taughtFirst = runs.full.size();
  if (!first.empty() || (!prefix.pinned && prefix.tokens != llvm::ArrayRef(plain)))
    runs.taughtFirst = addAfter(runs.full, prefix, first);
  runs.taughtUnrelated = addAfter(runs.full, plain, runs.unrelated);
  llvm::append_range(all, runs.unrelated);
  runs.learned = addAfter(runs.reduced, prefix, all);
  return runs;
}

/// Fails where the fit, or the refinement after it, would need more memory than there is.
llvm::Error Distiller::checkRoom() const {
  std::vector<int64_t> inFront; // as many tokens as those that are pinned
  for (int64_t place : request.seen)
    inFront.push_back(request.prefix[place]);
  Runs runs = runsWith(request.seen.empty() ? request.prefix : inFront);
  return checkRoomToFit(model, request, runs.full, runs.reduced);
}

llvm::Error Distiller::start() {
  if (llvm::Error error = checkRoom())
    return error;
  if (llvm::Error error = OwnedFront::make(model, request.prefix, request.seen).moveInto(prefix))
    return error;
  Runs runs = runsWith(prefix->get());
  auto first = Passage::start(model.steps, model.weights, std::move(runs.full));
  if (!first)
    return makeError("with the context of " + llvm::Twine(longestContext(request)) +
                     " tokens in front: " + llvm::toString(first.takeError()));
  auto second = Passage::start(model.steps, weights, std::move(runs.reduced));
  if (!second)
    return second.takeError();
  teacher.emplace(std::move(*first));
  student.emplace(std::move(*second));

  const size_t behind = runs.learned + runs.texts;
  result.tokens = student->firstRow(behind) - student->firstRow(runs.learned);
  result.protectedTokens = student->rows() - student->firstRow(behind);
  options.lambda = ridgeStrength(request.fit, result.tokens);
  const double total = result.tokens;
  const int64_t position = prefix->get().end();
  auto pair = [&](FittedSequences some) { rows.add(*teacher, *student, some); };
  size_t next = runs.learned;
  for (auto [first, count] : runs.taught) {
    const double own = student->firstRow(next + count) - student->firstRow(next);
    pair({first, next, count, own, position, runs.taughtFirst + next - runs.learned});
    next += count;
  }
  pair({runs.taughtUnrelated, behind, runs.unrelated.size(), request.protection * total, position,
        runs.taughtUnrelated});
  if (!request.prefix.empty() && request.seen.empty()) // what is pinned does not change
    pair({runs.taughtFront, 0, 1, request.prefixWeight * total, 0, runs.taughtFront});
  return llvm::Error::success();
}

/// Takes the full run through `layer`, and finds the rows on which attention rests there.
llvm::Error Distiller::teach(int64_t layer) {
  const Program &program = model.split.program;
  llvm::SmallVector<Value> goals;
  for (const SplitSite &site : model.split.sites)
    if (site.layer == layer) {
      teacher->keep(site.goal);
      goals.push_back(site.goal);
    }
  size_t end = teacher->nextStep();
  while (end < program.steps.size() && program.steps[end].index != layer)
    ++end;
  if (llvm::Error error = teacher->runUpTo(end + 1))
    return error;
  rows.findSinks(*teacher, goals);
  return llvm::Error::success();
}

FloatMatrix Distiller::gather(const Numbers &all, int64_t rows,
                              llvm::ArrayRef<int64_t> wanted) const {
  const int64_t width = all.size() / rows;
  FloatMatrix matrix(wanted.size(), width);
  for (auto [i, row] : llvm::enumerate(wanted))
    std::copy_n(all.begin() + row * width, width, matrix.row(i).data());
  return matrix;
}

llvm::Expected<SiteRows> Distiller::rowsOf(size_t number) {
  const SplitSite &site = model.split.sites[number];
  auto target = targetOf(model, number, [&](Value value, bool isGoal) {
    return isGoal ? gather(teacher->values(value), teacher->rows(), rows.taught)
                  : gather(student->values(value), student->rows(), rows.learned);
  });
  if (!target)
    return target.takeError();
  SiteRows made;
  made.data = gather(student->values(site.data), student->rows(), rows.learned);
  made.product = gather(student->values(site.product), student->rows(), rows.learned);
  made.target = std::move(*target);
  made.weights = Eigen::Map<const Vector>(rows.weights.data(), rows.weights.size());
  made.sinks = rows.sinks;
  if (!made.data.allFinite() || !made.product.allFinite() || !made.target.allFinite())
    return makeError(site.matrix + ": what it reads or should write is not finite");
  return made;
}

llvm::Expected<SiteFit> Distiller::solve(const SplitSite &site, const SiteRows &rows) {
  if (site.scale.empty())
    return fitProduct(rows, options, model.steps.parallelFor());
  auto m = normScaleOf(model, site);
  if (!m)
    return m.takeError();
  return fitThroughNorm(rows, *m, site.eps, options, model.steps.parallelFor());
}

/// Fits all experts of a mixture, and puts the changes into the student and into the result.
llvm::Error Distiller::solveExperts(const SplitSite &site, SiteRows rows) {
  const SplitExperts &experts = *site.experts;
  auto gathered = [&](Value value) {
    return gather(student->values(value), student->rows(), this->rows.learned);
  };
  FloatMatrix scores = gathered(experts.scores);
  ExpertRows all{std::move(rows.data),    {},
                 gathered(experts.gates), {},
                 std::move(rows.product), std::move(rows.target),
                 std::move(rows.weights), std::move(rows.sinks)};
  for (int64_t row = 0; row < scores.rows(); ++row)
    llvm::append_range(all.selected,
                       selectTop(llvm::ArrayRef(scores.row(row).data(), scores.cols()),
                                 experts.chosen, experts.groups, experts.keep));
  if (experts.shared)
    all.shared = gathered(experts.shared->data);
  if (experts.sharedGate)
    all.shared.array().colwise() *= gathered(experts.sharedGate).col(0).array();
  auto fits = fitExperts(all, experts.count, options, model.steps.parallelFor());
  if (!fits)
    return fits.takeError();
  for (auto [i, fit] : llvm::enumerate(*fits)) {
    if (fit.left.size() == 0)
      continue;
    const bool isShared = int64_t(i) == experts.count;
    const SplitMatrix &matrix = isShared ? *experts.shared : site;
    if (llvm::Error error =
            change(matrix, isShared ? matrix.matrix : sliceName(site.matrix, i), fit))
      return error;
  }
  return llvm::Error::success();
}

/// Puts the fit into the student and into the result.
llvm::Error Distiller::change(const SplitMatrix &matrix, const std::string &name,
                              const SiteFit &fit) {
  MatrixChange made = changeOf(fit.left, fit.right, matrix, name);
  if (llvm::Error error = weights.add(made))
    return error;
  result.adapter.matrices.push_back(std::move(made));
  return llvm::Error::success();
}

llvm::Error Distiller::change(const SplitSite &site, const SiteFit &fit) {
  if (llvm::Error error = change(site, site.matrix, fit))
    return error;
  if (!fit.scale.size())
    return llvm::Error::success();
  Eigen::VectorXf delta = fit.scale.cast<float>();
  VectorChange vector{site.scale, Numbers(delta.data(), delta.data() + delta.size())};
  if (llvm::Error error = weights.add(vector))
    return error;
  result.adapter.vectors.push_back(std::move(vector));
  return llvm::Error::success();
}

llvm::Error Distiller::fit(size_t number) {
  const SplitSite &site = model.split.sites[number];
  if (number == 0 || model.split.sites[number - 1].layer != site.layer)
    if (llvm::Error error = teach(site.layer))
      return error;
  xf::LayerOp target = model.split.targets.steps[number].layer;
  llvm::SmallVector<Value> read(target.getInputs());
  read.push_back(site.data);
  if (site.experts) {
    llvm::append_values(read, site.experts->scores, site.experts->gates);
    if (site.experts->shared)
      read.push_back(site.experts->shared->data);
    if (site.experts->sharedGate)
      read.push_back(site.experts->sharedGate);
  }
  for (Value value : read)
    student->keep(value);
  if (llvm::Error error = student->runUpTo(site.step + 1))
    return error;
  auto known = rowsOf(number);
  if (!known)
    return known.takeError();
  llvm::Error error = [&]() -> llvm::Error {
    if (site.experts)
      return solveExperts(site, std::move(*known));
    auto solved = solve(site, *known);
    return solved ? change(site, *solved) : solved.takeError();
  }();
  if (error)
    return makeError(site.matrix + ": " + llvm::toString(std::move(error)));
  if (llvm::Error error = student->run(site.step))
    return error;
  for (Value value : read)
    student->release(value);
  teacher->release(site.goal);
  return llvm::Error::success();
}

llvm::Expected<Distilled> Distiller::run() {
  if (llvm::Error error = check())
    return std::move(error);
  if (llvm::Error error = start())
    return std::move(error);
  const size_t sites = model.split.sites.size();
  tell(request.fitted, 0, sites);
  for (size_t number = 0; number < sites; ++number) {
    if (llvm::Error error = fit(number))
      return std::move(error);
    tell(request.fitted, number + 1, sites);
  }
  result.adapter.prefix = request.prefix;
  result.adapter.seen = request.seen;
  return std::move(result);
}

} // namespace

/// The entries, and how many tokens were fitted.
static llvm::Expected<Distilled> distilToEntries(SplitModel model, const DistilRequest &request) {
  if (request.fit.otherRank > 0)
    return makeError("virtual entries change no matrix; expected no rank of other matrices");
  if (!request.others.empty())
    return makeError("found several contexts, expected one: virtual entries stand for one");
  if (!request.seen.empty())
    return makeError(
        "virtual entries stand for the whole context; expected no tokens that are kept "
        "beside them");
  Distilled made;
  for (const TextSequence &text : request.texts)
    made.tokens += text.tokens.size();
  if (llvm::Error error = fitEntries(model, request).moveInto(made.adapter.entries))
    return std::move(error);
  return made;
}

/// The closed form, and the passes behind it.
static llvm::Expected<Distilled> fitAndRefine(SplitModel model, const DistilRequest &request) {
  auto made =
      request.fit.entries > 0 ? distilToEntries(model, request) : Distiller(model, request).run();
  if (!made || request.fit.passes == 0)
    return made;
  made->closedForm = made->adapter;
  if (llvm::Error error = refine(model, request, *made))
    return std::move(error);
  return made;
}

llvm::Expected<Distilled> ctxc::distil(SplitModel model, const DistilRequest &request) {
  auto tried = fitAndRefine(model, request);
  if (!tried || request.fit.passes == 0 || request.choosing.empty())
    return tried;
  // The number of passes is chosen: nothing has to be left out any more.
  DistilRequest whole = request;
  llvm::append_range(whole.texts, request.choosing);
  whole.choosing.clear();
  for (OtherContext &other : whole.others) {
    llvm::append_range(other.texts, other.choosing);
    other.choosing.clear();
  }
  whole.fit.passes = tried->passes;
  auto made = fitAndRefine(model, whole);
  if (!made)
    return made;
  made->divergenceBefore = tried->divergenceBefore;
  made->divergenceAfter = tried->divergenceAfter;
  return made;
}
