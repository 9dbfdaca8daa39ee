// Which tokens of a context stay in front.
#include "Groups.h"
#include "Room.h"
#include "TextReader.h"
#include "llvm/ADT/DenseMap.h"

using namespace ctxc;

namespace {

/// So many rows of logits, as wide as the vocabulary, at once.
constexpr size_t rowsTogether = 32;

using Nats = std::vector<double>;

/// The logarithm of each prediction's probability.
llvm::Expected<Nats> logarithms(TextReader &reader, llvm::ArrayRef<Prediction> predictions) {
  Nats all;
  for (size_t from = 0; from < predictions.size(); from += rowsTogether) {
    auto some = predictions.slice(from, std::min(rowsTogether, predictions.size() - from));
    auto rows = llvm::map_to_vector(
        some, [&](const Prediction &p) { return reader.firstRow(p.text) + p.row; });
    auto logits = reader.passage.logits(rows);
    if (!logits)
      return logits.takeError();
    const size_t width = logits->size() / rows.size();
    for (auto [i, prediction] : llvm::enumerate(some)) {
      Distribution found(llvm::ArrayRef(*logits).slice(i * width, width));
      if (!found.isFinite())
        return makeError("the logits of a token of the text are not finite");
      all.push_back(found[prediction.next]);
    }
  }
  return all;
}

/// How much each token of the context surprises the model; 0 for those in front.
llvm::Expected<Nats> surprises(const SplitModel &model, llvm::ArrayRef<int64_t> context,
                               int64_t front) {
  auto reader = TextReader::read(model, model.weights, {}, TextSequence{context.vec(), 0});
  if (!reader)
    return reader.takeError();
  std::vector<Prediction> predictions;
  for (int64_t at = std::max<int64_t>(front, 1); at < int64_t(context.size()); ++at)
    predictions.push_back({0, at - 1, context[at]});
  auto found = logarithms(*reader, predictions);
  if (!found)
    return found.takeError();
  Nats scores(context.size());
  for (auto [prediction, logarithm] : llvm::zip(predictions, *found))
    scores[prediction.row + 1] = -logarithm;
  return scores;
}

/// For each token of the context, by how many nats the context makes the same token of the texts'
/// answers more likely, all of them together, divided among the places of that token.
llvm::Expected<Nats> copies(const SplitModel &model, llvm::ArrayRef<int64_t> context, int64_t front,
                            llvm::ArrayRef<TextSequence> texts) {
  llvm::DenseMap<int64_t, std::vector<size_t>> places;
  for (size_t at = front; at < context.size(); ++at)
    places[context[at]].push_back(at);
  std::vector<Prediction> predictions = predictionsOf(texts);
  llvm::erase_if(predictions, [&](const Prediction &p) { return !places.contains(p.next); });
  Nats scores(context.size());
  if (predictions.empty())
    return scores;
  Nats found[2];
  for (bool isFull : {false, true}) {
    auto reader =
        TextReader::read(model, model.weights, isFull ? context : context.take_front(front), texts);
    if (!reader)
      return reader.takeError();
    if (llvm::Error error = logarithms(*reader, predictions).moveInto(found[isFull]))
      return std::move(error);
  }
  for (auto [prediction, plain, full] : llvm::zip(predictions, found[0], found[1])) {
    const std::vector<size_t> &same = places[prediction.next];
    for (size_t at : same)
      scores[at] += std::max(full - plain, 0.0) / same.size();
  }
  return scores;
}

/// `scores`, so that their mean is one.
void divideByMean(Nats &scores) {
  double sum = 0;
  for (double score : scores)
    sum += score;
  if (sum > 0)
    for (double &score : scores)
      score *= scores.size() / sum;
}

} // namespace

