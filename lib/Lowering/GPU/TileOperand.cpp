#include "lib/Lowering/GPU/TileOperand.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

static bool isMultiple(const Extent &extent, int64_t of) {
  return extent.fixed % of == 0 && extent.visible[0] % of == 0 && extent.visible[1] % of == 0;
}

TileOperand::TileOperand(KernelWriter &w, const Access &access, ArrayRef<Extent> loops,
                         ArrayRef<size_t> vectors, size_t k, int64_t height, Value written)
    : w(w), access(access), loops(loops), vectors(vectors), k(k), height(height),
      element(cast<MemRefType>(access.view.root.getType()).getElementType()),
      whole(inPieces(written)), numbers(whole ? 128 / element.getIntOrFloatBitWidth() : 4),
      parts(height * tileDepth / numbers) {
  auto space = gpu::AddressSpaceAttr::get(w.b.getContext(), gpu::AddressSpace::Workgroup);
  auto four = VectorType::get({4}, w.b.getF32Type());
  shared = w.function.addWorkgroupAttribution(
      MemRefType::get({2 * pieces()}, four, MemRefLayoutAttrInterface(), space), w.loc);
  bool acrossVectors = !whole && !(access.steps[k] == fixedExtent(1));
  Value perThread = w.index(tileDepth / numbers);
  for (int64_t from = 0; from < parts; from += w.threads) {
    Value flat = from ? w.add(w.thread, w.index(from)) : w.thread;
    Part part;
    if (from + w.threads > parts)
      part.exists = w.isBelow(flat, w.index(parts));
    // Adjacent lanes read adjacent elements.
    Value q;
    if (acrossVectors) {
      part.vector = arith::RemUIOp::create(w.b, w.loc, flat, w.index(height));
      q = arith::DivUIOp::create(w.b, w.loc, flat, w.index(height));
    } else {
      part.vector = arith::DivUIOp::create(w.b, w.loc, flat, perThread);
      q = arith::RemUIOp::create(w.b, w.loc, flat, perThread);
    }
    part.first = constantTimes(q, numbers);
    own.push_back(part);
  }
}

/// Whether all vectors consist of pieces of 16 bytes, and the buffer is read in such pieces.
bool TileOperand::inPieces(Value written) const {
  int64_t by = 128 / element.getIntOrFloatBitWidth();
  auto all = elementsOf(access.view.root);
  if (access.view.root == written || !(access.steps[k] == fixedExtent(1)) || !loops[k].isFixed() ||
      loops[k].fixed % by || !isMultiple(access.offset, by) || !all || !isMultiple(*all, by))
    return false;
  for (auto [d, step] : llvm::enumerate(access.steps))
    if (d != k && !isMultiple(step, by))
      return false;
  return true;
}

Value TileOperand::constantTimes(Value x, int64_t factor) {
  return w.times(x, fixedExtent(factor));
}

void TileOperand::enter(Value first, ArrayRef<Value> indices) {
  SmallVector<Extent> sizes;
  Extent count = fixedExtent(1);
  for (size_t d : vectors) {
    sizes.push_back(loops[d]);
    count = *product(count, loops[d]);
  }
  Value last = w.number(count + fixedExtent(-1));
  Access scaled = access; // in pieces, and without k, which is added at each read
  auto scale = [&](Extent &extent) {
    if (whole)
      extent = {extent.fixed / numbers, {extent.visible[0] / numbers, extent.visible[1] / numbers}};
  };
  scale(scaled.offset);
  for (Extent &step : scaled.steps)
    scale(step);
  for (Part &part : own) {
    Value vector = arith::MinUIOp::create(w.b, w.loc, w.add(first, part.vector), last);
    SmallVector<Value> at(indices);
    for (auto [d, index] : llvm::zip(vectors, w.split(vector, sizes)))
      at[d] = index;
    at[k] = w.index(0);
    part.start = w.at(scaled, at);
  }
}

Value TileOperand::when(Value condition, Type type, llvm::function_ref<Value()> body) {
  auto branch = scf::IfOp::create(w.b, w.loc, TypeRange{type}, condition, true);
  OpBuilder::InsertionGuard guard(w.b);
  w.b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(w.b, w.loc, body());
  w.b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(w.b, w.loc, w.zeroOf(type));
  return branch.getResult(0);
}

/// Loads one number and widens it to float32.
Value TileOperand::number(Value at) {
  Value x = w.load(access.view.root, at);
  return x.getType().isF16() ? Value(arith::ExtFOp::create(w.b, w.loc, w.b.getF32Type(), x)) : x;
}

