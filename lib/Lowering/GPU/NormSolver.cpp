// Through a norm and the scale after it (include/ctxc/Numerics/NormInversion.h), by a block of
// threads: into the unit problem and back, the scale, and what its replay costs.
#include "lib/Lowering/GPU/NormSolver.h"
#include "ctxc/Numerics/Update.h"
#include "lib/Lowering/GPU/Kernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

//===----------------------------------------------------------------------===//
// The simpler updates
//===----------------------------------------------------------------------===//

Number gpu_lowering::shareOf(VectorWriter &v, const UnitVectors &p, Value k, const Number &present,
                             const Number &count) {
  Condition has = present > 0;
  Number own = square(v.get(p.direction, k)) / select(has, present, 1);
  return select(has, own, 1 / max(count, 1));
}

void gpu_lowering::writeBalanced(VectorWriter &v, const UnitVectors &p) {
  v.each([&](Value k) { v.set(p.x, k, sqrt(v.get(p.a, k))); });
}

void gpu_lowering::writeScaled(VectorWriter &v, const UnitVectors &p) {
  // Components without a scale keep their share of the norm.
  auto ratio = [&](Value k) {
    Number M = v.get(p.M, k);
    return select(M > 0, v.get(p.a, k) / max(M, tiny), 0);
  };
  auto keeps = [&](Value k) { return v.get(p.M, k) == 0; };
  Numbers found = v.reduce({VectorWriter::Largest, VectorWriter::Sum}, [&](Value k) {
    return Numbers{ratio(k), select(keeps(k), square(v.get(p.direction, k)), 0)};
  });
  Condition any = found[0] > 0;
  Number largest = select(any, found[0], 1);
  Number squares = v.sum([&](Value k) { return square(ratio(k) / largest); });
  Number factor = sqrt(max(1 - found[1], 0) / select(any, squares, 1));
  v.each([&](Value k) {
    v.set(p.x, k, select(keeps(k) | !any, v.get(p.direction, k), ratio(k) / largest * factor));
  });
}

/// lib/Numerics/StableUpdate.cpp says why Newton's method goes right from the left.
void gpu_lowering::writeStable(VectorWriter &v, const UnitVectors &p) {
  const Components &weight = p.work[0], &delta = p.work[1];
  Number lowest = v.smallest([&](Value k) { return v.get(p.M, k); });
  Number start = v.largest([&](Value k) {
    Number M = v.get(p.M, k), product = v.get(p.a, k) * M;
    Number above = (M - lowest) * (M + lowest);
    v.set(weight, k, product);
    v.set(delta, k, above);
    return product - above;
  });
  Numbers end = v.repeat(100, {max(start, 0), 0}, [&](Numbers carried) {
    Number theta = carried[0];
    Numbers sums = v.reduce({VectorWriter::Sum, VectorWriter::Sum}, [&](Value k) {
      Number gap = max(theta + v.get(delta, k), tiny), x = v.get(weight, k) / gap;
      v.set(p.x, k, x);
      return Numbers{x * x, x * x / gap};
    });
    Number squares = sums[0], cubes = sums[1], norm = sqrt(squares);
    Condition left = (norm > 1) & (cubes > 0);
    Number next = theta + (norm - 1) * squares / select(left, cubes, 1);
    Condition moves = left & (next > theta) & (next < huge);
    return VectorWriter::Round{{select(moves, next, theta), norm}, !moves};
  });
  Number norm = end[1];
  v.when((end[0] == 0) & (norm < 1), [&] {
    // The hard case: what is left goes to the components of the smallest M, at no change of cost.
    Number rest = max(1 - norm * norm, 0);
    auto isLowest = [&](Value k) { return v.get(p.M, k) == lowest; };
    Numbers sums = v.reduce(
        {VectorWriter::Sum, VectorWriter::Sum, VectorWriter::Sum, VectorWriter::Largest},
        [&](Value k) {
          Condition takes = isLowest(k);
          Number direction = v.get(p.direction, k);
          return Numbers{select(takes, v.get(p.a, k), 0), select(takes, direction * direction, 0),
                         asNumber(takes), select(takes, direction, -1)};
        });
    Number wanted = sums[0];
    Number strongest =
        v.firstWhere([&](Value k) { return isLowest(k) & (v.get(p.direction, k) == sums[3]); });
    v.each([&](Value k) {
      Number alone = asNumber(v.toNumber(k) == strongest);
      Number byTarget = v.get(p.a, k) / select(wanted > 0, wanted, 1);
      Number share = select(lowest > 0, alone,
                            select(wanted > 0, byTarget, shareOf(v, p, k, sums[1], sums[2])));
      v.set(p.x, k, select(isLowest(k), sqrt(rest * share), v.get(p.x, k)));
    });
  });
}

