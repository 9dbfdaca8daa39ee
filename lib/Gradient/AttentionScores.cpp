#include "ctxc/Gradient/AttentionScores.h"
#include "Models.h"
#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Numerics/Dense.h"
#include "ctxc/Support/Error.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gradient;

AttentionScores::AttentionScores(xf::AttentionOp op, Tape &tape) : op(op), tape(tape) {
  heads = shapeOf(op.getQuery())[0];
  width = shapeOf(op.getQuery())[1];
  groups = shapeOf(op.getKey())[0];
  valueWidth = shapeOf(op.getValue())[1];
  scale = op.getScale().convertToFloat();
  cap = op.getSoftcap() ? op.getSoftcap()->convertToFloat() : 0;
}

llvm::Expected<AttentionScores> AttentionScores::make(xf::AttentionOp op, Tape &tape) {
  if (op.getBidirectional())
    return makeError("'" + op->getName().getStringRef() +
                     "' sees later tokens; this model cannot be refined");
  AttentionScores made(op, tape);
  if (op.getSinks()) {
    auto sinks = tape.parameter(op, op.getSinks());
    if (!sinks)
      return sinks.takeError();
    made.ofSinks = *sinks;
  }
  return made;
}

/// What a slope adds to a product.
static float slopeBias(float slope, int64_t position, bool isRounded) {
  if (!isRounded)
    return slope * float(position);
  auto rounded = [](float x) { return bf16ToFloat(floatToBf16(x)); };
  return rounded(rounded(slope) * rounded(float(position)));
}

float AttentionScores::slopeTerm(int64_t row, int64_t head, int64_t position) const {
  return op.getSlopes()
             ? scale * slopeBias(tape.rows(op.getSlopes())(row, head), position, op.getRounded())
             : 0;
}

std::pair<int64_t, int64_t> AttentionScores::seenBy(int64_t row) const {
  const int64_t at = tape.getTokens().positions[row];
  const int64_t window = op.getWindow() ? int64_t(tape.rows(op.getWindow())(row, 0)) : 0;
  return {window == 0 ? INT64_MIN : at - window + 1, at};
}

Rows AttentionScores::queries(int64_t first, int64_t count, int64_t head) const {
  return scale * tape.rows(op.getQuery()).block(first, head * width, count, width);
}

Rows AttentionScores::of(int64_t first, int64_t count, int64_t head, const Rows &keys,
                         ArrayRef<int32_t> positions, Rows *capped) const {
  const Rows queries = tape.rows(op.getQuery()).block(first, head * width, count, width);
  Rows scores(count, keys.rows());
  // In this thread: the heads and sequences have theirs.
  multiplyTransposed(queries.data(), count, keys.data(), keys.rows(), width, scores.data(),
                     [](int64_t rows, auto body) { body(0, rows); });
  if (op.getSlopes())
    for (int64_t i = 0; i < count; ++i)
      for (auto [j, position] : llvm::enumerate(positions))
        scores(i, j) +=
            slopeBias(tape.rows(op.getSlopes())(first + i, head), position, op.getRounded());
  scores *= scale;
  if (cap > 0) {
    scores = (scores / cap).array().tanh();
    if (capped)
      *capped = 1 - scores.array().square();
    scores *= cap;
  }
  for (int64_t i = 0; i < count; ++i) {
    auto [from, to] = seenBy(first + i);
    for (auto [j, position] : llvm::enumerate(positions))
      if (position < from || position > to)
        scores(i, j) = -HUGE_VALF;
  }
  return scores;
}
