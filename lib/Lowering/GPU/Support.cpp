// The kernel support functions (ctxc/Numerics/KernelABI.h) that GPUs have: those that decode rows
// of a quantised table, count obligations and predict replay errors. NormSolver.cpp has those of
// post-norms. Each call is for one row, and a whole block runs it.
#include "lib/Lowering/GPU/Kernels.h"
#include "lib/Lowering/GPU/QuantizedNumbers.h"
#include "lib/Lowering/GPU/ReadOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {

class SupportWriter {
public:
  SupportWriter(KernelWriter &w, const Support &call, Value row) : w(w), call(call), row(row) {}

  /// counts[1] += the zeros of each vector, or 1 for a vector that is zero in all entries.
  void countZeros() {
    bool elements = call.number(0);
    int64_t vectors = call.number(1), width = call.number(2);
    for (int64_t i = 0; i < vectors; ++i) {
      Value zeros = countZerosOf(0, i * width, width);
      addToCount(1, 1, elements ? zeros : asCount(isEqual(zeros, width)));
    }
  }

  /// counts[0 or 1] += 1 for each zero vector: 0 where its change is zero too, otherwise 1.
  void countUnserved() {
    int64_t vectors = call.number(0), width = call.number(1), changed = call.number(2);
    for (int64_t i = 0; i < vectors; ++i) {
      Value zero = isEqual(countZerosOf(0, i * width, width), width);
      Value same = isEqual(countZerosOf(1, i * changed, changed), changed);
      Value harmless = arith::AndIOp::create(w.b, w.loc, zero, same);
      addToCount(2, 0, asCount(harmless));
      addToCount(2, 1, asCount(arith::XOrIOp::create(w.b, w.loc, zero, harmless)));
    }
  }

  /// A row of a quantised table: its bytes, the row's index, and where it goes.
  void decodeRow() {
    auto type = xf::QuantizedType::get(w.b.getContext(), xf::BlockFormat(call.number(0)));
    int64_t groups = call.number(2) / 4;
    Value words = w.buffer(call.memory[0].root, w.b.getI32Type());
    Value id = arith::IndexCastOp::create(w.b, w.loc, w.b.getIndexType(), element(1, w.index(0)));
    Value first = w.times(id, fixedExtent(groups));
    w.loop(w.thread, w.index(groups), w.index(w.threads), [&](Value group) {
      Value place = w.times(group, fixedExtent(4));
      for (auto [i, x] : llvm::enumerate(decodeFour(w, type, words, w.add(first, group))))
        w.store(x, call.memory[2].root, placeOf(w, call.memory[2], row, w.add(place, w.index(i))));
    });
  }

  void countDifferent() {
    Value count = sumOf(call.number(0) * call.number(1), w.b.getI32Type(), [&](Value i) {
      return asCount(arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::ne, element(0, i),
                                           element(1, i)));
    });
    addToCount(2, 1, count);
  }

  /// u (‖product‖ + ‖u‖ |vᵀ z|), in float32.
  void predictRank1Replay() {
    int64_t n = call.number(1), k = call.number(2);
    Value length = root(sumOf(n, w.b.getF32Type(), [&](Value i) { return square(element(0, i)); }));
    Value moved = root(sumOf(n, w.b.getF32Type(), [&](Value i) { return square(element(1, i)); }));
    if (k) {
      Value inner =
          sumOf(k, w.b.getF32Type(), [&](Value i) { return times(element(2, i), element(3, i)); });
      moved = times(moved, math::AbsFOp::create(w.b, w.loc, inner));
    }
    Value error = times(plus(length, moved), number(0x1p-24));
    w.when(isFirst(), [&] {
      Value wide = arith::ExtFOp::create(w.b, w.loc, w.b.getF64Type(), error);
      w.store(wide, call.memory[4].root, at(4, 0));
    });
  }

