// The gradient of attention: each sequence by itself, with the keys of those that it continues.
#include "Models.h"
#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Support/Error.h"
#include <cmath>

using namespace mlir;

namespace ctxc::gradient {
namespace {

/// The keys' rows that a sequence's queries may see, in order.
std::vector<int64_t> keyRows(const TapeTokens &tokens, size_t number) {
  std::vector<int64_t> rows;
  const TapeTokens::Sequence &sequence = tokens.sequences[number];
  if (sequence.after)
    rows = keyRows(tokens, *sequence.after);
  for (int64_t i = 0; i < sequence.count; ++i)
    rows.push_back(sequence.first + i);
  return rows;
}

class Attention {
public:
  static llvm::Expected<Attention> make(xf::AttentionOp op, Tape &tape) {
    if (op.getBidirectional())
      return makeError("'" + op->getName().getStringRef() +
                       "' sees later tokens; this model cannot be refined");
    Attention made(op, tape);
    if (op.getSinks()) {
      auto sinks = tape.parameter(op, op.getSinks());
      if (!sinks)
        return sinks.takeError();
      made.sinks = *sinks;
    }
    return made;
  }

  Rows evaluate();
  void addReads(Eigen::VectorXd &reads);
  void pullBack();

private:
  Attention(xf::AttentionOp op, Tape &tape) : op(op), tape(tape) {
    heads = shapeOf(op.getQuery())[0];
    width = shapeOf(op.getQuery())[1];
    groups = shapeOf(op.getKey())[0];
    valueWidth = shapeOf(op.getValue())[1];
    scale = op.getScale().convertToFloat();
    cap = op.getSoftcap() ? op.getSoftcap()->convertToFloat() : 0;
  }
  Rows gather(const Rows &all, ArrayRef<int64_t> rows, int64_t head, int64_t size) const {
    Rows some(rows.size(), size);
    for (auto [i, row] : llvm::enumerate(rows))
      some.row(i) = all.row(row).segment(head * size, size);
    return some;
  }
  /// A sequence's queries of a head, from its rows.
  auto queries(const Rows &all, const TapeTokens::Sequence &s, int64_t head, int64_t size) const {
    return all.block(s.first, head * size, s.count, size);
  }
  /// What a slope adds to a product.
  float slopeBias(float slope, int64_t position) const {
    if (!op.getRounded())
      return slope * float(position);
    auto rounded = [](float x) { return bf16ToFloat(floatToBf16(x)); };
    return rounded(rounded(slope) * rounded(float(position)));
  }
  /// The softmax's weights (queries × keys); `capped` has what each score is multiplied by in the
  /// derivative of the cap.
  Rows weights(const TapeTokens::Sequence &s, ArrayRef<int64_t> keys, int64_t head, const Rows &k,
               Rows *capped) const;

  mutable xf::AttentionOp op; // its accessors are not const
  Tape &tape;
  const float *sinks = nullptr;
  int64_t heads, width, groups, valueWidth;
  float scale, cap;
};

Rows Attention::weights(const TapeTokens::Sequence &s, ArrayRef<int64_t> keys, int64_t head,
                        const Rows &k, Rows *capped) const {
  ArrayRef<int32_t> positions = tape.getTokens().positions;
  Rows scores = queries(tape.rows(op.getQuery()), s, head, width) * k.transpose();
  if (op.getSlopes())
    for (int64_t i = 0; i < s.count; ++i)
      for (auto [j, key] : llvm::enumerate(keys))
        scores(i, j) += slopeBias(tape.rows(op.getSlopes())(s.first + i, head), positions[key]);
  scores *= scale;
  if (cap > 0) {
    scores = (scores / cap).array().tanh();
    if (capped)
      *capped = 1 - scores.array().square();
    scores *= cap;
  }
  for (int64_t i = 0; i < s.count; ++i) {
    const int64_t at = positions[s.first + i];
    const int64_t window = op.getWindow() ? int64_t(tape.rows(op.getWindow())(s.first + i, 0)) : 0;
    float largest = sinks ? sinks[head] : -HUGE_VALF;
    auto isSeen = [&](size_t j) {
      const int64_t position = positions[keys[j]];
      return position <= at && (window == 0 || at - position < window);
    };
    for (size_t j = 0; j < keys.size(); ++j)
      if (isSeen(j))
        largest = std::max(largest, scores(i, j));
    double sum = sinks ? std::exp(sinks[head] - largest) : 0;
    for (size_t j = 0; j < keys.size(); ++j) {
      scores(i, j) = isSeen(j) ? std::exp(scores(i, j) - largest) : 0;
      sum += scores(i, j);
    }
    scores.row(i) /= float(sum);
  }
  return scores;
}

Rows Attention::evaluate() {
  const TapeTokens &tokens = tape.getTokens();
  Rows result(tape.count(), heads * valueWidth);
  tape.getThreads()(tokens.sequences.size(), [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const TapeTokens::Sequence &s = tokens.sequences[number];
      std::vector<int64_t> keys = keyRows(tokens, number);
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t group = head * groups / heads;
        Rows k = gather(tape.rows(op.getKey()), keys, group, width);
        Rows v = gather(tape.rows(op.getValue()), keys, group, valueWidth);
        result.block(s.first, head * valueWidth, s.count, valueWidth) =
            weights(s, keys, head, k, nullptr) * v;
      }
    }
  });
  return result;
}

