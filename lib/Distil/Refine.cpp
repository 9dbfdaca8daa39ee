#include "Refine.h"
#include "Groups.h"
#include "OtherMatrices.h"
#include "TextReader.h"
#include "Variable.h"
#include "ctxc/Gradient/Tape.h"

using namespace mlir;
using namespace ctxc;
using gradient::Rows;
using gradient::Tape;

namespace {

class Refiner {
public:
  Refiner(SplitModel model, const DistilRequest &request, Distilled &distilled)
      : model(model), request(request), adapter(distilled.adapter), distilled(distilled),
        weights(model.weights), program(model.split.program) {}
  llvm::Error run();

private:
  llvm::Error start();
  llvm::Error addGroups(const Front &context, llvm::ArrayRef<TextSequence> texts,
                        llvm::ArrayRef<TextSequence> choosingTexts);
  llvm::Expected<Groups> groupsOf(llvm::ArrayRef<TextSequence> texts, const Front &truthAfter,
                                  size_t most, double weight);
  llvm::Expected<Group> groupOf(llvm::ArrayRef<TextSequence> texts, const Front &truthAfter);
  llvm::Error pass(int64_t number);
  void move(int64_t step, int64_t steps);
  llvm::Expected<double> judge();
  size_t firstStep() const;
  std::optional<size_t> entriesOf(size_t step) const;
  llvm::Expected<Passage> read(const Group &group, size_t first);
  llvm::Expected<double> pullBack(const Group &group);
  llvm::Expected<double> pullThroughHead(const Group &group, const Passage &passage);
  llvm::Error pullThrough(size_t step, const Group &group, const Passage &passage);
  void addFactors(llvm::StringRef matrix, Eigen::Ref<const Rows> data,
                  Eigen::Ref<const Rows> ofProduct);
  void addFactors(const SplitSite &site, const Passage &passage);
  void add(Value value, const Rows &rows);

