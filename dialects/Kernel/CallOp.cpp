#include "ctxc/Numerics/BlockFormats.h"
#include "ctxc/Numerics/ByteVectors.h"
#include "ctxc/Numerics/ExpertGroups.h"
#include "ctxc/Numerics/FixedVectors.h"
#include "ctxc/Numerics/KernelABI.h"
#include "ctxc/Numerics/ScaledFormats.h"
#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::kernel;

//===----------------------------------------------------------------------===//
// The support functions
//===----------------------------------------------------------------------===//

template <typename T> static Type typeOf(Builder b) {
  if constexpr (std::is_same_v<T, float>)
    return b.getF32Type();
  else if constexpr (std::is_same_v<T, double>)
    return b.getF64Type();
  else if constexpr (std::is_integral_v<T>)
    return b.getIntegerType(8 * sizeof(T));
  else
    return b.getI8Type();
}

template <typename T> static Parameter parameterOf(MLIRContext *context) {
  using Number = std::remove_pointer_t<T>;
  constexpr bool isMemory = std::is_pointer_v<T>;
  return {typeOf<std::remove_const_t<Number>>(Builder(context)), isMemory,
          isMemory && !std::is_const_v<Number>};
}

/// The signature of a C function, which is given by its type.
template <typename Result, typename... Arguments>
static Signature readSignature(StringRef name, Result (*)(Arguments...), MLIRContext *context) {
  return {name, {parameterOf<Arguments>(context)...}, !std::is_void_v<Result>};
}

static Signature ofRows(Signature signature, int shared) {
  signature.isOfRows = true;
  if (shared >= 0)
    signature.parameters[signature.numbers().size() + shared].isShared = true;
  return signature;
}

ArrayRef<Parameter> Signature::numbers() const & {
  return ArrayRef(parameters).take_until([](const Parameter &each) { return each.isMemory; });
}

ArrayRef<Parameter> Signature::memory() const & {
  return ArrayRef(parameters).drop_front(numbers().size());
}

Signature kernel::signatureOf(SupportFunction function, MLIRContext *context) {
  switch (function) {
#define CTXC_SUPPORT_FUNCTION(name)                                                                \
  case SupportFunction::name:                                                                      \
    return readSignature(#name, decltype (&::name)(), context);
#define CTXC_ROW_FUNCTION(name, shared)                                                            \
  case SupportFunction::name:                                                                      \
    return ofRows(readSignature(#name, decltype (&::name)(), context), shared);
#include "ctxc/Numerics/SupportFunctions.def"
  }
  llvm_unreachable("all functions are above");
}

std::optional<SupportFunction> kernel::supportFunctionOf(StringRef name) {
#define CTXC_SUPPORT_FUNCTION(each)                                                                \
  if (name == #each)                                                                               \
    return SupportFunction::each;
#include "ctxc/Numerics/SupportFunctions.def"
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// kernel.call
//===----------------------------------------------------------------------===//

void CallOp::build(OpBuilder &b, OperationState &state, SupportFunction function,
                   ArrayRef<Number> numbers, ValueRange memory) {
  Signature signature = signatureOf(function, b.getContext());
  SmallVector<Attribute> typed;
  for (auto [number, parameter] : llvm::zip_equal(numbers, signature.numbers()))
    typed.push_back(isa<FloatType>(parameter.type)
                        ? Attribute(FloatAttr::get(parameter.type, std::get<double>(number)))
                        : IntegerAttr::get(parameter.type, std::get<int64_t>(number)));
  build(b, state, signature.name, b.getArrayAttr(typed), memory);
}

Signature CallOp::getSignature() { return signatureOf(getFunction(), getContext()); }

/// The distance between two rows of memory, in elements; none where it is not known, or where the
/// elements of a row do not lie one after the other.
static std::optional<int64_t> rowDistance(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset, inner = 1;
  if (!type.getRank() || failed(type.getStridesAndOffset(strides, offset)))
    return std::nullopt;
  for (auto [size, stride] :
       llvm::reverse(llvm::zip(type.getShape().drop_front(), ArrayRef(strides).drop_front()))) {
    if (ShapedType::isDynamic(size) || (size != 1 && stride != inner))
      return std::nullopt;
    inner *= size;
  }
  return ShapedType::isDynamic(strides[0]) ? std::nullopt : std::optional(strides[0]);
}

int64_t CallOp::getRowDistance(unsigned i) {
  return *rowDistance(cast<MemRefType>(getMemory()[i].getType()));
}

LogicalResult CallOp::verify() {
  // C1
  auto function = supportFunctionOf(getCallee());
  Signature signature = function ? getSignature() : Signature();
  if (!signature.isOfRows) {
    InFlightDiagnostic error = emitOpError("calls @") << getCallee() << "; expected one of";
#define CTXC_ROW_FUNCTION(name, shared) error << " @" #name;
#include "ctxc/Numerics/SupportFunctions.def"
    return error;
  }
  auto types = [](ArrayRef<Parameter> parameters) {
    return llvm::map_to_vector(parameters, [](const Parameter &each) { return each.type; });
  };
  auto complain = [&] { return emitOpError("gives @") << getCallee() << " "; };
  // C2
  if (!llvm::equal(getNumbers(), signature.numbers(), [](Attribute number, const Parameter &each) {
        return isa<IntegerAttr, FloatAttr>(number) &&
               cast<TypedAttr>(number).getType() == each.type;
      }))
    return complain() << "the numbers " << getNumbers() << "; expected numbers of ("
                      << types(signature.numbers()) << ")";
  // C3
  if (!llvm::equal(getMemory(), signature.memory(), [](Value memory, const Parameter &each) {
        return cast<MemRefType>(memory.getType()).getElementType() == each.type;
      }))
    return complain() << "memory of (" << getMemory().getTypes() << "); expected elements of ("
                      << types(signature.memory()) << ")";
  // C4
  Type last = getMemory().back().getType();
  for (auto [memory, parameter] : llvm::reverse(llvm::zip(getMemory(), signature.memory()))) {
    auto type = cast<MemRefType>(memory.getType());
    if (parameter.isShared)
      continue;
    if (!rowDistance(type))
      return complain() << Type(type)
                        << "; expected rows at a known distance, whose elements lie one after the "
                           "other";
    if (failed(verifyCompatibleShape(type.getShape().take_front(),
                                     cast<MemRefType>(last).getShape().take_front())))
      return complain() << Type(type) << " and " << last << "; expected as many rows in both";
  }
  return success();
}

void CallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  Signature signature = getSignature();
  for (auto [operand, parameter] : llvm::zip(getMemoryMutable(), signature.memory())) {
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (parameter.isWritten)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}
