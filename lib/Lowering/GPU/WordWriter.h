// Arithmetic of a kernel on words of 32 bits, as integers and as float32.
#ifndef CTXC_LIB_LOWERING_GPU_WORDWRITER_H
#define CTXC_LIB_LOWERING_GPU_WORDWRITER_H

#include "lib/Lowering/GPU/KernelWriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace ctxc::gpu_lowering {

class WordWriter {
protected:
  explicit WordWriter(KernelWriter &w) : w(w) {}

  // Integers
  mlir::Value number(int64_t i) { return mlir::arith::ConstantIntOp::create(w.b, w.loc, i, 32); }
  mlir::Value toI32(mlir::Value i) {
    return mlir::arith::IndexCastOp::create(w.b, w.loc, w.b.getI32Type(), i);
  }
  mlir::Value plus(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddIOp::create(w.b, w.loc, a, b);
  }
  mlir::Value plus(mlir::Value a, int64_t b) { return b ? plus(a, number(b)) : a; }
  mlir::Value minus(mlir::Value a, int64_t b) { return plus(a, -b); }
  mlir::Value times(mlir::Value a, int64_t b) {
    return mlir::arith::MulIOp::create(w.b, w.loc, a, number(b));
  }
  mlir::Value both(mlir::Value a, int64_t b) {
    return mlir::arith::AndIOp::create(w.b, w.loc, a, number(b));
  }
  mlir::Value either(mlir::Value a, mlir::Value b) {
    return mlir::arith::OrIOp::create(w.b, w.loc, a, b);
  }
  mlir::Value left(mlir::Value a, mlir::Value by) {
    return mlir::arith::ShLIOp::create(w.b, w.loc, a, by);
  }
  mlir::Value left(mlir::Value a, int64_t by) { return left(a, number(by)); }
  mlir::Value right(mlir::Value a, mlir::Value by) {
    return mlir::arith::ShRUIOp::create(w.b, w.loc, a, by);
  }
  mlir::Value right(mlir::Value a, int64_t by) { return right(a, number(by)); }
  mlir::Value isLess(mlir::Value a, int64_t b) {
    return mlir::arith::CmpIOp::create(w.b, w.loc, mlir::arith::CmpIPredicate::ult, a, number(b));
  }
  mlir::Value choose(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return mlir::arith::SelectOp::create(w.b, w.loc, condition, a, b);
  }
  mlir::Value byteOf(mlir::Value four, mlir::Value i) { return both(right(four, left(i, 3)), 255); }
  mlir::Value signedByteOf(mlir::Value four, mlir::Value i) {
    mlir::Value high = left(four, mlir::arith::SubIOp::create(w.b, w.loc, number(24), left(i, 3)));
    return mlir::arith::ShRSIOp::create(w.b, w.loc, high, number(24));
  }

  // Floating point
  mlir::Value fromBits(mlir::Value bits) {
    return mlir::arith::BitcastOp::create(w.b, w.loc, w.b.getF32Type(), bits);
  }
  mlir::Value toFloat(mlir::Value i) {
    return mlir::arith::SIToFPOp::create(w.b, w.loc, w.b.getF32Type(), i);
  }
  mlir::Value product(mlir::Value a, mlir::Value b) {
    return mlir::arith::MulFOp::create(w.b, w.loc, a, b);
  }
  mlir::Value sum(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddFOp::create(w.b, w.loc, a, b);
  }
  mlir::Value difference(mlir::Value a, mlir::Value b) {
    return mlir::arith::SubFOp::create(w.b, w.loc, a, b);
  }
  mlir::Value constant(float x) {
    return mlir::arith::ConstantOp::create(w.b, w.loc, w.b.getF32FloatAttr(x));
  }

  KernelWriter &w;
};

} // namespace ctxc::gpu_lowering

#endif // CTXC_LIB_LOWERING_GPU_WORDWRITER_H
