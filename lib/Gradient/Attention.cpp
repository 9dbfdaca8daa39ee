// The gradient of attention: each sequence by itself, with the keys of those that it continues.
#include "Models.h"
#include "ctxc/Gradient/AttentionScores.h"
#include "ctxc/Support/Error.h"
#include <cmath>

using namespace mlir;

namespace ctxc::gradient {
namespace {

/// The keys' rows that a sequence's queries may see, in order; of entry j of m, j - m.
std::vector<int64_t> keyRows(const Tape &tape, size_t number) {
  std::vector<int64_t> rows;
  const TapeTokens::Sequence &sequence = tape.getTokens().sequences[number];
  if (sequence.after)
    rows = keyRows(tape, *sequence.after);
  int64_t first = sequence.first, count = sequence.count;
  if (count == 0 && tape.getEntries()) {
    count = tape.getEntries()->tokens;
    first = -count;
  }
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(first + i);
  return rows;
}

class Attention {
public:
  static llvm::Expected<Attention> make(xf::AttentionOp op, Tape &tape) {
    auto scores = AttentionScores::make(op, tape);
    if (!scores)
      return scores.takeError();
    return Attention(op, tape, std::move(*scores));
  }

  Rows evaluate();
  void addReads(Eigen::VectorXd &reads);
  void pullBack();

private:
  Attention(xf::AttentionOp op, Tape &tape, AttentionScores scores)
      : op(op), tape(tape), scores(std::move(scores)), heads(this->scores.heads),
        groups(this->scores.groups), width(this->scores.width),
        valueWidth(this->scores.valueWidth) {}
  Rows gather(Value all, std::vector<float> KeysAndValues::*ofEntries, ArrayRef<int64_t> rows,
              int64_t group, int64_t size) const {
    Rows some(rows.size(), size);
    for (auto [i, row] : llvm::enumerate(rows))
      if (row < 0)
        std::copy_n((tape.getEntries()->*ofEntries).data() + placeOf(row, group) * size, size,
                    some.row(i).data());
      else
        some.row(i) = tape.rows(all).row(row).segment(group * size, size);
    return some;
  }
  Rows keysOf(ArrayRef<int64_t> rows, int64_t group) const {
    return gather(op.getKey(), &KeysAndValues::keys, rows, group, width);
  }
  Rows valuesOf(ArrayRef<int64_t> rows, int64_t group) const {
    return gather(op.getValue(), &KeysAndValues::values, rows, group, valueWidth);
  }
  /// Of a head's entry, among those of all heads.
  int64_t placeOf(int64_t row, int64_t group) const {
    return (group + 1) * tape.getEntries()->tokens + row;
  }
  /// The softmax's weights (queries × keys); `capped` has what each score is multiplied by in the
  /// derivative of the cap.
  Rows weights(const TapeTokens::Sequence &s, ArrayRef<int64_t> keys, int64_t head, const Rows &k,
               Rows *capped) const;
  void addToEntry(int64_t row, const Eigen::RowVectorXf &ofHeads, std::vector<float> &sums) const;

  mutable xf::AttentionOp op; // its accessors are not const
  Tape &tape;
  AttentionScores scores;
  int64_t heads, groups, width, valueWidth;
};

Rows Attention::weights(const TapeTokens::Sequence &s, ArrayRef<int64_t> keys, int64_t head,
                        const Rows &k, Rows *capped) const {
  std::vector<int32_t> positions;
  for (int64_t key : keys)
    positions.push_back(key < 0 ? tape.getEntries()->tokens + key
                                : tape.getTokens().positions[key]);
  Rows scores = this->scores.of(s.first, s.count, head, k, positions, capped);
  const float *sinks = this->scores.sinks();
  for (int64_t i = 0; i < s.count; ++i) {
    float largest = std::max(scores.row(i).maxCoeff(), sinks ? sinks[head] : -HUGE_VALF);
    double sum = sinks ? std::exp(sinks[head] - largest) : 0;
    for (float &score : scores.row(i)) {
      score = std::exp(score - largest);
      sum += score;
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
      std::vector<int64_t> keys = keyRows(tape, number);
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t group = head * groups / heads;
        Rows k = keysOf(keys, group), v = valuesOf(keys, group);
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
      std::vector<int64_t> keys = keyRows(tape, number);
      parts[number].setZero(keys.size());
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t group = head * groups / heads;
        Rows k = keysOf(keys, group), v = valuesOf(keys, group);
        Eigen::MatrixXd read = weights(s, keys, head, k, nullptr).cast<double>() *
                               v.rowwise().norm().cast<double>().asDiagonal();
        const Eigen::VectorXd all = read.rowwise().sum().cwiseMax(1e-30).cwiseInverse();
        parts[number] += read.transpose() * all;
      }
    }
  });
  for (size_t number = 0; number < tokens.sequences.size(); ++number)
    if (parts[number].size())
      for (auto [i, row] : llvm::enumerate(keyRows(tape, number)))
        reads[row] += parts[number][i];
}

/// Adds what has been found for all heads of one entry.
void Attention::addToEntry(int64_t row, const Eigen::RowVectorXf &ofHeads,
                           std::vector<float> &sums) const {
  const int64_t size = ofHeads.size() / groups;
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t i = 0; i < size; ++i)
      sums[placeOf(row, group) * size + i] += ofHeads[group * size + i];
}

void Attention::pullBack() {
  const TapeTokens &tokens = tape.getTokens();
  const Rows d = tape.gradient(op.getResult());
  const float scale = op.getScale().convertToFloat();
  Rows ofQuery = Rows::Zero(tape.count(), heads * width);
  Rows ofKey = Rows::Zero(tape.count(), groups * width);
  Rows ofValue = Rows::Zero(tape.count(), groups * valueWidth);
  // Sequences that continue the same one share its keys: their parts are added in order.
  std::vector<Rows> keyParts(tokens.sequences.size()), valueParts(tokens.sequences.size());
  tape.getThreads()(tokens.sequences.size(), [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      const TapeTokens::Sequence &s = tokens.sequences[number];
      std::vector<int64_t> keys = keyRows(tape, number);
      Rows &keyPart = keyParts[number], &valuePart = valueParts[number];
      keyPart.setZero(keys.size(), groups * width);
      valuePart.setZero(keys.size(), groups * valueWidth);
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t group = head * groups / heads;
        Rows k = keysOf(keys, group), v = valuesOf(keys, group), capped;
        Rows p = weights(s, keys, head, k, &capped);
        auto ofResult = d.block(s.first, head * valueWidth, s.count, valueWidth);
        valuePart.middleCols(group * valueWidth, valueWidth) += p.transpose() * ofResult;
        Rows ofScores = ofResult * v.transpose();
        Eigen::VectorXf along = ofScores.cwiseProduct(p).rowwise().sum();
        ofScores = scale * p.cwiseProduct(ofScores.colwise() - along);
        if (capped.size())
          ofScores = ofScores.cwiseProduct(capped);
        ofQuery.block(s.first, head * width, s.count, width) = ofScores * k;
        keyPart.middleCols(group * width, width) +=
            ofScores.transpose() *
            tape.rows(op.getQuery()).block(s.first, head * width, s.count, width);
      }
    }
  });
  for (size_t number = 0; number < tokens.sequences.size(); ++number)
    for (auto [i, row] : llvm::enumerate(keyRows(tape, number))) {
      if (row < 0) {
        addToEntry(row, keyParts[number].row(i), tape.sumOfEntries().keys);
        addToEntry(row, valueParts[number].row(i), tape.sumOfEntries().values);
        continue;
      }
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
