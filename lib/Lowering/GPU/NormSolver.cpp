// Solves through a norm and the scale after it (include/ctxc/Numerics/NormInversion.h) with a block
// of threads: into the unit problem and back, the scale, and the predicted replay error of the
// scale.
#include "ctxc/Numerics/UnitSolvers.h"
#include "lib/Lowering/GPU/Kernels.h"
#include "lib/Lowering/GPU/VectorWriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {

/// The vectors that UnitVectors.h asks for, in a kernel: its functions write code that a block of
/// threads runs. Inputs are float32 and the largest entry of a and M is 1, so that no product
/// leaves float64's range. Sums are taken in the block's order; results therefore agree with the
/// processor's up to the last digits of float64.
struct BlockVectors {
  using Number = gpu_lowering::Number;
  using Condition = gpu_lowering::Condition;
  using Rough = gpu_lowering::Number;
  using Vector = Components;
  /// The component of a loop, or one that a search found.
  struct Index {
    Value inLoop;
    Number found = -1;
  };
  static constexpr double infinity = huge, tiny = gpu_lowering::tiny, mostRatio = 1e148;
  enum Kind { InOrder, Sum, WideSum, Largest, Smallest };
  template <size_t count> using Many = std::array<Number, count>;
  template <size_t count> struct Round {
    Many<count> next;
    Condition done;
  };

  VectorWriter &v;

  static Number guard(const Number &x) { return max(x, tiny); }
  static Number roughly(const Number &x) { return x; }
  Number get(const Components &x, const Index &k) {
    return k.inLoop ? v.get(x, k.inLoop) : v.get(x, k.found);
  }
  void set(const Components &x, const Index &k, const Number &value) { v.set(x, k.inLoop, value); }
  static Index none() { return {}; }
  Condition isAt(const Index &k, const Index &found) { return v.toNumber(k.inLoop) == found.found; }

  template <typename Body> void each(Body body) {
    v.each([&](Value k) { body(Index{k}); });
  }
  template <Kind... kinds, typename Terms> Many<sizeof...(kinds)> reduce(Terms terms) {
    return array<sizeof...(kinds)>(
        v.reduce({kindOf(kinds)...}, [&](Value k) { return numbers(terms(Index{k})); }));
  }
  template <Kind kind, typename Term> Number reduceOne(Term term) {
    return v.reduce(kindOf(kind), [&](Value k) { return Numbers{term(Index{k})}; })[0];
  }
  template <typename Holds> Index firstWhere(Holds holds) {
    return {Value(), v.firstWhere([&](Value k) { return holds(Index{k}); })};
  }
  template <typename Body> void when(const Condition &condition, Body body) {
    v.when(condition, body);
  }
  template <typename Then, typename Else>
  auto when(const Condition &condition, Then then, Else otherwise) {
    constexpr size_t count = std::tuple_size_v<decltype(then())>;
    Numbers made = v.when(condition, [&] { return numbers(then()); }, Numbers(count, Number(0.0)));
    return array<count>(v.when(!condition, [&] { return numbers(otherwise()); }, made));
  }
  template <size_t count, typename Body>
  Many<count> repeat(int64_t most, const Many<count> &start, Body body) {
    return array<count>(v.repeat(most, numbers(start), [&](Numbers carried) {
      Round<count> round = body(array<count>(carried));
      return VectorWriter::Round{numbers(round.next), round.done};
    }));
  }