SmallVector<Value> TileOperand::load(Value tile, bool partial) {
  Type f32 = w.b.getF32Type();
  Value start = constantTimes(tile, tileDepth), end = w.number(loops[k]);
  SmallVector<Value> loaded;
  for (Part &part : own) {
    Value from = w.add(start, part.first);
    Value exists = part.exists;
    if (whole) {
      if (partial) {
        Value inside = w.isBelow(from, end);
        exists = exists ? Value(arith::AndIOp::create(w.b, w.loc, exists, inside)) : inside;
      }
      int64_t words = element.isF16() ? 8 : 4;
      Type word = element.isF32() || element.isF16() ? element : Type(w.b.getI32Type());
      Type four = VectorType::get({words}, word);
      auto read = [&]() -> Value {
        Value piece = arith::DivUIOp::create(w.b, w.loc, from, w.index(numbers));
        if (quantizedOf(access.view.root))
          return vector::FromElementsOp::create(
              w.b, w.loc, cast<VectorType>(four),
              w.loadFour(access.view.root, w.add(part.start, piece)));
        return memref::LoadOp::create(w.b, w.loc, w.buffer(access.view.root, four),
                                      ValueRange{w.add(part.start, piece)});
      };
      loaded.push_back(exists ? when(exists, four, read) : read());
      continue;
    }
    for (int64_t i = 0; i < numbers; ++i) {
      Value at = i ? w.add(from, w.index(i)) : from;
      Value isThere = exists;
      if (partial) {
        Value inside = w.isBelow(at, end);
        isThere = isThere ? Value(arith::AndIOp::create(w.b, w.loc, isThere, inside)) : inside;
      }
      auto read = [&] { return number(w.add(part.start, w.times(at, access.steps[k]))); };
      loaded.push_back(isThere ? when(isThere, f32, read) : read());
    }
  }
  return loaded;
}

Value TileOperand::place(Value vector, Value q) {
  Value turn = arith::AndIOp::create(
      w.b, w.loc, arith::ShRUIOp::create(w.b, w.loc, vector, w.index(1)), w.index(perVector - 1));
  return w.add(constantTimes(vector, perVector), arith::XOrIOp::create(w.b, w.loc, q, turn));
}

void TileOperand::put(ArrayRef<Value> loaded, Value start) {
  auto four = VectorType::get({4}, w.b.getF32Type());
  auto extract = [&](Value from, int64_t i) -> Value {
    return vector::ExtractOp::create(w.b, w.loc, from, i);
  };
  for (Part &part : own) {
    SmallVector<Value> all; // the numbers as float32
    if (!whole) {
      all.assign(loaded.begin(), loaded.begin() + numbers);
      loaded = loaded.drop_front(numbers);
    } else {
      Value piece = loaded.front();
      loaded = loaded.drop_front();
      for (int64_t i = 0, e = cast<VectorType>(piece.getType()).getNumElements(); i < e; ++i) {
        Value word = extract(piece, i);
        if (element.isF32()) {
          all.push_back(word);
        } else if (element.isF16()) {
          all.push_back(arith::ExtFOp::create(w.b, w.loc, w.b.getF32Type(), word));
        } else {
          Value high = arith::ConstantIntOp::create(w.b, w.loc, int32_t(0xffff0000), 32);
          all.push_back(w.fromBfloat16(word));
          all.push_back(arith::BitcastOp::create(w.b, w.loc, w.b.getF32Type(),
                                                 arith::AndIOp::create(w.b, w.loc, word, high)));
        }
      }
    }
    auto store = [&] {
      Value q = arith::DivUIOp::create(w.b, w.loc, part.first, w.index(4));
      for (int64_t i = 0; i < numbers / 4; ++i) {
        Value at = place(part.vector, i ? w.add(q, w.index(i)) : q);
        Value piece =
            vector::FromElementsOp::create(w.b, w.loc, four, ArrayRef(all).slice(4 * i, 4));
        memref::StoreOp::create(w.b, w.loc, piece, shared, ValueRange{w.add(start, at)});
      }
    };
    part.exists ? w.when(part.exists, store) : store();
  }
}

Value TileOperand::piece(Value lane, int64_t i, Value q, Value start) {
  // Vectors that are 16 apart have their pieces in the same order.
  Value at = w.add(w.add(place(lane, q), w.index(16 * i * perVector)), start);
  return memref::LoadOp::create(w.b, w.loc, shared, ValueRange{at});
}