//===----------------------------------------------------------------------===//
// Into and out of the unit problem
//===----------------------------------------------------------------------===//

static Update updateOf(const Support &call) {
  int64_t update = call.numbers[0];
  return update < 0 || update > int64_t(Update::Scaled) ? Update::Naive : Update(update);
}

static void writeInner(VectorWriter &v, Update update, const UnitVectors &p) {
  switch (update) {
  case Update::Least:
    return writeLeast(v, p);
  case Update::Balanced:
    return writeBalanced(v, p);
  case Update::Stable:
    return writeStable(v, p);
  case Update::Scaled:
    return writeScaled(v, p);
  case Update::Naive:
    return;
  }
}

void gpu_lowering::writeInvertRmsNorm(KernelWriter &w, const Support &call, Value row) {
  constexpr unsigned epsAt = 3, gAt = 4, mAt = 5, dataAt = 6, targetAt = 7, scratchAt = 8;
  int64_t d = call.numbers[2];
  VectorWriter v(w, d, row);
  Components g{&*call.memory[gAt]}, m{&*call.memory[mAt]}, data{&*call.memory[dataAt]};
  Components target{&*call.memory[targetAt]};
  auto scratch = [&](int64_t i) { return Components{&*call.memory[scratchAt], i * d}; };
  Update update = updateOf(call);
  if (update == Update::Naive)
    return v.each([&](Value k) { v.copy(data, target, k); });

  Numbers found =
      v.reduce({VectorWriter::Largest, VectorWriter::Largest, VectorWriter::Sum, VectorWriter::Sum},
               [&](Value k) {
                 Condition finite = v.isFinite(g, k) & v.isFinite(m, k) & v.isFinite(data, k);
                 return Numbers{abs(v.get(g, k)), abs(v.get(m, k)), square(v.get(data, k)),
                                asNumber(!finite)};
               });
  Condition solvable = (found[0] > 0) & (found[3] == 0);
  v.when(!solvable, [&] { v.each([&](Value k) { v.copy(data, target, k); }); });
  v.when(solvable, [&] {
    Number largestG = found[0], largestM = found[1], root = std::sqrt(double(d));
    Condition hasData = found[2] > 0, hasScale = largestM > 0;
    Number norm = select(hasData, sqrt(found[2]), root), rms = norm / root;
    // √B = √(d ρ) with √ρ = R / √(R² + ε); never zero.
    Number eps = std::max(call.reals[epsAt], 0.0), ratio = rms / sqrt(rms * rms + eps);
    Number radius = root * max(ratio, tiny);
    // a and M by one common factor to a largest entry of 1.
    Number divisorM = select(hasScale, largestM, 1);
    Number balance = select(hasScale, largestG / divisorM / radius, 2);
    Number unitG = min(balance, 1) / largestG;
    Number unitM = select(hasScale, min(1 / balance, 1) / divisorM, 0);
    UnitVectors p{scratch(0),
                  scratch(1),
                  scratch(2),
                  scratch(3),
                  {scratch(4), scratch(5), scratch(6), scratch(7)}};
    v.each([&](Value k) {
      v.set(p.a, k, abs(v.get(g, k)) * unitG);
      v.set(p.M, k, abs(v.get(m, k)) * unitM);
      v.set(p.direction, k, select(hasData, abs(v.get(data, k)) / norm, 1 / std::sqrt(double(d))));
    });
    writeInner(v, update, p);

    // target = n √(R² + ε) = x √B √(R² + ε) = x ‖data‖.
    Number squares = v.sum([&](Value k) { return square(v.get(p.x, k)); });
    Condition isSolved = squares > 0;
    Number factor = norm / sqrt(select(isSolved, squares, 1));
    v.each([&](Value k) {
      Number wanted = v.get(g, k), scale = v.get(m, k);
      Condition isFree = (wanted == 0) | (scale == 0);
      Condition negative = select(isFree, v.get(data, k) < 0, (wanted < 0) ^ (scale < 0));
      Number x = select(isSolved, v.get(p.x, k) * factor, v.get(p.direction, k) * norm);
      v.set(target, k, select(negative, -x, x));
    });
  });
}

//===----------------------------------------------------------------------===//
// The scale
//===----------------------------------------------------------------------===//

/// Adds to the two counts of obligations; on one thread.
static void addCounts(VectorWriter &v, const View &counts, Value row, const Number &harmless,
                      const Number &harmful) {
  KernelWriter &w = v.w;
  for (auto [i, more] : llvm::enumerate(Numbers{harmless, harmful})) {
    Value place = placeOf(w, counts, row, w.index(i));
    Value count = arith::FPToUIOp::create(w.b, w.loc, w.b.getI32Type(), more.value(w));
    Value wide = arith::ExtUIOp::create(w.b, w.loc, w.b.getI64Type(), count);
    w.store(arith::AddIOp::create(w.b, w.loc, w.load(counts.root, place), wide), counts.root,
            place);
  }
}