  static constexpr VectorWriter::Kind kindOf(Kind kind) {
    return kind == Largest    ? VectorWriter::Largest
           : kind == Smallest ? VectorWriter::Smallest
                              : VectorWriter::Sum;
  }
  template <size_t count> static Numbers numbers(const Many<count> &all) {
    return Numbers(all.begin(), all.end());
  }
  template <size_t count> static Many<count> array(const Numbers &all) {
    return array(all, std::make_index_sequence<count>());
  }
  template <size_t... i>
  static Many<sizeof...(i)> array(const Numbers &all, std::index_sequence<i...>) {
    return {all[i]...};
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Into and out of the unit problem
//===----------------------------------------------------------------------===//

static Update updateOf(const Support &call) { return updateNumbered(call.number(0)); }

void gpu_lowering::writeInvertRmsNorm(KernelWriter &w, const Support &call, Value row) {
  constexpr unsigned epsAt = 3, gAt = 0, mAt = 1, dataAt = 2, targetAt = 3, scratchAt = 4;
  int64_t d = call.number(2);
  VectorWriter v(w, d, row);
  Components g{&call.memory[gAt]}, m{&call.memory[mAt]}, data{&call.memory[dataAt]};
  Components target{&call.memory[targetAt]};
  auto scratch = [&](int64_t i) { return Components{&call.memory[scratchAt], i * d}; };
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
    // √B = √(d ρ) with √ρ = R / √(R² + ε); it is never zero.
    Number eps = std::max(call.real(epsAt), 0.0), ratio = rms / sqrt(rms * rms + eps);
    Number radius = root * max(ratio, tiny);
    // Scales a and M by a common factor, so that their largest entry is 1.
    Number divisorM = select(hasScale, largestM, 1);
    Number balance = select(hasScale, largestG / divisorM / radius, 2);
    Number unitG = min(balance, 1) / largestG;
    Number unitM = select(hasScale, min(1 / balance, 1) / divisorM, 0);
    unit_solvers::UnitVectors<BlockVectors> p{scratch(0),
                                              scratch(1),
                                              scratch(2),
                                              scratch(3),
                                              {scratch(4), scratch(5), scratch(6), scratch(7)}};
    v.each([&](Value k) {
      v.set(p.a, k, abs(v.get(g, k)) * unitG);
      v.set(p.M, k, abs(v.get(m, k)) * unitM);
      v.set(p.direction, k, select(hasData, abs(v.get(data, k)) / norm, 1 / std::sqrt(double(d))));
    });
    BlockVectors vectors{v};
    unit_solvers::solveUnitProblem(update, vectors, p);

    // target = n √(R² + ε) = x √B √(R² + ε) = x ‖data‖.
    v.each([&](Value k) {
      Number wanted = v.get(g, k), scale = v.get(m, k);
      Condition isFree = (wanted == 0) | (scale == 0);
      Condition negative = select(isFree, v.get(data, k) < 0, (wanted < 0) ^ (scale < 0));
      Number x = v.get(p.x, k) * norm;
      v.set(target, k, select(negative, -x, x));
    });
  });
}

//===----------------------------------------------------------------------===//
// The scale
//===----------------------------------------------------------------------===//

/// Adds to the two counts of an obligation, on one thread.
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
  // A component that was driven to zero comes back as the rounding error of the sum that computed
  // it; dividing g_k = 0 by that error would erase m_k for nothing.
  constexpr double limit = std::numeric_limits<float>::max();
  Number squares = v.sum([&](Value k) { return square(v.get(n, k)); });
  Number zero = 8.0 * std::numeric_limits<float>::epsilon() * sqrt(squares / double(v.size));
  return v.reduce({VectorWriter::Sum, VectorWriter::Sum}, [&](Value k) {
    Number change = v.get(g, k), normalized = v.get(n, k);
    Condition harmless = (change == 0) & (abs(normalized) <= zero);
    // The remainder is computed first: where it is small, so is its error in Δm. The product is
    // exact.
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
  VectorWriter v(w, call.number(2), row);
  auto vector = [&](unsigned operand) { return Components{&call.memory[operand]}; };
  auto write = updateOf(call) == Update::Scaled ? writeScalar : writeDivisions;
  Numbers counts = write(v, vector(0), vector(1), vector(2), vector(3));
  v.onFirstThread([&] { addCounts(v, call.memory[4], row, counts[0], counts[1]); });
}

//===----------------------------------------------------------------------===//
// The predicted replay error
//===----------------------------------------------------------------------===//

void gpu_lowering::writePredictScaleReplay(KernelWriter &w, const Support &call, Value row) {
  double d = call.number(1), eps = call.real(2);
  VectorWriter v(w, call.number(1), row);
  auto vector = [&](unsigned operand) { return Components{&call.memory[operand]}; };
  Components m = vector(0), delta = vector(1), target = vector(2), data = vector(3);
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
    const View &place = call.memory[4];
    w.store(error.value(w), place.root, placeOf(w, place, row, w.index(0)));
  });
}
