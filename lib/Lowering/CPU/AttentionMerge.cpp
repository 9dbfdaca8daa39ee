// The results of tiles of slots become the result of all slots (AttentionTile.h).
#include "lib/Lowering/CPU/AttentionTile.h"
#include "lib/Lowering/CPU/VectorBody.h"

using namespace mlir;
using namespace ctxc;

void AttentionTile::start(const Running &running) {
  memref::StoreOp::create(b, loc, number(-INFINITY), running.largest, running.at);
  memref::StoreOp::create(b, loc, number(0), running.total, running.at);
  forVectors(1, [&](Value x, int64_t, Value mask) {
    store(zeros(lanes), in.mixed, {running.row, running.group, running.head, x}, mask);
  });
}

void AttentionTile::merge(const Running &running, const TileResults &tile, Value query) {
  Value at = add(tile.first, query);
  Value before = memref::LoadOp::create(b, loc, running.largest, running.at);
  Value ofTile = memref::LoadOp::create(b, loc, tile.largest, at);
  Value largest = arith::MaximumFOp::create(b, loc, before, ofTile);
  Value base = finite(largest), old = power(before, base), fresh = power(ofTile, base);
  auto scaled = [&](Value x, Value factor) -> Value {
    return arith::MulFOp::create(b, loc, x, factor);
  };
  Value total = arith::AddFOp::create(
      b, loc, scaled(memref::LoadOp::create(b, loc, running.total, running.at), old),
      scaled(memref::LoadOp::create(b, loc, tile.total, at), fresh));
  memref::StoreOp::create(b, loc, largest, running.largest, running.at);
  memref::StoreOp::create(b, loc, total, running.total, running.at);
  Value wideOld = broadcastLanes(b, loc, old), wideFresh = broadcastLanes(b, loc, fresh);
  forVectors(1, [&](Value x, int64_t, Value mask) {
    Values place{running.row, running.group, running.head, x};
    Value so = scaled(load(lanes, in.mixed, place, mask), wideOld);
    store(vector::FMAOp::create(b, loc, load(lanes, tile.mixed, {at, x}, mask), wideFresh, so),
          in.mixed, place, mask);
  });
}

void AttentionTile::finish(const Running &running) {
  SmallVector<Value> head{running.row, running.group, running.head};
  Value before = memref::LoadOp::create(b, loc, running.largest, running.at);
  Value total = memref::LoadOp::create(b, loc, running.total, running.at);
  Value largest = before, own, sink;
  auto alsoOf = [&](Value scores) -> Value {
    if (!scores)
      return {};
    Value score = memref::LoadOp::create(b, loc, scores, head);
    largest = arith::MaximumFOp::create(b, loc, largest, score);
    return score;
  };
  own = alsoOf(in.ownScores);
  sink = alsoOf(in.sinks);
  Value base = finite(largest), old, ofOwn;
  if (own || sink) {
    old = power(before, base);
    total = arith::MulFOp::create(b, loc, total, old);
  }
  for (Value score : {own, sink})
    if (score) {
      Value more = power(score, base);
      total = arith::AddFOp::create(b, loc, total, more);
      if (score == own)
        ofOwn = more;
    }
  Value divisor = broadcastLanes(b, loc, total);
  forVectors(1, [&](Value x, int64_t, Value mask) {
    Values place{running.row, running.group, running.head, x};
    Value so = load(lanes, in.mixed, place, mask);
    if (old)
      so = arith::MulFOp::create(b, loc, so, broadcastLanes(b, loc, old));
    if (ofOwn)
      so = vector::FMAOp::create(b, loc,
                                 load(lanes, in.ownValues, {running.row, running.group, x}, mask),
                                 broadcastLanes(b, loc, ofOwn), so);
    store(arith::DivFOp::create(b, loc, so, divisor), in.mixed, place, mask);
  });
}