/// (s − 1) m with the least-squares s of s·(m ⊙ n) ≈ g; s = 1 when m ⊙ n = 0.
static Numbers writeScalar(VectorWriter &v, const Components &g, const Components &m,
                           const Components &n, const Components &delta) {
  Numbers sums = v.reduce({VectorWriter::Sum, VectorWriter::Sum, VectorWriter::Sum}, [&](Value k) {
    Number p = v.get(m, k) * v.get(n, k);
    Condition finite = v.isFinite(g, k) & v.isFinite(m, k) & v.isFinite(n, k);
    return Numbers{p * v.get(g, k), p * p, asNumber(!finite)};
  });
  Condition fits = (sums[1] > 0) & (sums[2] == 0);
  Number s = select(fits, sums[0] / select(fits, sums[1], 1), 1);
  return v.reduce({VectorWriter::Sum, VectorWriter::Sum}, [&](Value k) {
    Number change = v.get(g, k), scale = v.get(m, k), normalized = v.get(n, k);
    v.set(delta, k, (s - 1) * scale);
    return Numbers{asNumber((change == 0) & (normalized == 0)),
                   asNumber(!(change == 0) & ((scale == 0) | (normalized == 0)))};
  });
}

static Numbers writeDivisions(VectorWriter &v, const Components &g, const Components &m,
                              const Components &n, const Components &delta) {
  // A component driven to zero comes back as the rounding of the sum that made it; dividing
  // g_k = 0 by that would wipe m_k out for nothing.
  constexpr double limit = std::numeric_limits<float>::max();
  Number squares = v.sum([&](Value k) { return square(v.get(n, k)); });
  Number zero = 8.0 * std::numeric_limits<float>::epsilon() * sqrt(squares / double(v.size));
  return v.reduce({VectorWriter::Sum, VectorWriter::Sum}, [&](Value k) {
    Number change = v.get(g, k), normalized = v.get(n, k);
    Condition harmless = (change == 0) & (abs(normalized) <= zero);
    // The remainder first: where it is small, so is its error in Δm. The product is exact.
    Number remainder = change - v.get(m, k) * normalized;
    Condition isZero = normalized == 0;
    Number quotient = select(isZero, limit, remainder / select(isZero, 1, normalized));
    Condition exact = abs(quotient) < limit;
    Number otherwise = select(abs(remainder) <= limit, remainder, 0);
    v.set(delta, k, select(harmless, 0, select(exact, quotient, otherwise)));
    return Numbers{asNumber(harmless), asNumber(!harmless & !exact)};
  });
}

void gpu_lowering::writeSolveScale(KernelWriter &w, const Support &call, Value row) {
  VectorWriter v(w, call.numbers[2], row);
  auto vector = [&](unsigned operand) { return Components{&*call.memory[operand]}; };
  auto write = updateOf(call) == Update::Scaled ? writeScalar : writeDivisions;
  Numbers counts = write(v, vector(3), vector(4), vector(5), vector(6));
  v.onFirstThread([&] { addCounts(v, *call.memory[7], row, counts[0], counts[1]); });
}

//===----------------------------------------------------------------------===//
// What it costs in another program
//===----------------------------------------------------------------------===//

void gpu_lowering::writePredictScaleReplay(KernelWriter &w, const Support &call, Value row) {
  double d = call.numbers[1], eps = call.reals[2];
  VectorWriter v(w, call.numbers[1], row);
  auto vector = [&](unsigned operand) { return Components{&*call.memory[operand]}; };
  Components m = vector(3), delta = vector(4), target = vector(5), data = vector(6);
  Numbers squares = v.reduce({VectorWriter::Sum, VectorWriter::Sum}, [&](Value k) {
    return Numbers{square(v.get(target, k)), square(v.get(data, k))};
  });
  Number divisor = squares[0] / d + eps;
  divisor = select(divisor > 0, divisor, 1);
  Number sum = v.sum([&](Value k) {
    Number scale = v.get(m, k) + v.get(delta, k), moved = v.get(target, k) - v.get(data, k);
    return square(scale) * (square(v.get(target, k)) + squares[1] / d + square(moved)) / divisor;
  });
  Number error = 0x1p-24 * sqrt(sum);
  v.onFirstThread([&] {
    const View &place = *call.memory[7];
    w.store(error.value(w), place.root, placeOf(w, place, row, w.index(0)));
  });
}