  SplitModel model;
  const DistilRequest &request;
  Adapter &adapter;
  Distilled &distilled;
  AdaptedWeights weights;
  std::optional<OwnedFront> prefix;
  const Program &program;
  size_t head = 0;
  Groups fitted, still, choosing;      ///< `still`: what should not change
  size_t turn = 0;                     ///< of `still`
  std::vector<Variable> lefts, rights; ///< of the adapter's matrices
  llvm::StringMap<size_t> numberOf;    ///< of a matrix in the adapter
  size_t sites = 0;                    ///< so many of these matrices are sites, the first ones
  llvm::StringMap<Variable> vectors;
  std::vector<Variable> keys, values; ///< of the adapter's entries, attention by attention
  llvm::DenseMap<Value, Rows> gradients;
};

llvm::Expected<Group> Refiner::groupOf(llvm::ArrayRef<TextSequence> texts,
                                       const Front &truthAfter) {
  auto full = TextReader::read(model, model.weights, truthAfter, texts);
  if (!full)
    return full.takeError();
  auto student = TextReader::read(model, weights, prefix->get(), texts);
  if (!student)
    return student.takeError();
  Group group;
  size_t first = addAfter(group.sequences, prefix->get(), texts);
  group.tokens = tokensOf(group.sequences);
  const int64_t at = group.tokens.ids.size();
  const int64_t front = student->passage.firstRow(first);
  group.weights.assign(front, 0);
  auto truth = predict(full->passage, full->firstRow(0), student->passage, front, at,
                       model.steps.parallelFor());
  if (!truth)
    return truth.takeError();
  group.truth = std::move(*truth);
  return group;
}

/// Texts together up to about `most` tokens; a token of a group has its share of `weight`.
llvm::Expected<Groups> Refiner::groupsOf(llvm::ArrayRef<TextSequence> texts,
                                         const Front &truthAfter, size_t most, double weight) {
  Groups groups;
  while (!texts.empty()) {
    size_t count = 0, tokens = 0;
    while (count < texts.size() && (count == 0 || tokens + texts[count].tokens.size() <= most))
      tokens += texts[count++].tokens.size();
    auto group = groupOf(texts.take_front(count), truthAfter);
    if (!group)
      return group.takeError();
    // rows before have 0
    group->weights.insert(group->weights.end(), tokens, weight / std::max<size_t>(tokens, 1));
    groups.push_back(std::move(*group));
    texts = texts.drop_front(count);
  }
  return std::move(groups);
}

void Refiner::add(Value value, const Rows &rows) {
  auto [found, isNew] = gradients.try_emplace(value, rows);
  if (!isNew)
    found->second += rows;
  if (const PinnedTokens *pinned = prefix->get().pinned) // whose values do not change
    found->second.topRows(pinned->tokens.size()).setZero();
}

/// The matrix that makes the logits; what follows it acts on each of them by itself.
static xf::LinearOp logitsMatrix(Value logits) {
  while (Operation *op = logits.getDefiningOp()) {
    if (auto linear = dyn_cast<xf::LinearOp>(op))
      return linear;
    if (op->getNumOperands() == 0)
      break;
    logits = op->getOperand(0);
  }
  return nullptr;
}

static std::vector<const std::vector<float> *> inputsOf(xf::LayerOp layer, const Passage &passage) {
  std::vector<const std::vector<float> *> inputs;
  for (Value input : layer.getInputs())
    inputs.push_back(&passage.values(input));
  return inputs;
}

/// The loss of a group; its gradient is pulled back to what the head reads.
llvm::Expected<double> Refiner::pullThroughHead(const Group &group, const Passage &passage) {
  xf::LayerOp layer = program.steps[head].layer;
  xf::BlockOp block = program.steps[head].block;
  const unsigned number = cast<OpResult>(program.logits()).getResultNumber();
  Value logits = block.getBody().front().getTerminator()->getOperand(number);
  xf::LinearOp matrix = logitsMatrix(logits);
  if (!matrix)
    return makeError("no matrix makes the logits; this model cannot be refined");
  Tape tape(weights, layer, group.tokens, model.steps.parallelFor());
  tape.choose(matrix, group.truth.tokens);
  if (llvm::Error error = tape.evaluate(block, inputsOf(layer, passage)))
    return std::move(error);
  Rows gradient = tape.output(number);
  const double loss = pullBackDivergence(group.truth, group.weights, gradient);
  std::vector<const Rows *> ofOutputs(layer.getOutputs().size());
  ofOutputs[number] = &gradient;
  if (llvm::Error error = tape.pullBack(ofOutputs))
    return std::move(error);
  for (auto [i, input] : llvm::enumerate(layer.getInputs()))
    if (const Rows *rows = tape.ofInput(i))
      add(input, *rows);
  return loss;
}

llvm::Error Refiner::pullThrough(size_t step, const Group &group, const Passage &passage) {
  xf::LayerOp layer = program.steps[step].layer;
  std::vector<const Rows *> ofOutputs;
  for (Value output : layer.getOutputs()) {
    auto found = gradients.find(output);
    ofOutputs.push_back(found == gradients.end() ? nullptr : &found->second);
  }
  if (llvm::none_of(ofOutputs, [](const Rows *rows) { return rows; }))
    return llvm::Error::success();
  Tape tape(weights, layer, group.tokens, model.steps.parallelFor());
  const std::optional<size_t> read = entriesOf(step);
  if (read)
    tape.setEntries(adapter.entries.attentions[*read]);
  for (const VectorChange &change : adapter.vectors)
    tape.requestGradient(change.parameter);
  if (sites < adapter.matrices.size())
    tape.tellProducts([&](llvm::StringRef matrix, auto data, auto ofProduct) {
      if (numberOf.lookup(matrix) >= sites)
        addFactors(matrix, data, ofProduct);
    });
  if (llvm::Error error = tape.evaluateInside(program.steps[step].block, inputsOf(layer, passage)))
    return error;
  if (llvm::Error error = tape.pullBack(ofOutputs))
    return error;
  if (read) {
    keys[*read].add(tape.ofEntries().keys);
    values[*read].add(tape.ofEntries().values);
  }
  for (const auto &sum : tape.ofParameters())
    if (sum.second.size())
      vectors.find(sum.first())->second.add(sum.second);
  for (Value output : layer.getOutputs())
    gradients.erase(output);
  for (auto [i, input] : llvm::enumerate(layer.getInputs()))
    if (const Rows *rows = tape.ofInput(i))
      add(input, *rows);
  return llvm::Error::success();
}

/// The gradients of a changed matrix' factors, from those of its product.
void Refiner::addFactors(llvm::StringRef matrix, Eigen::Ref<const Rows> data,
                         Eigen::Ref<const Rows> ofProduct) {
  auto found = numberOf.find(matrix);
  if (found == numberOf.end())
    return;
  const size_t i = found->second;
  const MatrixChange &change = adapter.matrices[i];
  Eigen::Map<const Rows> left(change.left.data(), change.rows, change.rank);
  Eigen::Map<const Rows> right(change.right.data(), change.rank, change.columns);
  if (change.inFirst) { // y = h left right, else y = left right h
    lefts[i].add(Rows(data.transpose() * Rows(ofProduct * right.transpose())));
    rights[i].add(Rows(Rows(data * left).transpose() * ofProduct));
  } else {
    lefts[i].add(Rows(ofProduct.transpose() * Rows(data * right.transpose())));
    rights[i].add(Rows(Rows(ofProduct * left).transpose() * data));
  }
}

void Refiner::addFactors(const SplitSite &site, const Passage &passage) {
  auto found = gradients.find(site.product);
  if (found == gradients.end())
    return;
  const std::vector<float> &values = passage.values(site.data);
  const int64_t rows = passage.rows();
  addFactors(site.matrix, Eigen::Map<const Rows>(values.data(), rows, values.size() / rows),
             found->second);
}

/// The first step that reads something that the passes change.
size_t Refiner::firstStep() const {
  return adapter.entries.empty() ? model.split.sites.front().step
                                 : model.split.attentions.front().step;
}

/// The number of the entries that this step reads, if it is an attention.
std::optional<size_t> Refiner::entriesOf(size_t step) const {
  for (size_t number = 0; number < adapter.entries.attentions.size(); ++number)
    if (model.split.attentions[number].step == step)
      return number;
  return std::nullopt;
}

/// Has read the group up to the head, and keeps what layers from step `first` on read.
llvm::Expected<Passage> Refiner::read(const Group &group, size_t first) {
  auto passage = Passage::start(model.steps, weights, group.sequences);
  if (!passage)
    return passage.takeError();
  for (size_t step = first; step <= head; ++step)
    for (Value input : program.steps[step].layer->getOperands())
      passage->keep(input);
  if (llvm::Error error = passage->runUpTo(head))
    return std::move(error);
  gradients.clear();
  return passage;
}

/// Adds a group's gradient to the variables'. Returns its loss.
llvm::Expected<double> Refiner::pullBack(const Group &group) {
  const size_t first = firstStep();
  auto passage = read(group, first);
  if (!passage)
    return passage.takeError();
  auto loss = pullThroughHead(group, *passage);
  if (!loss)
    return loss;
  for (size_t step = head; step-- > first;) {
    for (const SplitSite &site : model.split.sites)
      if (site.step == step)
        addFactors(site, *passage);
    if (step > first || !adapter.entries.empty())
      if (llvm::Error error = pullThrough(step, group, *passage))
        return std::move(error);
  }
  return loss;
}

/// The mean divergence over the tokens of the texts that choose; of those that are fitted, where
/// there are no others.
llvm::Expected<double> Refiner::judge() {
  double sum = 0, tokens = 0;
  for (const Group &group : choosing.empty() ? fitted : choosing) {
    auto passage = read(group, head);
    if (!passage)
      return passage.takeError();
    auto mean = pullThroughHead(group, *passage);
    if (!mean)
      return mean;
    const double own = llvm::count_if(group.weights, [](double weight) { return weight > 0; });
    sum += own * *mean;
    tokens += own;
  }
  if (!std::isfinite(sum))
    return makeError("the divergence of the refined model is not finite");
  return sum / tokens;
}

/// Step `step` of `steps`, from 0 on. The first ones are short where there was no change before:
/// Adam takes whole steps as soon as it has seen one gradient.
void Refiner::move(int64_t step, int64_t steps) {
  const double length = 1 - double(step) / steps;
  const double ofOthers = std::min((step + 1) / std::max(steps / 8., 1.), length);
  for (auto [i, left, right] : llvm::enumerate(lefts, rights)) {
    left.move(step + 1, i < sites ? length : ofOthers);
    right.move(step + 1, i < sites ? length : ofOthers);
  }
  for (auto &vector : vectors)
    vector.second.move(step + 1, length);
  for (std::vector<Variable> *entries : {&keys, &values})
    for (Variable &ofAttention : *entries)
      ofAttention.move(step + 1, length);
}

/// A step for each group of the texts, with one of what should not change beside it.
llvm::Error Refiner::pass(int64_t number) {
  const int64_t steps = fitted.size();
  for (auto [i, texts] : llvm::enumerate(fitted)) {
    Group group = texts;
    if (!still.empty())
      append(group, still[turn++ % still.size()], !request.prefix.empty());
    auto loss = pullBack(group);
    if (!loss)
      return loss.takeError();
    if (!std::isfinite(*loss))
      return makeError("the loss of pass " + llvm::Twine(number + 1) +
                       " of the refinement is not finite; expected fewer passes");
    const int64_t step = number * steps + i;
    move(step, steps * request.fit.passes);
    if (llvm::Error error = weights.add(adapter))
      return error;
    // The last step is told when the last pass is judged.
    tell(request.stepped, std::min(step + 1, steps * request.fit.passes - 1),
         steps * request.fit.passes);
  }
  return llvm::Error::success();
}

// Small groups: many short steps go further than a few long ones of the same cost.
static constexpr size_t together = 128, atOnce = 1024;

/// Adds a context's texts. A pass takes those of several contexts by turns, since what it learns
/// last it knows best.
llvm::Error Refiner::addGroups(const Front &context, llvm::ArrayRef<TextSequence> texts,
                               llvm::ArrayRef<TextSequence> choosingTexts) {
  auto own = groupsOf(texts, context, together, 1),
       chooses = groupsOf(choosingTexts, context, atOnce, 1);
  if (!own || !chooses)
    return llvm::joinErrors(own.takeError(), chooses.takeError());
  std::move(chooses->begin(), chooses->end(), std::back_inserter(choosing));
  takeByTurns(fitted, std::move(*own));
  return llvm::Error::success();
}

llvm::Error Refiner::start() {
  if (!program.head())
    return makeError("the model has no head that gives each token's logits by itself; it cannot be "
                     "refined");
  head = *program.head();
  double typical = 0; // of what a site's change is made of
  for (MatrixChange &change : adapter.matrices) {
    balance(change);
    typical += rootMeanSquare(change.left) / adapter.matrices.size();
  }
  sites = adapter.matrices.size();
  if (request.fit.otherRank > 0)
    llvm::append_range(adapter.matrices, changesOfOthers(model, request.fit.otherRank));
  if (llvm::Error error = weights.add(adapter))
    return error;
  for (MatrixChange &change : adapter.matrices) {
    numberOf[change.parameter] = lefts.size();
    lefts.emplace_back(change.left, request.fit.rate, typical);
    rights.emplace_back(change.right, request.fit.rate, typical);
  }
  for (VectorChange &change : adapter.vectors)
    vectors.try_emplace(change.parameter, change.delta, request.fit.rate);
  constexpr double ofEntries = 0.25; // longer steps fit the texts, and little else
  for (KeysAndValues &ofAttention : adapter.entries.attentions) {
    keys.emplace_back(ofAttention.keys, ofEntries * request.fit.rate);
    values.emplace_back(ofAttention.values, ofEntries * request.fit.rate);
  }
  if (llvm::Error error = OwnedFront::make(model, adapter).moveInto(prefix))
    return error;
  if (llvm::Error error = addGroups(request.context, request.texts, request.choosing))
    return error;
  for (const OtherContext &other : request.others)
    if (llvm::Error error = addGroups(other.context, other.texts, other.choosing))
      return error;
  // Entries do to any text what the context does.
  if (request.protection <= 0 || !adapter.entries.empty())
    return llvm::Error::success();
  return groupsOf(request.unrelated, plainFront(request), together / 2, request.protection)
      .moveInto(still);
}

llvm::Error Refiner::run() {
  if (llvm::Error error = start())
    return error;
  // Passes without a better one. On the texts that are fitted, shorter steps may make up for these.
  const int64_t passes = request.fit.passes, patience = choosing.empty() ? passes : 3;
  auto before = judge();
  if (!before)
    return before.takeError();
  distilled.divergenceBefore = distilled.divergenceAfter = *before;
  Adapter best = adapter;
  const int64_t steps = fitted.size() * passes;
  tell(request.stepped, 0, steps);
  for (int64_t number = 0; number < passes && number < distilled.passes + patience; ++number) {
    if (llvm::Error error = pass(number))
      return error;
    auto now = judge();
    if (!now)
      return now.takeError();
    if (*now >= distilled.divergenceAfter)
      continue;
    distilled.divergenceAfter = *now;
    distilled.passes = number + 1;
    best = adapter;
  }
  tell(request.stepped, steps, steps);
  adapter = std::move(best);
  return llvm::Error::success();
}

} // namespace

llvm::Error ctxc::refine(SplitModel model, const DistilRequest &request, Distilled &distilled) {
  return Refiner(model, request, distilled).run();
}
