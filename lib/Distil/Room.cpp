#include "Room.h"
#include "OtherMatrices.h"
#include "Predictions.h"
#include "TextReader.h"
#include "ctxc/Support/Memory.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace ctxc;

/// Rows of logits that are compared at once, and that predict() computes of each of two models.
constexpr uint64_t comparedTogether = 64;

namespace {

/// A part of what is needed, and what for.
struct Part {
  llvm::StringRef purpose;
  uint64_t bytes;
};

} // namespace

static llvm::Error check(const llvm::Twine &what, llvm::ArrayRef<Part> parts,
                         llvm::StringRef advice) {
  uint64_t needed = 0;
  for (const Part &part : parts)
    needed += part.bytes;
  std::optional<uint64_t> there = availableMemory();
  if (!there || needed <= *there)
    return llvm::Error::success();
  auto gigabytes = [](uint64_t bytes) { return llvm::format("%.1f GB", double(bytes) * 1e-9); };
  std::string text;
  llvm::raw_string_ostream os(text);
  os << what << " needs " << gigabytes(needed) << " of memory (";
  llvm::ListSeparator separator;
  for (const Part &part : parts)
    if (part.bytes > 0)
      os << separator << gigabytes(part.bytes) << " " << part.purpose;
  os << "), and " << gigabytes(*there) << " are free; " << advice << ", or free some memory";
  return makeError(text);
}

static uint64_t bytesOfLogits(const SplitModel &model, uint64_t rows) {
  return rows * model.split.program.vocabulary * sizeof(float);
}

static int64_t tokensIn(llvm::ArrayRef<TextSequence> texts) {
  int64_t tokens = 0;
  for (const TextSequence &text : texts)
    tokens += text.tokens.size();
  return tokens;
}

static PassageSize sizeToRead(const SplitModel &model, const Front &front,
                              llvm::ArrayRef<TextSequence> texts) {
  std::vector<PassageSequence> sequences;
  addAfter(sequences, front, texts);
  return Passage::sizeOf(model.steps, sequences);
}

/// The changed matrices, which stay beside the stored ones.
static uint64_t bytesOfSites(const SplitModel &model) {
  uint64_t numbers = 0;
  for (const SplitSite &site : model.split.sites) {
    numbers += (site.experts ? site.experts->count : 1) * site.shape[0] * site.shape[1];
    if (site.experts && site.experts->shared)
      numbers += site.experts->shared->shape[0] * site.experts->shared->shape[1];
  }
  return numbers * sizeof(float);
}

/// What the regression of a site holds at once (Ridge, fitThroughNorm).
static uint64_t bytesToSolve(const SplitModel &model, uint64_t rows) {
  uint64_t most = 0;
  for (const SplitSite &site : model.split.sites) {
    auto inputs = [](const SplitMatrix &matrix) { return matrix.shape[!matrix.transposed]; };
    uint64_t in = (site.experts ? site.experts->chosen : 1) * inputs(site);
    if (site.experts && site.experts->shared)
      in += inputs(*site.experts->shared);
    const uint64_t out = site.shape[site.transposed];
    const uint64_t side = site.experts ? rows : std::min(in, rows);
    const uint64_t floats = rows * (3 * in + 4 * out),
                   doubles = 6 * rows * out + side * side + 2 * side * out + 2 * out * out;
    most = std::max(most, floats * sizeof(float) + doubles * sizeof(double));
  }
  return most;
}