private:
  Value at(unsigned operand, int64_t i) {
    return placeOf(w, call.memory[operand], row, w.index(i));
  }
  Value element(unsigned operand, Value i) {
    const View &view = call.memory[operand];
    return w.load(view.root, placeOf(w, view, row, i));
  }
  Value isFirst() {
    return arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::eq, w.thread, w.index(0));
  }
  Value isEqual(Value count, int64_t n) {
    return arith::CmpIOp::create(w.b, w.loc, arith::CmpIPredicate::eq, count,
                                 arith::ConstantIntOp::create(w.b, w.loc, n, 32));
  }
  Value asCount(Value condition) {
    return arith::ExtUIOp::create(w.b, w.loc, w.b.getI32Type(), condition);
  }
  Value number(double x) {
    return arith::ConstantOp::create(w.b, w.loc, w.b.getF32FloatAttr(float(x)));
  }
  Value times(Value a, Value b) { return arith::MulFOp::create(w.b, w.loc, a, b); }
  Value square(Value a) { return times(a, a); }
  Value root(Value a) { return math::SqrtOp::create(w.b, w.loc, a); }
  Value plus(Value a, Value b) {
    if (isa<FloatType>(a.getType()))
      return arith::AddFOp::create(w.b, w.loc, a, b);
    return arith::AddIOp::create(w.b, w.loc, a, b);
  }

  /// Σ_i term(i) over the block; every thread gets the sum.
  Value sumOf(int64_t n, Type type, llvm::function_ref<Value(Value)> term) {
    Value own = w.loop(
        w.thread, w.index(n), w.index(w.threads), ValueRange{w.zeroOf(type)},
        [&](Value i, ValueRange sum) { return SmallVector<Value>{plus(sum[0], term(i))}; })[0];
    return w.combineBlock(own, [&](Value a, Value b) { return plus(a, b); });
  }
  Value countZerosOf(unsigned operand, int64_t from, int64_t width) {
    return sumOf(width, w.b.getI32Type(), [&](Value i) {
      Value x = element(operand, w.add(i, w.index(from)));
      return asCount(arith::CmpFOp::create(w.b, w.loc, arith::CmpFPredicate::OEQ, x, number(0)));
    });
  }
  void addToCount(unsigned operand, int64_t which, Value more) {
    w.when(isFirst(), [&] {
      Value place = at(operand, which), root = call.memory[operand].root;
      Value wide = arith::ExtUIOp::create(w.b, w.loc, w.b.getI64Type(), more);
      w.store(plus(w.load(root, place), wide), root, place);
    });
  }

  KernelWriter &w;
  const Support &call;
  Value row;
};

template <void (SupportWriter::*Write)()>
void write(KernelWriter &w, const Support &call, Value row) {
  (SupportWriter(w, call, row).*Write)();
}

struct Form {
  kernel::SupportFunction function;
  void (*write)(KernelWriter &w, const Support &call, Value row);
};

} // namespace

static constexpr Form forms[] = {
    {kernel::SupportFunction::ctxc_decode_rows, write<&SupportWriter::decodeRow>},
    {kernel::SupportFunction::ctxc_rows_invert_rms_norm, writeInvertRmsNorm},
    {kernel::SupportFunction::ctxc_rows_solve_scale, writeSolveScale},
    {kernel::SupportFunction::ctxc_rows_count_zeros, write<&SupportWriter::countZeros>},
    {kernel::SupportFunction::ctxc_rows_count_unserved, write<&SupportWriter::countUnserved>},
    {kernel::SupportFunction::ctxc_rows_count_different, write<&SupportWriter::countDifferent>},
    {kernel::SupportFunction::ctxc_rows_predict_scale_replay, writePredictScaleReplay},
    {kernel::SupportFunction::ctxc_rows_predict_rank1_replay,
     write<&SupportWriter::predictRank1Replay>},
};

bool gpu_lowering::isSupported(kernel::SupportFunction function) {
  return llvm::any_of(forms, [&](const Form &form) { return form.function == function; });
}

void gpu_lowering::writeSupport(KernelWriter &w, const Support &support, Value row) {
  for (const Form &form : forms)
    if (form.function == support.function)
      form.write(w, support, row);
}

Value gpu_lowering::placeOf(KernelWriter &w, const View &memory, Value row, Value i) {
  Value place = w.add(i, w.number(memory.offset));
  return row && !memory.strides.empty() ? w.add(place, w.times(row, memory.strides[0])) : place;
}
