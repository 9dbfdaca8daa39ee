// The pass over the attentions: the full run, and the run with the entries that are known so far.
#include "ctxc/Distil/Entries.h"
#include "EntryHeads.h"
#include "Groups.h"
#include "Room.h"
#include "ctxc/Distil/Prefix.h"
#include "ctxc/Gradient/AttentionScores.h"
#include "ctxc/Support/Error.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

/// How a model tells positions.
namespace {
struct Positions {
  bool rotated = false, otherwise = false;
};
} // namespace

static Positions positionsOf(const SplitModel &model) {
  Positions found;
  for (ProgramStep step : model.split.program.steps)
    step.block.walk([&](Operation *op) {
      found.rotated |= isa<xf::RotaryOp>(op);
      found.otherwise |= isa<xf::PositionOp>(op);
    });
  return found;
}

llvm::Expected<VirtualEntries> ctxc::shapesOfEntries(const SplitModel &model, int64_t count) {
  if (llvm::Error error = checkPrefixCache(model))
    return std::move(error);
  Positions positions = positionsOf(model);
  if (positions.rotated && positions.otherwise)
    return makeError("the model tells positions by rotations and by their numbers, so that a text "
                     "cannot follow entries in the place of more tokens; fit weights");
  auto shapeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  VirtualEntries entries;
  for (const SplitAttention &at : model.split.attentions)
    entries.attentions.push_back(
        {shapeOf(at.key)[0], count, shapeOf(at.key)[1], shapeOf(at.value)[1], {}, {}});
  return entries;
}

namespace {

class EntryFitter {
public:
  EntryFitter(SplitModel model, const DistilRequest &request) : model(model), request(request) {}
  llvm::Expected<VirtualEntries> run();

private:
  llvm::Error start();
  llvm::Error fit(size_t attention);
  llvm::Error fitHeads(size_t attention, std::vector<EntryFit> &heads);
  std::optional<size_t> siteBehind(const SplitAttention &at) const;
  llvm::Expected<MatrixBehind> matrixBehind(size_t site) const;
  /// The texts' rows of a value, in both runs.
  FloatMatrix taught(Value value) const;
  FloatMatrix learned(Value value) const;
  EntryRows rowsOf(xf::AttentionOp op, const gradient::AttentionScores &scores,
                   gradient::Tape &tape, const SplitAttention &at, int64_t group) const;
  void addText(const gradient::AttentionScores &scores, const FloatMatrix &ownKeys, size_t text,
               int64_t head, int64_t to, EntryRows &rows) const;

