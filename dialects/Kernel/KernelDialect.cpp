#include "dialects/Kernel/IntegerProducts.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::kernel;

#include "dialects/Kernel/KernelDialect.cpp.inc"
#include "dialects/Kernel/KernelEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/KernelAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.cpp.inc"

void KernelDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Kernel/KernelAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Kernel/KernelOps.cpp.inc"
      >();
}

ArgAttr kernel::roleOf(FunctionOpInterface function, unsigned argument) {
  return function.getArgAttrOfType<ArgAttr>(argument, KernelDialect::ArgAttrHelper::getNameStr());
}

ArgAttr kernel::roleOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp()) : nullptr;
  return function ? roleOf(function, argument.getArgNumber()) : ArgAttr();
}

std::optional<Product> kernel::productOf(Operation *op) {
  ProductAttr product = KernelDialect::ProductAttrHelper(op->getContext()).getAttr(op);
  return product ? std::optional(product.getValue()) : std::nullopt;
}

bool kernel::multipliesInIntegers(Type matrix) {
  auto type = dyn_cast<RankedTensorType>(matrix);
  auto quantized = type ? dyn_cast<xf::QuantizedType>(type.getElementType()) : xf::QuantizedType();
  return quantized && quantized.getFormat() != xf::BlockFormat::f8e4m3; // floats of eight bits
}

void kernel::markIntegerProducts(ModuleOp module) {
  module.walk([](xf::ParamOp param) {
    if (multipliesInIntegers(param.getType()))
      mark<Integer>(param);
  });
}

void kernel::markRoundedStates(ModuleOp module) {
  module.walk([](xf::AttentionOp attention) { mark<RoundedState>(attention); });
}

//===----------------------------------------------------------------------===//
// Verifiers of the attributes alone
//===----------------------------------------------------------------------===//

LogicalResult ArgAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, ArgKind kind,
                              StringAttr name, int64_t index, Run run, RankedTensorType stored) {
  bool isPart = kind == ArgKind::Store || kind == ArgKind::Load;
  bool isNamed =
      isPart || kind == ArgKind::Param || kind == ArgKind::Bank || kind == ArgKind::Setting;
  auto complain = [&] { return emitError() << "role '" << stringifyArgKind(kind) << "' "; };
  // C2
  if (isNamed != (name && !name.empty()))
    return complain() << (isNamed ? "needs" : "has no") << " name";
  // C3
  bool isCounted = isPart || kind == ArgKind::Input || kind == ArgKind::Output ||
                   kind == ArgKind::State || kind == ArgKind::Before || kind == ArgKind::After;
  if (index < 0 || (index && !isCounted))
    return complain() << "has index " << index << "; "
                      << (isCounted ? "it counts from 0" : "there is one");
  // C4
  if (run == Run::Reduced && kind != ArgKind::State && kind != ArgKind::Slots &&
      kind != ArgKind::Room && kind != ArgKind::Before)
    return complain() << (kind == ArgKind::After
                              ? "is of the full run alone: a reduced one carries nothing on"
                              : "is of no run; states and slots are");
  // C5
  if (stored && kind != ArgKind::Bank && kind != ArgKind::Param)
    return complain() << "has no stored type; a bank and a parameter have";
  if (kind == ArgKind::Bank && !stored)
    return complain() << "needs the stored type of the whole parameter";
  if (kind == ArgKind::Param && stored && !isa<xf::QuantizedType>(stored.getElementType()))
    return complain() << "has stored type " << stored
                      << "; only a quantised one differs from the argument's";
  return success();
}

LogicalResult CostAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                               DenseI64ArrayAttr weights, DenseI64ArrayAttr cache,
                               DenseI64ArrayAttr patch, DenseI64ArrayAttr activations,
                               DenseI64ArrayAttr operations) {
  // C1
  for (DenseI64ArrayAttr each : {weights, cache, patch, activations, operations})
    if (each && each.size() != 3)
      return emitError() << "a cost has " << each.size()
                         << " numbers; it needs a fixed one, and one for each run's visible tokens";
  return success();
}

//===----------------------------------------------------------------------===//
// Verifiers of the attributes on their ops
//===----------------------------------------------------------------------===//

/// Whether the argument is a quantised tensor as it is stored, or as it is in a GPU's memory.
static bool isBytesOf(RankedTensorType stored, MemRefType type) {
  return isa<xf::QuantizedType>(stored.getElementType()) && type.getRank() == 1 &&
         type.getElementType().isInteger(8) &&
         (type.getDimSize(0) == xf::QuantizedType::bytesOf(stored) ||
          type.getDimSize(0) == xf::QuantizedType::deviceBytesOf(stored));
}