void Attention::addReads(Eigen::VectorXd &reads) {
  const TapeTokens &tokens = tape.getTokens();
  std::vector<Eigen::VectorXd> parts(tokens.sequences.size()); // added in order
  tape.getThreads()(tokens.sequences.size(), [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const TapeTokens::Sequence &s = tokens.sequences[number];
      if (!s.after)
        continue;
      std::vector<int64_t> keys = keyRows(tokens, number);
      parts[number].setZero(keys.size());
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t group = head * groups / heads;
        Rows k = gather(tape.rows(op.getKey()), keys, group, width);
        Rows v = gather(tape.rows(op.getValue()), keys, group, valueWidth);
        Eigen::MatrixXd read = weights(s, keys, head, k, nullptr).cast<double>() *
                               v.rowwise().norm().cast<double>().asDiagonal();
        const Eigen::VectorXd all = read.rowwise().sum().cwiseMax(1e-30).cwiseInverse();
        parts[number] += read.transpose() * all;
      }
    }
  });
  for (size_t number = 0; number < tokens.sequences.size(); ++number)
    if (parts[number].size())
      for (auto [i, row] : llvm::enumerate(keyRows(tokens, number)))
        reads[row] += parts[number][i];
}

void Attention::pullBack() {
  const TapeTokens &tokens = tape.getTokens();
  const Rows d = tape.gradient(op.getResult());
  Rows ofQuery = Rows::Zero(tape.count(), heads * width);
  Rows ofKey = Rows::Zero(tape.count(), groups * width);
  Rows ofValue = Rows::Zero(tape.count(), groups * valueWidth);
  // Sequences that continue the same one share its keys: their parts are added in order.
  std::vector<Rows> keyParts(tokens.sequences.size()), valueParts(tokens.sequences.size());
  tape.getThreads()(tokens.sequences.size(), [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const TapeTokens::Sequence &s = tokens.sequences[number];
      std::vector<int64_t> keys = keyRows(tokens, number);
      Rows &keyPart = keyParts[number], &valuePart = valueParts[number];
      keyPart.setZero(keys.size(), groups * width);
      valuePart.setZero(keys.size(), groups * valueWidth);
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t group = head * groups / heads;
        Rows k = gather(tape.rows(op.getKey()), keys, group, width);
        Rows v = gather(tape.rows(op.getValue()), keys, group, valueWidth), capped;
        Rows p = weights(s, keys, head, k, &capped);
        auto ofResult = queries(d, s, head, valueWidth);
        valuePart.middleCols(group * valueWidth, valueWidth) += p.transpose() * ofResult;
        Rows scores = ofResult * v.transpose();
        Eigen::VectorXf along = scores.cwiseProduct(p).rowwise().sum();
        scores = scale * p.cwiseProduct(scores.colwise() - along);
        if (cap > 0)
          scores = scores.cwiseProduct(capped);
        ofQuery.block(s.first, head * width, s.count, width) = scores * k;
        keyPart.middleCols(group * width, width) +=
            scores.transpose() * queries(tape.rows(op.getQuery()), s, head, width);
      }
    }
  });
  for (size_t number = 0; number < tokens.sequences.size(); ++number)
    for (auto [i, row] : llvm::enumerate(keyRows(tokens, number))) {
      ofKey.row(row) += keyParts[number].row(i);
      ofValue.row(row) += valueParts[number].row(i);
    }
  tape.add(op.getQuery(), ofQuery);
  tape.add(op.getKey(), ofKey);
  tape.add(op.getValue(), ofValue);
}

} // namespace

static llvm::Error evaluateOp(xf::AttentionOp op, Tape &tape) {
  auto attention = Attention::make(op, tape);
  if (!attention)
    return attention.takeError();
  tape.set(op.getResult(), attention->evaluate());
  if (Eigen::VectorXd *reads = tape.getReads())
    attention->addReads(*reads);
  return llvm::Error::success();
}

static llvm::Error pullBackOp(xf::AttentionOp op, Tape &tape) {
  auto attention = Attention::make(op, tape);
  if (!attention)
    return attention.takeError();
  attention->pullBack();
  return llvm::Error::success();
}

void attachAttention(MLIRContext &context) { attach<xf::AttentionOp>(context); }

} // namespace ctxc::gradient