  SplitModel model;
  const DistilRequest &request;
  VirtualEntries entries;
  gradient::TapeTokens tokens;          ///< of the texts, as the adapted run has them
  std::vector<int32_t> placesOfContext; ///< relative to these
  std::optional<Passage> full, adapted;
  size_t firstText = 0; ///< in `full`
};

/// The rows of one head, `width` numbers wide, of `count` tokens from row `first` on.
FloatMatrix partOf(const std::vector<float> &all, int64_t rows, int64_t first, int64_t count,
                   int64_t head, int64_t width) {
  const int64_t whole = all.size() / rows;
  return Eigen::Map<const FloatMatrix>(all.data(), rows, whole)
      .block(first, head * width, count, width);
}

llvm::Error EntryFitter::start() {
  if (request.context.empty())
    return makeError("the context is empty");
  if (request.texts.empty())
    return makeError("there is no text to fit");
  const int64_t places = request.context.size(), count = std::min(request.fit.entries, places);
  if (llvm::Error error = shapesOfEntries(model, count).moveInto(entries))
    return error;
  std::vector<PassageSequence> taught, learned;
  firstText = addAfter(taught, request.context, request.texts);
  for (int64_t place = 0; place < places; ++place)
    placesOfContext.push_back(place + count - places);
  // A text is then at the same position in both runs, so that keys of one serve the other.
  if (positionsOf(model).rotated)
    for (PassageSequence &sequence : taught)
      for (int64_t &position : sequence.positions)
        position += count - places;
  addAfter(learned, Front(entries), request.texts);
  if (llvm::Error error = checkRoomToFitEntries(model, request, taught, learned))
    return error;
  tokens = tokensOf(llvm::ArrayRef(learned).drop_front());
  for (gradient::TapeTokens::Sequence &text : tokens.sequences)
    text.after.reset();
  auto first = Passage::start(model.steps, model.weights, std::move(taught));
  if (!first)
    return makeError("with the context of " + llvm::Twine(places) +
                     " tokens in front: " + llvm::toString(first.takeError()));
  auto second = Passage::start(model.steps, model.weights, std::move(learned));
  if (!second)
    return second.takeError();
  full.emplace(std::move(*first));
  adapted.emplace(std::move(*second));
  return llvm::Error::success();
}

/// What a text's queries of a head read, as the rows from `to` on.
void EntryFitter::addText(const gradient::AttentionScores &scores, const FloatMatrix &ownKeys,
                          size_t text, int64_t head, int64_t to, EntryRows &rows) const {
  const gradient::TapeTokens::Sequence &own = tokens.sequences[text];
  rows.queries.middleRows(to, own.count) = scores.queries(own.first, own.count, head);
  rows.scores.middleRows(to, own.count) =
      scores.of(own.first, own.count, head, rows.keys, placesOfContext);
  FloatMatrix others = scores.of(own.first, own.count, head, ownKeys,
                                 llvm::ArrayRef(tokens.positions).slice(own.first, own.count));
  for (int64_t i = 0; i < own.count; ++i) {
    auto row = others.row(i);
    const float *sinks = scores.sinks();
    const double largest = std::max<double>(row.maxCoeff(), sinks ? sinks[head] : -HUGE_VAL);
    double sum = sinks ? std::exp(sinks[head] - largest) : 0;
    for (float score : row)
      sum += std::exp(score - largest);
    rows.own[to + i] = largest + std::log(sum);
    if (!rows.bias.size())
      continue;
    auto [from, last] = scores.seenBy(own.first + i);
    for (int64_t j = 0; j < rows.bias.rows(); ++j)
      rows.bias(j, to + i) =
          j < from || j > last ? -HUGE_VALF : scores.slopeTerm(own.first + i, head, j);
  }
}

/// What the queries of all heads that read the keys of head `group` read.
EntryRows EntryFitter::rowsOf(xf::AttentionOp op, const gradient::AttentionScores &scores,
                              gradient::Tape &tape, const SplitAttention &at, int64_t group) const {
  const int64_t places = request.context.size(), count = tape.count(),
                repeat = scores.heads / scores.groups, rows = repeat * count;
  EntryRows made;
  const auto ofContext = [&](Value value, int64_t width) {
    return partOf(full->values(value), full->rows(), 0, places, group, width);
  };
  made.keys = ofContext(at.key, scores.width);
  made.values = ofContext(at.value, scores.valueWidth);
  made.queries.resize(rows, scores.width);
  made.scores.resize(rows, places);
  made.own.resize(rows);
  made.ownResult.resize(rows, scores.valueWidth);
  made.target.resize(rows, scores.valueWidth);
  made.cap = scores.softcap();
  if (op.getSlopes() || op.getWindow())
    made.bias.resize(entries.count(), rows);
  for (int64_t i = 0; i < repeat; ++i) {
    const int64_t head = group * repeat + i;
    made.ownResult.middleRows(i * count, count) =
        tape.rows(op.getResult()).middleCols(head * scores.valueWidth, scores.valueWidth);
    made.target.middleRows(i * count, count) =
        partOf(full->values(at.result), full->rows(), full->firstRow(firstText), count, head,
               scores.valueWidth);
  }
  const gradient::Rows &keys = tape.rows(op.getKey());
  model.steps.parallelFor()(tokens.sequences.size(), [&](int64_t begin, int64_t end) {
    for (int64_t text = begin; text < end; ++text) {
      const gradient::TapeTokens::Sequence &own = tokens.sequences[text];
      FloatMatrix ownKeys = keys.block(own.first, group * scores.width, own.count, scores.width);
      for (int64_t i = 0; i < repeat; ++i)
        addText(scores, ownKeys, text, group * repeat + i, i * count + own.first, made);
    }
  });
  return made;
}

static void append(const FloatMatrix &keys, const FloatMatrix &values, KeysAndValues &made) {
  llvm::append_range(made.keys, llvm::ArrayRef(keys.data(), keys.size()));
  llvm::append_range(made.values, llvm::ArrayRef(values.data(), values.size()));
}

static void put(llvm::ArrayRef<EntryFit> heads, KeysAndValues &made) {
  made.keys.clear();
  made.values.clear();
  for (const EntryFit &head : heads)
    append(head.keys(), head.now().values, made);
}

llvm::Error EntryFitter::fit(size_t number) {
  const SplitAttention &at = model.split.attentions[number];
  ProgramStep step = model.split.program.steps[at.step];
  xf::LayerOp layer = step.layer;
  xf::AttentionOp op = *step.block.getBody().getOps<xf::AttentionOp>().begin();
  for (Value value : {at.key, at.value, at.result})
    full->keep(value);
  if (llvm::Error error = full->runUpTo(at.step + 1))
    return error;
  if (llvm::Error error = adapted->runUpTo(at.step))
    return error;
  gradient::Tape tape(model.weights, layer, tokens, model.steps.parallelFor());
  std::vector<const std::vector<float> *> inputs;
  for (Value input : layer.getInputs())
    inputs.push_back(&adapted->values(input));
  if (llvm::Error error = tape.evaluate(step.block, inputs, op))
    return error;
  auto scores = gradient::AttentionScores::make(op, tape);
  if (!scores)
    return scores.takeError();
  KeysAndValues &made = entries.attentions[number];
  std::vector<EntryFit> heads;
  for (int64_t group = 0; group < made.heads; ++group) {
    EntryRows rows = rowsOf(op, *scores, tape, at, group);
    if (!rows.queries.allFinite() || !rows.target.allFinite() || !rows.values.allFinite() ||
        !rows.keys.allFinite())
      return makeError("what attention " + llvm::Twine(number + 1) + " reads is not finite");
    if (made.tokens < int64_t(request.context.size()))
      heads.emplace_back(std::move(rows), made.tokens, model.steps.parallelFor());
    else
      append(rows.keys, rows.values, made);
  }
  if (!heads.empty())
    if (llvm::Error error = fitHeads(number, heads))
      return error;
  auto isFinite = [](float x) { return std::isfinite(x); };
  if (!llvm::all_of(made.keys, isFinite) || !llvm::all_of(made.values, isFinite))
    return makeError("the entries of attention " + llvm::Twine(number + 1) + " are not finite");
  for (Value value : {at.key, at.value, at.result})
    full->release(value);
  return adapted->run(at.step);
}

/// What `value`, a step's result, is a reshaped form of.
static Value unshaped(const SplitModel &model, Value value) {
  for (ProgramStep step : model.split.program.steps) {
    if (value.getDefiningOp() != step.layer)
      continue;
    const unsigned number = cast<OpResult>(value).getResultNumber();
    Value inside = step.block.getBody().front().getTerminator()->getOperand(number);
    while (auto reshape = inside.getDefiningOp<xf::ReshapeOp>())
      inside = reshape.getData();
    if (auto argument = dyn_cast<BlockArgument>(inside))
      return step.layer.getInputs()[argument.getArgNumber()];
  }
  return value;
}

/// The step that computes a site's goal.
static size_t stepOfGoal(const SplitModel &model, const SplitSite &site) {
  llvm::ArrayRef<ProgramStep> steps = model.split.program.steps;
  return llvm::find_if(
             steps,
             [&](const ProgramStep &step) { return step.layer == site.goal.getDefiningOp(); }) -
         steps.begin();
}

/// That of the matrix which reads an attention's result alone, where no other attention comes
/// before it is known what the matrix should write.
std::optional<size_t> EntryFitter::siteBehind(const SplitAttention &at) const {
  for (auto [i, site] : llvm::enumerate(model.split.sites)) {
    if (site.experts || unshaped(model, site.data) != at.result)
      continue;
    const size_t goal = stepOfGoal(model, site);
    if (llvm::none_of(model.split.attentions, [&](const SplitAttention &other) {
          return other.step > at.step && other.step <= goal;
        }))
      return i;
  }
  return std::nullopt;
}

FloatMatrix EntryFitter::taught(Value value) const {
  const std::vector<float> &all = full->values(value);
  return partOf(all, full->rows(), full->firstRow(firstText), adapted->rows(), 0,
                all.size() / full->rows());
}

FloatMatrix EntryFitter::learned(Value value) const {
  const std::vector<float> &all = adapted->values(value);
  return partOf(all, adapted->rows(), 0, adapted->rows(), 0, all.size() / adapted->rows());
}

/// Behind a norm what counts is what the scale makes of an error, relative to the product's length.
llvm::Expected<MatrixBehind> EntryFitter::matrixBehind(size_t number) const {
  const SplitSite &site = model.split.sites[number];
  auto type = RankedTensorType::get(site.shape, Float32Type::get(site.goal.getContext()));
  auto stored = model.weights.get(site.matrix, type);
  if (!stored)
    return stored.takeError();
  Eigen::Map<const FloatMatrix> matrix(static_cast<const float *>(*stored), site.shape[0],
                                       site.shape[1]);
  auto wanted = targetOf(model, number, [&](Value value, bool isGoal) {
    return isGoal ? taught(value) : learned(value);
  });
  if (!wanted)
    return wanted.takeError();
  const FloatMatrix product = learned(site.product);
  MatrixBehind made{site.transposed ? FloatMatrix(matrix.transpose()) : FloatMatrix(matrix),
                    *wanted - product, Eigen::RowVectorXf::Ones(product.rows())};
  if (site.scale.empty())
    return made;
  auto scale = normScaleOf(model, site);
  if (!scale)
    return scale.takeError();
  const FloatMatrix near = taught(site.product);
  model.steps.parallelFor()(product.rows(), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const Vector nearest =
          nearestThroughNorm(wanted->row(t).transpose().cast<double>(),
                             near.row(t).transpose().cast<double>(), *scale, site.eps, request.fit);
      made.missing.row(t) = nearest.transpose().cast<float>() - product.row(t);
      made.tokenSizes[t] = 1 / std::sqrt(product.row(t).squaredNorm() / product.cols() + site.eps);
    }
  });
  const Eigen::VectorXf gain = scale->cwiseAbs().cast<float>();
  made.missing = made.tokenSizes.asDiagonal() * made.missing * gain.asDiagonal();
  made.output = gain.asDiagonal() * made.output;
  return made;
}

