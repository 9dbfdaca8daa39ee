// Lowers the xf ops that a block's values start from: parameters, settings, the token, its position
// and its embedding.
#include "ctxc/Lowering/LinalgArith.h"
#include "dialects/Kernel/IntegerProducts.h"
#include "lib/Lowering/ToLinalg/SupportCall.h"

using namespace mlir;
using namespace ctxc;
using utils::IteratorType;

namespace {

struct LowerParam : Lowering<LowerParam, xf::ParamOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto param = cast<xf::ParamOp>(op);
    if (!KernelEmitter::isBank(param)) {
      if (param.getName().contains('*'))
        return op->emitOpError("of several stored tensors has no compiled kernel but as a bank of "
                               "xf.expert_linear; the reference engine runs it");
      e.bind(param, e.param(param.getName()));
      kernel::copyIntegerMark(param, KernelEmitter::quantized(e.lookup(param)));
    }
    return success();
  }
};

struct LowerSetting : Lowering<LowerSetting, xf::SettingOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    e.bind(op->getResult(0), e.setting(cast<xf::SettingOp>(op).getName()));
    return success();
  }
};

struct LowerToken : Lowering<LowerToken, xf::TokenOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto token = cast<xf::TokenOp>(op);
    auto number = [&](OpBuilder &b, Location l, int32_t x) {
      return arith::ConstantIntOp::create(b, l, x, 32).getResult();
    };
    AffineMap rows = AffineMap::getMultiDimIdentityMap(1, op->getContext());
    Value ids = e.tokens();
    if (!token.getReplaced().empty())
      ids =
          e.generic(e.emptyRows({}, 1, e.builder.getI32Type()), {ids}, {rows, rows},
                    {IteratorType::parallel}, [&](OpBuilder &b, Location l, ValueRange a) -> Value {
                      Value id = a[0], by = number(b, l, token.getBy());
                      for (int32_t one : token.getReplaced()) {
                        Value isIt = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, a[0],
                                                           number(b, l, one));
                        id = arith::SelectOp::create(b, l, isIt, by, id);
                      }
                      return id;
                    });
    e.bind(token, ids);
    return success();
  }
};

struct LowerConstant : Lowering<LowerConstant, xf::ConstantOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    Value id = arith::ConstantIntOp::create(e.builder, e.loc, cast<xf::ConstantOp>(op).getId(), 32);
    Value ids = e.emptyRows({}, 1, e.builder.getI32Type());
    e.bind(op->getResult(0),
           linalg::FillOp::create(e.builder, e.loc, ValueRange{id}, ValueRange{ids}).getResult(0));
    return success();
  }
};

struct LowerPosition : Lowering<LowerPosition, xf::PositionOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto position = cast<xf::PositionOp>(op);
    auto type = cast<RankedTensorType>(position.getType());
    const int64_t offset = position.getOffset(), divisor = position.getDivisor();
    AffineMap rows = AffineMap::get(1 + type.getRank(), 0, getAffineDimExpr(0, op->getContext()));
    AffineMap all = AffineMap::getMultiDimIdentityMap(1 + type.getRank(), op->getContext());
    SmallVector<IteratorType> parallel(1 + type.getRank(), IteratorType::parallel);
    auto at = [&](OpBuilder &b, Location l, ValueRange a) -> Value {
      auto number = [&](int64_t x) { return arith::ConstantIntOp::create(b, l, x, 32); };
      Value x = a[0];
      if (offset)
        x = arith::AddIOp::create(b, l, x, number(offset));
      if (divisor != 1)
        x = arith::DivUIOp::create(b, l, x, number(divisor));
      return type.getRank() ? arith::UIToFPOp::create(b, l, b.getF32Type(), x).getResult() : x;
    };
    Value result = e.positions();
    if (offset || divisor != 1 || type.getRank())
      result = e.generic(e.emptyRows(type.getShape(), 1, type.getElementType()), {result},
                         {rows, all}, parallel, at);
    e.bind(position, result);
    return success();
  }
};

/// The rows of a quantised table at `indices`.
Value decodeRows(KernelEmitter &e, kernel::QuantizedOp table, Value indices) {
  auto stored = cast<RankedTensorType>(table.getStored());
  int64_t width = stored.getDimSize(1);
  Value rows = callResult(e, width);
  auto format = cast<xf::QuantizedType>(stored.getElementType()).getFormat();
  callForRows(e, kernel::SupportFunction::ctxc_decode_rows, {int64_t(format), 1, width},
              {table.getMemory(), indices, rows});
  return readResult(e, rows);
}

