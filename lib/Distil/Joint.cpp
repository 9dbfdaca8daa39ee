#include "ctxc/Distil/Joint.h"
#include "JointFit.h"
#include "Room.h"
#include "TextReader.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Support/Error.h"

using namespace mlir;
using namespace ctxc;

/// Of each layer the first of its sites.
static llvm::SmallVector<size_t> firstSites(const SplitProgram &split) {
  llvm::SmallVector<size_t> first;
  for (auto [i, site] : llvm::enumerate(split.sites))
    if (first.empty() || split.sites[first.back()].layer != site.layer)
      first.push_back(i);
  return first;
}

static int64_t inputsOf(const SplitSite &site) { return site.shape[!site.transposed]; }

std::optional<JointMatrix> ctxc::findJointMatrix(const LayerVerdict &layer) {
  auto sites = findFitSites(layer);
  if (sites.empty() || !sites.front().toSum.empty())
    return std::nullopt;
  Operation *matrix = sites.front().first();
  Value data = cast<xf::AssignableOpInterface>(matrix).getDataOperand().get();
  return JointMatrix{Sites::name(matrix), cast<RankedTensorType>(data.getType()).getNumElements()};
}

int64_t ctxc::jointCapacity(const SplitModel &model) {
  int64_t least = 0;
  for (size_t number : firstSites(model.split)) {
    int64_t own = inputsOf(model.split.sites[number]);
    least = least ? std::min(least, own) : own;
  }
  return least;
}

namespace {

using Numbers = std::vector<float>;

class JointPatcher {
public:
  JointPatcher(SplitModel model, const JointRequest &request)
      : model(model), request(request), weights(model.weights) {}
  llvm::Expected<JointPatch> run();

private:
  llvm::Error check() const;
  llvm::Error start();
  llvm::Error fit(size_t number);
  llvm::Expected<FloatMatrix> wantedOf(size_t number) const;
  llvm::Error solve(const SplitSite &site, const FloatMatrix &wanted);
  std::string nameOf(int64_t row) const;
  FloatMatrix rowsOf(const Numbers &all, int64_t count, int64_t from, int64_t wanted) const;