/// What the passes of gradient hold: of each token what it should predict, the variables with what
/// Adam remembers, and the values and gradients inside one layer for a group of texts.
static uint64_t bytesToRefine(const SplitModel &model, const DistilRequest &request,
                              uint64_t tokens) {
  if (request.fit.passes == 0)
    return 0;
  constexpr uint64_t predicted = 320 * (sizeof(int32_t) + sizeof(float)), ofNumber = 48,
                     group = 192;
  uint64_t numbers = 0, widest = 0, longest = 0;
  const uint64_t entries = std::min<uint64_t>(request.fit.entries, request.context.size());
  if (entries > 0)
    for (const SplitAttention &at : model.split.attentions)
      for (Value kept : {at.key, at.value})
        numbers += entries * cast<RankedTensorType>(kept.getType()).getNumElements();
  else
    for (const SplitSite &site : model.split.sites) {
      const uint64_t most = std::min(site.shape[0], site.shape[1]);
      const uint64_t rank =
          request.fit.rank == 0 ? most : std::min<uint64_t>(request.fit.rank, most);
      numbers += rank * (site.shape[0] + site.shape[1]);
    }
  uint64_t others = 0; // bytes of changed matrices that are no sites
  for (const MatrixChange &change : request.fit.otherRank > 0
                                        ? changesOfOthers(model, request.fit.otherRank)
                                        : std::vector<MatrixChange>()) {
    numbers += change.rank * (change.rows + change.columns);
    others += change.rows * change.columns * sizeof(float);
  }
  for (const TextSequence &text : request.texts)
    longest = std::max<uint64_t>(longest, text.tokens.size());
  for (auto [i, step] : llvm::enumerate(model.split.program.steps)) {
    if (model.split.program.head() == i)
      continue;
    uint64_t width = 0;
    xf::BlockOp block = step.block;
    for (Operation &op : block.getBody().front())
      for (Value value : op.getResults())
        if (auto type = dyn_cast<RankedTensorType>(value.getType()); type && !isa<xf::ParamOp>(op))
          width += type.getNumElements();
    widest = std::max(widest, width);
  }
  const uint64_t rows = request.prefix.size() + std::max(group, longest);
  return tokens * predicted + numbers * ofNumber + others + 2 * rows * widest * sizeof(float) +
         bytesOfLogits(model, 2 * comparedTogether);
}

llvm::Error ctxc::checkRoomToFit(const SplitModel &model, const DistilRequest &request,
                                 llvm::ArrayRef<PassageSequence> full,
                                 llvm::ArrayRef<PassageSequence> reduced) {
  uint64_t tokens = tokensIn(request.texts), context = request.context.size(), rows = 0;
  for (const OtherContext &other : request.others) {
    tokens += tokensIn(other.texts);
    context = std::max<uint64_t>(context, other.context.size());
  }
  for (const PassageSequence &sequence : reduced)
    rows += sequence.tokens.size();
  const uint64_t read =
      Passage::sizeOf(model.steps, full).most + Passage::sizeOf(model.steps, reduced).most;
  return check("fitting " + llvm::Twine(tokens) + " tokens of text after a context of " +
                   llvm::Twine(context) + " tokens",
               {{"while the model reads them with the context and without", read},
                {"to solve for a matrix", bytesToSolve(model, rows)},
                {"for the changed weights", bytesOfSites(model)},
                {"to refine the fit", bytesToRefine(model, request, rows)}},
               "fit fewer texts, shorten the context");
}

