// Gradients of ops that move entries: shapes and positions.
#include "Models.h"
#include <cmath>

using namespace mlir;

namespace ctxc::gradient {

static llvm::Error evaluateOp(xf::ReshapeOp op, Tape &tape) {
  tape.set(op.getResult(), tape.rows(op.getData()));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::ReshapeOp op, Tape &tape) {
  const Rows d = tape.gradient(op.getResult());
  tape.add(op.getData(), d);
  return llvm::Error::success();
}

/// `rows`, whose values have the dimensions `from`, with the dimensions in another order.
static Rows transposed(const Rows &rows, ArrayRef<int64_t> from, ArrayRef<int64_t> order) {
  SmallVector<int64_t> strides(from.size(), 1);
  for (size_t i = from.size() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * from[i + 1];
  Rows result(rows.rows(), rows.cols());
  for (int64_t i = 0; i < result.cols(); ++i) {
    int64_t at = 0, rest = i;
    for (size_t dim = order.size(); dim-- > 0; rest /= from[order[dim]])
      at += rest % from[order[dim]] * strides[order[dim]];
    result.col(i) = rows.col(at);
  }
  return result;
}

static llvm::Error evaluateOp(xf::TransposeOp op, Tape &tape) {
  tape.set(op.getResult(),
           transposed(tape.rows(op.getData()), shapeOf(op.getData()), op.getOrder()));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::TransposeOp op, Tape &tape) {
  SmallVector<int64_t> back(op.getOrder().size());
  for (auto [to, from] : llvm::enumerate(op.getOrder()))
    back[from] = to;
  tape.add(op.getData(), transposed(tape.gradient(op.getResult()), shapeOf(op.getResult()), back));
  return llvm::Error::success();
}

/// A value of `shape` divided along one dimension: `count` groups of entries of `entry` elements.
struct Stretches {
  int64_t count = 1, entry = 1;
  Stretches(ArrayRef<int64_t> shape, int64_t along) {
    for (int64_t dim : shape.take_front(along))
      count *= dim;
    for (int64_t dim : shape.drop_front(along + 1))
      entry *= dim;
  }
};

/// Calls body(column of the whole, column of the part, columns) for each stretch of a part of
/// `size` entries from `from` on.
template <typename Body>
static void overStretches(ArrayRef<int64_t> whole, int64_t along, int64_t from, int64_t size,
                          Body body) {
  auto [count, entry] = Stretches(whole, along);
  for (int64_t i = 0; i < count; ++i)
    body((i * whole[along] + from) * entry, i * size * entry, size * entry);
}

static llvm::Error evaluateOp(xf::SliceOp op, Tape &tape) {
  const Rows &data = tape.rows(op.getData());
  Rows result(data.rows(), cast<RankedTensorType>(op.getType()).getNumElements());
  overStretches(shapeOf(op.getData()), op.getAlong(), op.getFrom(),
                shapeOf(op.getResult())[op.getAlong()], [&](int64_t from, int64_t to, int64_t n) {
                  result.middleCols(to, n) = data.middleCols(from, n);
                });
  tape.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::SliceOp op, Tape &tape) {
  const Rows &d = tape.gradient(op.getResult());
  Rows whole = Rows::Zero(d.rows(), tape.rows(op.getData()).cols());
  overStretches(shapeOf(op.getData()), op.getAlong(), op.getFrom(),
                shapeOf(op.getResult())[op.getAlong()], [&](int64_t from, int64_t to, int64_t n) {
                  whole.middleCols(from, n) = d.middleCols(to, n);
                });
  tape.add(op.getData(), whole);
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::ConcatOp op, Tape &tape) {
  Rows result(tape.count(), cast<RankedTensorType>(op.getType()).getNumElements());
  int64_t at = 0;
  for (Value part : op.getParts()) {
    const Rows &rows = tape.rows(part);
    const int64_t size = shapeOf(part)[op.getAlong()];
    overStretches(shapeOf(op.getResult()), op.getAlong(), at, size,
                  [&](int64_t whole, int64_t from, int64_t n) {
                    result.middleCols(whole, n) = rows.middleCols(from, n);
                  });
    at += size;
  }
  tape.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::ConcatOp op, Tape &tape) {
  const Rows d = tape.gradient(op.getResult());
  int64_t at = 0;
  for (Value part : op.getParts()) {
    Rows rows(d.rows(), tape.rows(part).cols());
    const int64_t size = shapeOf(part)[op.getAlong()];
    overStretches(shapeOf(op.getResult()), op.getAlong(), at, size,
                  [&](int64_t whole, int64_t to, int64_t n) {
                    rows.middleCols(to, n) = d.middleCols(whole, n);
                  });
    at += size;
    tape.add(part, rows);
  }
  return llvm::Error::success();
}

/// Calls body(column of the data, column of the result, columns) for each stretch of each part.
template <typename Body> static void overParts(xf::PermuteOp op, Body body) {
  SmallVector<int64_t> starts = op.getStarts();
  auto [count, entry] = Stretches(shapeOf(op.getData()), op.getAlong());
  int64_t whole = shapeOf(op.getData())[op.getAlong()] * entry, at = 0;
  for (int64_t part : op.getOrder()) {
    int64_t size = op.getParts()[part] * entry;
    for (int64_t i = 0; i < count; ++i)
      body(i * whole + starts[part] * entry, i * whole + at, size);
    at += size;
  }
}

static llvm::Error evaluateOp(xf::PermuteOp op, Tape &tape) {
  const Rows &data = tape.rows(op.getData());
  Rows result(data.rows(), data.cols());
  overParts(op, [&](int64_t from, int64_t to, int64_t n) {
    result.middleCols(to, n) = data.middleCols(from, n);
  });
  tape.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::PermuteOp op, Tape &tape) {
  const Rows &d = tape.gradient(op.getResult());
  Rows result(d.rows(), d.cols());
  overParts(op, [&](int64_t from, int64_t to, int64_t n) {
    result.middleCols(from, n) = d.middleCols(to, n);
  });
  tape.add(op.getData(), result);
  return llvm::Error::success();
}

static llvm::Error evaluateOp(xf::BroadcastOp op, Tape &tape) {
  tape.set(op.getResult(), tape.rows(op.getData()).replicate(1, shapeOf(op.getResult())[0]));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::BroadcastOp op, Tape &tape) {
  const Rows &d = tape.gradient(op.getResult());
  const int64_t width = tape.rows(op.getData()).cols();
  Rows sum = Rows::Zero(d.rows(), width);
  for (int64_t at = 0; at < d.cols(); at += width)
    sum += d.middleCols(at, width);
  tape.add(op.getData(), sum);
  return llvm::Error::success();
}

/// Rotates by the positions' angles, or back by them.
static Rows rotated(xf::RotaryOp op, const Tape &tape, Rows rows, bool back) {
  const Rows &frequencies = tape.rows(op.getFrequencies());
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  const bool half = op.getStyle() == xf::RotaryStyle::half;
  const double amplitude = op.getAmplitude().convertToDouble();
  const int64_t n = frequencies.cols();
  overRows(tape, rows.rows(), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t i = 0; i < n; ++i) {
        const double angle = double(tape.getTokens().positions[t]) * frequencies(t, i);
        const float cosine = amplitude * std::cos(angle);
        const float sine = (back ? -amplitude : amplitude) * std::sin(angle);
        for (int64_t head = 0; head < shape[0]; ++head) {
          float &x = rows(t, head * shape[1] + (half ? i : 2 * i));
          float &y = rows(t, head * shape[1] + (half ? i + n : 2 * i + 1));
          const float turned = x * cosine - y * sine;
          y = y * cosine + x * sine;
          x = turned;
        }
      }
  });
  return rows;
}

static llvm::Error evaluateOp(xf::RotaryOp op, Tape &tape) {
  tape.set(op.getResult(), rotated(op, tape, tape.rows(op.getData()), false));
  return llvm::Error::success();
}
static llvm::Error pullBackOp(xf::RotaryOp op, Tape &tape) {
  tape.add(op.getData(), rotated(op, tape, tape.gradient(op.getResult()), true));
  return llvm::Error::success();
}

void attachShapeOps(MLIRContext &context) {
  attach<xf::ReshapeOp, xf::TransposeOp, xf::PermuteOp, xf::SliceOp, xf::ConcatOp, xf::BroadcastOp,
         xf::RotaryOp>(context);
}

} // namespace ctxc::gradient