  SplitModel model;
  const JointRequest &request;
  AdaptedWeights weights; ///< the reduced run's
  std::optional<Passage> full, reduced;
  int64_t taught = 0;  ///< the first row of the texts in the full run
  int64_t learned = 0; ///< and in the reduced run
  int64_t count = 0;   ///< of the texts' rows
  JointPatch result;
};

llvm::Error JointPatcher::check() const {
  if (request.context.empty())
    return makeError("the context is empty");
  if (request.texts.empty())
    return makeError("there is no text to be exact on");
  const auto sites = firstSites(model.split);
  if (sites.empty())
    return makeError("no matrix of this model can take a context: none is on the way of all that "
                     "the context changes; ctxc check says more");
  int64_t tokens = request.prefix.size();
  for (const TextSequence &text : request.texts)
    tokens += text.tokens.size();
  for (size_t number : sites) {
    const SplitSite &site = model.split.sites[number];
    if (site.experts)
      return makeError(site.matrix + ": one patch for several tokens cannot change a mixture's "
                                     "experts; patch one token at a time");
    if (tokens > inputsOf(site))
      return makeError(site.matrix + " reads " + llvm::Twine(inputsOf(site)) +
                       " numbers, so that one patch is exact for at most as many tokens; found " +
                       llvm::Twine(tokens) + " (" + llvm::Twine(request.prefix.size()) +
                       " of them in front); expected a shorter text, or ctxc distil, which is "
                       "approximate and has no limit");
  }
  return llvm::Error::success();
}

llvm::Error JointPatcher::start() {
  std::vector<PassageSequence> first, second;
  size_t taughtText = addAfter(first, request.context, request.texts);
  size_t learnedText = addAfter(second, request.prefix, request.texts);
  DistilRequest room;
  room.context = request.context;
  room.texts = request.texts;
  if (llvm::Error error = checkRoomToFit(model, room, first, second))
    return error;
  auto opened = Passage::start(model.steps, model.weights, std::move(first));
  if (!opened)
    return opened.takeError();
  auto other = Passage::start(model.steps, weights, std::move(second));
  if (!other)
    return other.takeError();
  full.emplace(std::move(*opened));
  reduced.emplace(std::move(*other));
  taught = full->firstRow(taughtText);
  learned = reduced->firstRow(learnedText);
  count = full->rows() - taught;
  result.tokens = count;
  return llvm::Error::success();
}

FloatMatrix JointPatcher::rowsOf(const Numbers &all, int64_t rows, int64_t from,
                                 int64_t wanted) const {
  const int64_t width = all.size() / rows;
  return Eigen::Map<const FloatMatrix>(all.data() + from * width, wanted, width);
}

/// What the matrix should write for each token of the texts.
llvm::Expected<FloatMatrix> JointPatcher::wantedOf(size_t number) const {
  const SplitSite &site = model.split.sites[number];
  // Behind a norm that forgets lengths, what the same matrix writes in the full run is one of the
  // products that the norm's result asks for, and needs no inversion.
  if (!site.scale.empty())
    return rowsOf(full->values(site.product), full->rows(), taught, count);
  xf::LayerOp target = model.split.targets.steps[number].layer;
  std::vector<Numbers> inputs;
  for (auto [i, value] : llvm::enumerate(target.getInputs())) {
    const Passage &run = i == 0 ? *full : *reduced;
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

/// The token of a row of the reduced run, in words.
std::string JointPatcher::nameOf(int64_t row) const {
  auto named = [&](int64_t token) {
    return request.nameOf ? request.nameOf(token) : "the token " + std::to_string(token);
  };
  if (row < learned)
    return named(request.prefix[row]) + " in front";
  row -= learned;
  size_t text = 0;
  for (; row >= int64_t(request.texts[text].tokens.size()); ++text)
    row -= request.texts[text].tokens.size();
  std::string where = named(request.texts[text].tokens[row]) + " at place " + std::to_string(row);
  return request.texts.size() == 1 ? where : where + " of text " + std::to_string(text + 1);
}

llvm::Error JointPatcher::solve(const SplitSite &site, const FloatMatrix &wanted) {
  JointRows rows;
  rows.data = rowsOf(reduced->values(site.data), reduced->rows(), 0, reduced->rows());
  FloatMatrix product = rowsOf(reduced->values(site.product), reduced->rows(), learned, count);
  rows.missing = Matrix::Zero(reduced->rows(), product.cols());
  rows.missing.bottomRows(count) = wanted.cast<double>() - product.cast<double>();
  rows.scale = std::max<double>(wanted.norm(), product.norm()) / std::sqrt(double(count));
  if (!rows.data.allFinite() || !rows.missing.allFinite())
    return makeError("what it reads or should write is not finite");
  JointFit fit = fitJointly(rows);
  if (fit.conflict)
    return makeError("it reads the same for " + nameOf(fit.conflict->first) + " and for " +
                     nameOf(fit.conflict->second) +
                     ", and should write different things, so that no change serves both; keep "
                     "another token of the context in front, or leave one of the two out");

  auto type = RankedTensorType::get(site.shape, Float32Type::get(site.product.getContext()));
  auto stored = model.weights.get(site.matrix, type);
  if (!stored)
    return stored.takeError();
  const double norm =
      Eigen::Map<const Eigen::VectorXf>(static_cast<const float *>(*stored), type.getNumElements())
          .cast<double>()
          .norm();
  result.sites.push_back({site.matrix, site.layer, inputsOf(site),
                          norm > 0 ? fit.left.norm() / norm : 0, fit.independence,
                          spectrumOf(fit)});
  MatrixChange change = changeOf(fit.left, fit.right, site, site.matrix);
  if (change.rank == 0)
    return llvm::Error::success();
  if (llvm::Error error = weights.add(change))
    return error;
  result.adapter.matrices.push_back(std::move(change));
  return reduced->run(site.step);
}

llvm::Error JointPatcher::fit(size_t number) {
  const SplitSite &site = model.split.sites[number];
  for (Value value : {site.goal, site.product})
    full->keep(value);
  xf::LayerOp target = model.split.targets.steps[number].layer;
  llvm::SmallVector<Value> read(llvm::drop_begin(target.getInputs()));
  llvm::append_values(read, site.data, site.product);
  for (Value value : read)
    reduced->keep(value);
  // The full run ends the layer, since its goal may be behind other sites.
  const auto &steps = model.split.program.steps;
  size_t end = site.step;
  while (end < steps.size() && steps[end].index == steps[site.step].index)
    ++end;
  if (llvm::Error error = full->runUpTo(end))
    return error;
  if (llvm::Error error = reduced->runUpTo(site.step + 1))
    return error;
  auto wanted = wantedOf(number);
  if (!wanted)
    return wanted.takeError();
  if (llvm::Error error = solve(site, *wanted))
    return makeError(site.matrix + ": " + llvm::toString(std::move(error)));
  for (Value value : read)
    reduced->release(value);
  for (Value value : {site.goal, site.product})
    full->release(value);
  return llvm::Error::success();
}

llvm::Expected<JointPatch> JointPatcher::run() {
  if (llvm::Error error = check())
    return std::move(error);
  if (llvm::Error error = start())
    return std::move(error);
  const auto sites = firstSites(model.split);
  for (auto [done, number] : llvm::enumerate(sites)) {
    tell(request.fitted, done, sites.size());
    if (llvm::Error error = fit(number))
      return std::move(error);
  }
  tell(request.fitted, sites.size(), sites.size());
  result.adapter.prefix = request.prefix;
  return std::move(result);
}

} // namespace

llvm::Expected<JointPatch> ctxc::patchJointly(SplitModel model, const JointRequest &request) {
  return JointPatcher(model, request).run();
}

llvm::Expected<JointCheck> ctxc::checkJointly(SplitModel model, const Adapter &adapter,
                                              const JointRequest &request) {
  AdaptedWeights weights(model.weights);
  if (llvm::Error error = weights.add(adapter))
    return std::move(error);
  auto full = TextReader::read(model, model.weights, request.context, request.texts);
  auto patched = TextReader::read(model, weights, request.prefix, request.texts);
  auto plain = TextReader::read(model, model.weights, request.prefix, request.texts);
  if (!full || !patched || !plain)
    return llvm::joinErrors(llvm::joinErrors(full.takeError(), patched.takeError()),
                            plain.takeError());
  JointCheck check;
  for (auto [text, sequence] : llvm::enumerate(request.texts))
    for (int64_t row = 0; row < int64_t(sequence.tokens.size()); ++row) {
      auto logitsOf = [&, text = text](TextReader &reader) {
        return reader.passage.logits(reader.firstRow(text) + row);
      };
      auto truth = logitsOf(*full), found = logitsOf(*patched), other = logitsOf(*plain);
      if (!truth || !found || !other)
        return llvm::joinErrors(llvm::joinErrors(truth.takeError(), found.takeError()),
                                other.takeError());
      auto likeliest = [](const Numbers &logits) {
        return std::max_element(logits.begin(), logits.end()) - logits.begin();
      };
      auto largest = [&](const Numbers &logits) {
        double most = 0;
        for (auto [a, b] : llvm::zip(*truth, logits))
          most = std::isfinite(b) ? std::max<double>(most, std::abs(double(a) - b)) : HUGE_VAL;
        return most;
      };
      ++check.tokens;
      if (double own = largest(*found); own > check.difference) {
        check.difference = own;
        check.text = text;
        check.at = row;
      }
      check.control = std::max(check.control, largest(*other));
      check.agree += likeliest(*truth) == likeliest(*found);
      check.agreeControl += likeliest(*truth) == likeliest(*other);
    }
  return check;
}