/// What an argument in `role` must look like, and whether `type` does.
static std::pair<bool, StringRef> fits(MemRefType type, ArgAttr role) {
  Type element = type.getElementType();
  int64_t rank = type.getRank();
  switch (role.getKind()) {
  case ArgKind::Positions:
  case ArgKind::Tokens:
  case ArgKind::Slots:
    return {rank == 1 && element.isInteger(32), "one i32 for each token"};
  case ArgKind::Input:
  case ArgKind::Output:
    return {rank >= 1 && element.isF32(), "numbers of f32 for each token"};
  case ArgKind::State:
    return {rank >= 1 && (element.isF32() || element.isBF16()),
            "numbers of f32 or bf16 for each token"};
  case ArgKind::Param:
    if (RankedTensorType stored = role.getStored())
      return {isBytesOf(stored, type), "the bytes of its stored type"};
    return {type.hasStaticShape(), "of a known shape"};
  case ArgKind::Bank: {
    RankedTensorType stored = role.getStored();
    bool areAddresses = rank == 1 && element.isInteger(64) && stored.getRank() &&
                        type.getDimSize(0) == stored.getDimSize(0);
    return {areAddresses || isBytesOf(stored, type) ||
                (type.getShape() == stored.getShape() && element == stored.getElementType()),
            "an i64 for each slice, or what is stored"};
  }
  case ArgKind::Setting:
    return {type.hasStaticShape() && (element.isF32() || element.isInteger(64)),
            "numbers of f32 or i64, of a known shape"};
  case ArgKind::Store:
    return {rank >= 1, "a part for each row"};
  case ArgKind::Load:
    return {type.hasStaticShape(), "a part, of a known shape"};
  case ArgKind::Counts:
    return {rank == 3 && type.getDimSize(2) == 2 && element.isInteger(64),
            "a pair of i64 for each row and obligation"};
  case ArgKind::Replay:
    return {rank == 1 && element.isF64(), "one f64 for each row"};
  case ArgKind::Room:
    return {rank == 1 && type.getDimSize(0) == 1 && element.isInteger(64), "one i64"};
  case ArgKind::Before:
  case ArgKind::After:
    return {type.hasStaticShape() && element.isF32(), "numbers of f32, of a known shape"};
  }
  llvm_unreachable("all kinds are above");
}

LogicalResult KernelDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                      NamedAttribute attribute) {
  auto role = dyn_cast<ArgAttr>(attribute.getValue());
  auto function = dyn_cast<func::FuncOp>(op);
  if (attribute.getName() != ArgAttrHelper::getNameStr() || !role || !function)
    return op->emitOpError("argument #")
           << argument << " has '" << attribute.getName().getValue()
           << "'; an argument of func.func may have kernel.arg, of type #kernel.arg";
  // C1
  auto type = dyn_cast<MemRefType>(function.getArgumentTypes()[argument]);
  auto [isGood, expected] = type ? fits(type, role) : std::pair(false, StringRef("a memref"));
  if (!isGood)
    return op->emitOpError("argument #")
           << argument << " has role " << role << " and type "
           << function.getArgumentTypes()[argument] << "; it must be " << expected;
  // C6
  for (unsigned other = 0; other < argument; ++other)
    if (roleOf(function, other) == role)
      return op->emitOpError("argument #")
             << argument << " has role " << role << ", which is argument #" << other << "'s";
  return success();
}

/// Whether a linalg op computes the product that it is marked as.
static bool isProduct(linalg::GenericOp op, Product product) {
  if (op.getNumLoops() != 5 || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  enum : unsigned { s, g, r, t, x, d = x };
  auto map = [&](ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(5, dims, op.getContext());
  };
  Block &body = *op.getBody();
  if (!llvm::hasNItems(body, 3) || body.getOps<arith::MulFOp>().empty() ||
      body.getOps<arith::AddFOp>().empty())
    return false;
  bool isScores = product == Product::Scores;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return maps[0] == (isScores ? map({s, g, r, d}) : map({s, g, r, t})) &&
         maps[1] == map({t, g, x}) && maps[2] == (isScores ? map({s, g, r, t}) : map({s, g, r, x}));
}

LogicalResult KernelDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  struct Place {
    StringRef name, ops;
    bool isHere, isTyped;
  };
  bool isUnit = isa<UnitAttr>(attribute.getValue());
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  auto generic = dyn_cast<linalg::GenericOp>(op);
  auto product = dyn_cast<ProductAttr>(attribute.getValue());
  const Place places[] = {
      {ProductAttrHelper::getNameStr(), "linalg.generic", bool(generic),
       generic && product && isProduct(generic, product.getValue())},
      {Causal::getNameStr(), "an op of linalg", isa<linalg::LinalgOp>(op), isUnit},
      {RowLoop::getNameStr(), "scf.for", isa<scf::ForOp>(op), isUnit},
      {LinalgLoop::getNameStr(), "scf.for", isa<scf::ForOp>(op), isUnit},
      {ReadAttrHelper::getNameStr(), "bufferization.to_buffer", isa<bufferization::ToBufferOp>(op),
       number && !number.getValue().isNegative()},
      {Rounded::getNameStr(), "a function", isa<FunctionOpInterface>(op), isUnit},
      {Split::getNameStr(), "a function", isa<FunctionOpInterface>(op), isUnit},
      {Integer::getNameStr(), "a quantised matrix, or a bank of them",
       isa<xf::ParamOp, QuantizedOp, ExpertsOp>(op), isUnit},
      {Alone::getNameStr(), "xf.attention", isa<xf::AttentionOp>(op), isUnit},
      {RoundedState::getNameStr(), "xf.attention", isa<xf::AttentionOp>(op), isUnit},
      {RowsFrom::getNameStr(), "xf.embed", isa<xf::EmbedOp>(op),
       number && number.getType().isInteger(32) && !number.getValue().isNegative()},
      {CostAttrHelper::getNameStr(), "gpu.launch_func", isa<gpu::LaunchFuncOp>(op),
       isa<CostAttr>(attribute.getValue())}};
  StringRef name = attribute.getName();
  auto place = llvm::find_if(places, [&](const Place &each) { return each.name == name; });
  if (place == std::end(places))
    return op->emitOpError("has '") << name << "', which is no mark of the kernel dialect";
  if (!place->isHere)
    return op->emitOpError("has '") << name << "', which is for " << place->ops;
  if (!place->isTyped)
    return op->emitOpError("has '") << name << "' = " << attribute.getValue()
                                    << "; see the kernel dialect for what it must be";
  return success();
}
