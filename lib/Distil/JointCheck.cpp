// What a joint patch gives, beside the full run and the run without either.
#include "JointRuns.h"
#include "ctxc/Support/Error.h"
#include <cmath>

using namespace ctxc;

using Numbers = std::vector<float>;

llvm::Expected<size_t> ctxc::headOf(const SplitModel &model) {
  if (std::optional<size_t> head = model.split.program.head())
    return *head;
  return makeError("the model has no head that gives each token's logits by itself");
}

namespace {

/// Three runs up to the head.
struct ThreeRuns {
  Passage full, patched, plain;
};

} // namespace

static llvm::Expected<ThreeRuns> readAll(SplitModel model, const JointChanges &changes,
                                         const JointRequest &request) {
  auto head = headOf(model);
  if (!head)
    return head.takeError();
  auto start = [&](std::vector<PassageSequence> sequences) {
    return Passage::start(model.steps, model.weights, std::move(sequences));
  };
  auto full = start(behindContext(request)), patched = start(behindPrefix(request)),
       plain = start(behindPrefix(request));
  if (!full || !patched || !plain)
    return llvm::joinErrors(llvm::joinErrors(full.takeError(), patched.takeError()),
                            plain.takeError());
  if (llvm::Error error = full->runUpTo(*head))
    return std::move(error);
  if (llvm::Error error = changes.runUpTo(model.split, *patched, *head))
    return std::move(error);
  if (llvm::Error error = plain->runUpTo(*head))
    return std::move(error);
  return ThreeRuns{std::move(*full), std::move(*patched), std::move(*plain)};
}

/// The difference of two rows of logits; infinite where one is no number.
static double largestDifference(const Numbers &a, const Numbers &b) {
  double most = 0;
  for (auto [x, y] : llvm::zip(a, b))
    most = std::isfinite(y) ? std::max<double>(most, std::abs(double(x) - y)) : HUGE_VAL;
  return most;
}

llvm::Expected<JointCheck> ctxc::compareRuns(SplitModel model, const JointChanges &changes,
                                             const JointRequest &request) {
  auto runs = readAll(model, changes, request);
  if (!runs)
    return runs.takeError();
  int64_t count = 0;
  for (const TextSequence &text : request.texts)
    count += text.tokens.size();
  auto logitsOf = [&](Passage &run, int64_t row) { return run.logits(run.rows() - count + row); };
  JointCheck check;
  int64_t next = 0;
  for (auto [text, sequence] : llvm::enumerate(request.texts))
    for (int64_t row = 0; row < int64_t(sequence.tokens.size()); ++row, ++next) {
      auto truth = logitsOf(runs->full, next), found = logitsOf(runs->patched, next),
           other = logitsOf(runs->plain, next);
      if (!truth || !found || !other)
        return llvm::joinErrors(llvm::joinErrors(truth.takeError(), found.takeError()),
                                other.takeError());
      ++check.tokens;
      if (double own = largestDifference(*truth, *found); own > check.difference) {
        check.difference = own;
        check.text = text;
        check.at = row;
      }
      check.control = std::max(check.control, largestDifference(*truth, *other));
      check.agree += argmax(*truth) == argmax(*found);
      check.agreeControl += argmax(*truth) == argmax(*other);
    }
  return check;
}