llvm::Error ctxc::checkRoomToFitEntries(const SplitModel &model, const DistilRequest &request,
                                        llvm::ArrayRef<PassageSequence> full,
                                        llvm::ArrayRef<PassageSequence> adapted) {
  const uint64_t tokens = tokensIn(request.texts), places = request.context.size(),
                 count = std::min<uint64_t>(request.fit.entries, places);
  auto shapeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  uint64_t written = 0; // by the matrix behind an attention, for a token
  for (const SplitSite &site : model.split.sites)
    written = std::max<uint64_t>(written, shapeOf(site.product).back());
  uint64_t head = 0, all = 0; // EntryRows and the fit beside it; the fits of all heads together
  for (const SplitAttention &at : model.split.attentions) {
    const uint64_t heads = shapeOf(at.query)[0], rows = tokens * (heads / shapeOf(at.key)[0]),
                   width = shapeOf(at.key)[1], valueWidth = shapeOf(at.value)[1],
                   weights = heads * count, results = heads * valueWidth;
    head = std::max(head, rows * (2 * places + 10 * count + 4 * width + 9 * valueWidth));
    all = std::max(all, tokens * (2 * heads * width + 6 * (weights + results) + 4 * written) +
                            4 * written * results +
                            2 * (weights * weights + results * results + weights * written));
  }
  return check(
      "fitting entries to " + llvm::Twine(tokens) + " tokens of text after a context of " +
          llvm::Twine(places) + " tokens",
      {{"while the model reads them with the context and with the entries",
        Passage::sizeOf(model.steps, full).most + Passage::sizeOf(model.steps, adapted).most},
       {"for what a head reads", head * sizeof(float)},
       {"for all heads together", all * sizeof(float)},
       {"to refine the fit", bytesToRefine(model, request, tokens)}},
      "fit fewer texts, shorten the context");
}

llvm::Error ctxc::checkRoomToRead(const SplitModel &model, const Front &front,
                                  llvm::ArrayRef<TextSequence> texts, size_t logits) {
  return check("choosing what to keep of a context of " + llvm::Twine(front.tokens.size()) +
                   " tokens, by " + llvm::Twine(tokensIn(texts)) + " tokens of text,",
               {{"while the model reads them", sizeToRead(model, front, texts).most},
                {"for logits", bytesOfLogits(model, logits)}},
               "fit fewer texts, shorten the context");
}

llvm::Error ctxc::checkRoomToSample(const SplitModel &model, const Front &front, size_t texts,
                                    uint64_t kept) {
  const uint64_t context = front.tokens.size() * Passage::bytesPerToken(model.steps);
  return check("writing texts after a context of " + llvm::Twine(front.tokens.size()) + " tokens",
               {{"while the model reads it", sizeToRead(model, front, {}).most},
                {"for what tokens leave behind", context + kept},
                {"for logits", bytesOfLogits(model, texts)}},
               "shorten the context");
}

llvm::Error ctxc::checkRoomToEvaluate(const SplitModel &model, const EvaluateRequest &request,
                                      bool keeps, const Adapter *adapter) {
  Front prefix = request.context;
  if (adapter)
    prefix = adapter->entries.empty() ? Front(adapter->prefix) : Front(adapter->entries);
  uint64_t changed = adapter ? 0 : bytesOfSites(model), read = 0, known = 0;
  if (adapter)
    for (const MatrixChange &change : adapter->matrices)
      changed += change.rows * change.columns * sizeof(float);
  for (bool isUnrelated : {false, true}) {
    llvm::ArrayRef<TextSequence> texts = isUnrelated ? request.unrelated : request.texts;
    if (texts.empty())
      continue;
    const PassageSize full = sizeToRead(model, request.context, texts),
                      plain = sizeToRead(model, request.front, texts),
                      adapted = sizeToRead(model, prefix, texts);
    const uint64_t own =
        std::max({full.most, full.rest + plain.most, full.rest + plain.rest + adapted.most});
    read = std::max(read, known + own);
    if (keeps) // both models wait for the next adapter
      known += full.rest + plain.rest + bytesOfLogits(model, predictionsOf(texts).size());
  }
  return check("judging an adapter on " +
                   llvm::Twine(tokensIn(request.texts) + tokensIn(request.unrelated)) +
                   " tokens of text after a context of " + llvm::Twine(request.context.size()) +
                   " tokens",
               {{"while the models read them", std::max(read, known)},
                {"for logits", bytesOfLogits(model, 3 * comparedTogether)},
                {"for the changed weights", changed}},
               "judge by fewer texts, shorten the context");
}

llvm::Error ctxc::checkRoomToEvaluate(SplitModel model, const EvaluateRequest &request,
                                      const Adapter *adapter) {
  return checkRoomToEvaluate(model, request, /*keeps=*/false, adapter);
}