llvm::Expected<std::vector<double>> ctxc::tellingScores(SplitModel model,
                                                        llvm::ArrayRef<int64_t> context,
                                                        int64_t front,
                                                        llvm::ArrayRef<TextSequence> texts) {
  if (llvm::Error error = checkRoomToRead(model, context, texts, rowsTogether))
    return std::move(error);
  auto surprise = surprises(model, context, front), copied = copies(model, context, front, texts);
  if (!surprise || !copied)
    return llvm::joinErrors(surprise.takeError(), copied.takeError());
  divideByMean(*surprise);
  divideByMean(*copied);
  for (auto [score, more] : llvm::zip(*surprise, *copied))
    score += more;
  if (front == 0 && !surprise->empty())
    surprise->front() = INFINITY;
  return surprise;
}

/// How much attention reads of each token of the context, for the texts of one group.
static llvm::Error addReads(const SplitModel &model, llvm::ArrayRef<int64_t> context,
                            llvm::ArrayRef<TextSequence> texts, Eigen::VectorXd &scores) {
  std::vector<PassageSequence> sequences;
  addAfter(sequences, context, texts);
  gradient::TapeTokens tokens = tokensOf(sequences);
  auto passage = Passage::start(model.steps, model.weights, std::move(sequences));
  if (!passage)
    return passage.takeError();
  Eigen::VectorXd reads = Eigen::VectorXd::Zero(passage->rows());
  const Program &program = model.split.program;
  for (size_t step = 0, end = program.head().value_or(program.steps.size()); step < end; ++step) {
    xf::LayerOp layer = program.steps[step].layer;
    xf::BlockOp block = program.steps[step].block;
    if (!block.getBody().getOps<xf::AttentionOp>().empty()) {
      gradient::Tape tape(model.weights, layer, tokens, model.steps.parallelFor());
      tape.countReads(reads);
      std::vector<const std::vector<float> *> inputs;
      for (mlir::Value input : layer.getInputs())
        inputs.push_back(&passage->values(input));
      if (llvm::Error error = tape.evaluate(block, inputs))
        return makeError("how much attention reads of each token of the context is not known: " +
                         llvm::toString(std::move(error)));
    }
    if (llvm::Error error = passage->run(step))
      return error;
  }
  scores += reads.head(context.size());
  return llvm::Error::success();
}

llvm::Expected<std::vector<double>> ctxc::readScores(SplitModel model,
                                                     llvm::ArrayRef<int64_t> context, int64_t front,
                                                     llvm::ArrayRef<TextSequence> texts) {
  constexpr size_t tokensTogether = 1024;
  Eigen::VectorXd scores = Eigen::VectorXd::Zero(context.size());
  while (!texts.empty()) {
    size_t count = 0, tokens = 0;
    while (count < texts.size() &&
           (count == 0 || tokens + texts[count].tokens.size() <= tokensTogether))
      tokens += texts[count++].tokens.size();
    if (llvm::Error error = checkRoomToRead(model, context, texts.take_front(count), /*logits=*/0))
      return std::move(error);
    if (llvm::Error error = addReads(model, context, texts.take_front(count), scores))
      return std::move(error);
    texts = texts.drop_front(count);
  }
  // What precedes a text predicts its first token, and attention rests on the very first one.
  scores[context.size() - 1] = INFINITY;
  if (front == 0)
    scores[0] = INFINITY;
  return std::vector<double>(scores.begin(), scores.end());
}

std::vector<int64_t> ctxc::mostTelling(llvm::ArrayRef<double> scores, int64_t front, int64_t count,
                                       llvm::ArrayRef<int64_t> starts) {
  auto single = llvm::seq<int64_t>(front, scores.size());
  std::vector<int64_t> bounds(single.begin(), single.end());
  if (!starts.empty())
    bounds = starts;
  bounds.push_back(scores.size());
  using Unit = std::tuple<double, int64_t, int64_t>; // negative, so that the largest comes first
  std::vector<Unit> units;
  for (auto [from, end] : llvm::zip(bounds, llvm::drop_begin(bounds))) {
    double sum = 0;
    for (double score : scores.slice(from, end - from))
      sum += score;
    units.push_back({-sum / (end - from), from, end});
  }
  llvm::sort(units);
  std::vector<int64_t> places;
  for (auto [score, from, end] : units)
    if (int64_t(places.size()) + end - from <= count)
      llvm::append_range(places, llvm::seq(from, end));
  llvm::sort(places);
  return places;
}