/// The entries of all heads together. Both runs go on to where it is known what the matrix behind
/// them should write, and that with the entries comes back.
llvm::Error EntryFitter::fitHeads(size_t number, std::vector<EntryFit> &heads) {
  const SplitAttention &at = model.split.attentions[number];
  KeysAndValues &made = entries.attentions[number];
  put(heads, made);
  std::optional<size_t> index = siteBehind(at);
  if (!index)
    return llvm::Error::success();
  const SplitSite &site = model.split.sites[*index];
  xf::LayerOp target = model.split.targets.steps[*index].layer,
              attention = model.split.program.steps[at.step].layer;
  SmallVector<Value> read(target.getInputs());
  llvm::append_range(read, attention.getInputs());
  read.push_back(site.product);
  for (Value value : read)
    adapted->keep(value);
  for (Value value : {site.goal, site.product})
    full->keep(value);
  if (llvm::Error error = full->runUpTo(stepOfGoal(model, site) + 1))
    return error;
  if (llvm::Error error = adapted->runUpTo(site.step + 1))
    return error;
  auto matrix = matrixBehind(*index);
  if (!matrix)
    return matrix.takeError();
  if (!matrix->missing.allFinite())
    return makeError(site.matrix + ": what it should write is not finite");
  fitTogether(heads, *matrix, model.steps.parallelFor());
  put(heads, made);
  adapted->goBackTo(at.step);
  for (Value value : read)
    adapted->release(value);
  for (Value value : {site.goal, site.product})
    full->release(value);
  return llvm::Error::success();
}

llvm::Expected<VirtualEntries> EntryFitter::run() {
  if (llvm::Error error = start())
    return std::move(error);
  const size_t all = model.split.attentions.size();
  tell(request.fitted, 0, all);
  for (size_t attention = 0; attention < all; ++attention) {
    if (llvm::Error error = fit(attention))
      return std::move(error);
    tell(request.fitted, attention + 1, all);
  }
  return std::move(entries);
}

} // namespace

llvm::Expected<VirtualEntries> ctxc::fitEntries(SplitModel model, const DistilRequest &request) {
  return EntryFitter(model, request).run();
}