/// Which of a table's rows an op of it reads, where the table may lack the row (kernel.rows_from).
struct RowsOfPart {
  Value ids;   ///< of rows that are there
  Value there; ///< 1, or 0 where the row is not; null where all are
};

RowsOfPart rowsOfPart(KernelEmitter &e, xf::EmbedOp embed) {
  Value ids = e.lookup(embed.getId());
  IntegerAttr from = kernel::RowsFrom(embed.getContext()).getAttr(embed);
  if (!from)
    return {ids, Value()};
  const int64_t rows = cast<RankedTensorType>(embed.getTable().getType()).getDimSize(0);
  AffineMap identity = AffineMap::getMultiDimIdentityMap(1, embed.getContext());
  auto perToken = [&](Type type, KernelEmitter::Body body) {
    Value init = tensor::EmptyOp::create(e.builder, e.loc,
                                         tensor::getMixedSizes(e.builder, e.loc, ids), type);
    return e.generic(init, {ids}, {identity, identity}, {IteratorType::parallel}, body);
  };
  // As an unsigned number, an id before the first row is beyond the last one.
  auto placeOf = [&](OpBuilder &b, Location l, Value id) -> std::pair<Value, Value> {
    Value first = arith::ConstantIntOp::create(b, l, from.getInt(), 32);
    Value count = arith::ConstantIntOp::create(b, l, rows, 32);
    Value place = arith::SubIOp::create(b, l, id, first);
    return {place, arith::CmpIOp::create(b, l, arith::CmpIPredicate::ult, place, count)};
  };
  RowsOfPart part;
  part.ids = perToken(e.builder.getI32Type(), [&](OpBuilder &b, Location l, ValueRange a) -> Value {
    auto [place, isThere] = placeOf(b, l, a[0]);
    Value first = arith::ConstantIntOp::create(b, l, 0, 32);
    return arith::SelectOp::create(b, l, isThere, place, first);
  });
  part.there =
      perToken(e.builder.getF32Type(), [&](OpBuilder &b, Location l, ValueRange a) -> Value {
        Value isThere = placeOf(b, l, a[0]).second;
        return arith::UIToFPOp::create(b, l, b.getF32Type(), isThere);
      });
  return part;
}

struct LowerEmbed : Lowering<LowerEmbed, xf::EmbedOp> {
  LogicalResult lowerToLinalg(Operation *op, KernelEmitter &e) const {
    auto embed = cast<xf::EmbedOp>(op);
    if (e.hasRows(embed.getTable()))
      return op->emitOpError("with a computed table has no compiled kernel; the reference engine "
                             "runs it");
    Value table = e.lookup(embed.getTable());
    const RowsOfPart part = rowsOfPart(e, embed);
    Value rows;
    if (auto quantized = KernelEmitter::quantized(table)) {
      rows = decodeRows(e, quantized, part.ids);
    } else {
      MLIRContext *context = op->getContext();
      AffineExpr s, j;
      bindDims(context, s, j);
      rows = e.generic(e.emptyRows(ranked(embed).getShape()), {part.ids},
                       {AffineMap::get(2, 0, {s}, context), AffineMap::get(2, 0, {s, j}, context)},
                       {IteratorType::parallel, IteratorType::parallel},
                       [&](OpBuilder &b, Location l, ValueRange args) -> Value {
                         Value row = arith::IndexCastOp::create(b, l, b.getIndexType(), args[0]);
                         Value column = linalg::IndexOp::create(b, l, 1);
                         Value x = tensor::ExtractOp::create(b, l, table, ValueRange{row, column});
                         return KernelEmitter::widen(b, l, x);
                       });
    }
    if (part.there)
      rows =
          e.mapWithReduced(rows, part.there, [](OpBuilder &b, Location l, ValueRange a) -> Value {
            return arith::MulFOp::create(b, l, a[0], a[1]);
          });
    e.bind(embed, rows);
    return success();
  }
};

} // namespace

namespace ctxc {
void registerSourceLoweringModels(MLIRContext *context) {
  xf::ParamOp::attachInterface<LowerParam>(*context);
  xf::SettingOp::attachInterface<LowerSetting>(*context);
  xf::TokenOp::attachInterface<LowerToken>(*context);
  xf::PositionOp::attachInterface<LowerPosition>(*context);
  xf::ConstantOp::attachInterface<LowerConstant>(*context);
  xf::EmbedOp::attachInterface<LowerEmbed>(*context);
}
} // namespace ctxc
