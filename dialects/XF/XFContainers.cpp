// Blocks, models, layers, and the settings that a layer gives a block.
#include "dialects/XF/XF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ctxc::xf;

//===----------------------------------------------------------------------===//
// BlockOp
//===----------------------------------------------------------------------===//

ParseResult BlockOp::parse(OpAsmParser &parser, OperationState &result) {
  auto build = [](Builder &b, ArrayRef<Type> args, ArrayRef<Type> results,
                  function_interface_impl::VariadicFlag,
                  std::string &) { return b.getFunctionType(args, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name), build,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void BlockOp::print(OpAsmPrinter &p) {
  function_interface_impl::printFunctionOp(p, *this, /*isVariadic=*/false,
                                           getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

LogicalResult BlockOp::verifyRegions() {
  if (!llvm::hasSingleElement(getBody()))
    return emitOpError("needs a body of one straight stretch of ops");
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield)
    return emitOpError("must end in xf.yield");
  // C1
  if (yield.getOperandTypes() != getResultTypes())
    return yield.emitOpError("gives (")
           << yield.getOperandTypes() << ") where block '" << getSymName() << "' has results ("
           << getResultTypes() << ")";
  // C2
  for (Operation &op : getBody().front())
    if (isa<LayerOp, BlockOp, ModelOp>(op))
      return op.emitOpError("cannot stand in a block; layers belong to xf.model");
  return success();
}

//===----------------------------------------------------------------------===//
// ModelOp
//===----------------------------------------------------------------------===//

LogicalResult ModelOp::verifyRegions() {
  // C3
  if (getPositions() && int64_t(*getPositions()) <= 0)
    return emitOpError("ends at position ") << int64_t(*getPositions()) << "; it must be positive";
  // C1
  auto yield = getBody().front().empty() ? YieldOp() : dyn_cast<YieldOp>(getBody().front().back());
  if (!yield || yield.getNumOperands() != 1)
    return emitOpError("must end in an xf.yield of one value, the logits");
  return success();
}

//===----------------------------------------------------------------------===//
// LayerOp
//===----------------------------------------------------------------------===//

std::string LayerOp::getStoredName(StringRef name) {
  if (DictionaryAttr bind = getBindAttr())
    if (auto stored = bind.getAs<StringAttr>(name))
      return stored.str();
  return (getPrefix() + name).str();
}

Attribute LayerOp::getSettingValue(SettingOp setting) {
  if (DictionaryAttr settings = getSettingsAttr())
    if (Attribute value = settings.get(setting.getName()))
      return value;
  return setting.getValueAttr();
}

LogicalResult LayerOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // C2 of xf.model
  auto block = symbols.lookupNearestSymbolFrom<BlockOp>(*this, getBlockAttr());
  if (!block)
    return emitOpError("names '") << getBlock() << "', which is no xf.block of this module";
  // C1
  if (getOperandTypes() != TypeRange(block.getArgumentTypes()) ||
      getResultTypes() != TypeRange(block.getResultTypes())) {
    auto diag = emitOpError("runs block '")
                << getBlock() << "' as " << getOperandTypes() << " to " << getResultTypes();
    diag.attachNote(block.getLoc())
        << "the block maps " << block.getArgumentTypes() << " to " << block.getResultTypes();
    return diag;
  }
  // C2
  llvm::StringMap<SettingOp> settings;
  llvm::StringSet<> params;
  block.walk([&](SettingOp s) { settings.try_emplace(s.getName(), s); });
  block.walk([&](ParamOp p) { params.insert(p.getName()); });
  for (NamedAttribute given :
       getSettingsAttr() ? getSettingsAttr().getValue() : ArrayRef<NamedAttribute>()) {
    auto it = settings.find(given.getName());
    if (it == settings.end())
      return emitOpError("gives a setting '")
             << given.getName().getValue() << "' that block '" << getBlock() << "' does not have";
    Type type = it->second.getResult().getType();
    if (!SettingOp::accepts(type, given.getValue()))
      return emitOpError("gives setting '")
             << given.getName().getValue() << "' the value " << given.getValue()
             << ", which is not of type " << type;
  }
  for (auto &entry : settings)
    if (!getSettingValue(entry.second))
      return emitOpError("does not give setting '")
             << entry.first() << "', which has no default in block '" << getBlock() << "'";
  // C3
  auto known = [&](StringRef name, StringRef what) -> LogicalResult {
    if (params.contains(name))
      return success();
    return emitOpError(what) << " '" << name << "', which is no parameter of block '" << getBlock()
                             << "'";
  };
  for (NamedAttribute given :
       getBindAttr() ? getBindAttr().getValue() : ArrayRef<NamedAttribute>()) {
    if (failed(known(given.getName().getValue(), "binds")))
      return failure();
    if (!isa<StringAttr>(given.getValue()))
      return emitOpError("binds '") << given.getName().getValue() << "' to " << given.getValue()
                                    << "; a stored name is a string";
  }
  for (Attribute name : getFrozenAttr() ? getFrozenAttr().getValue() : ArrayRef<Attribute>())
    if (failed(known(cast<StringAttr>(name).getValue(), "freezes")))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// SettingOp
//===----------------------------------------------------------------------===//

bool SettingOp::accepts(Type type, Attribute value) {
  if (isa<IndexType>(type)) {
    auto integer = dyn_cast<IntegerAttr>(value);
    return integer && integer.getValue().isNonNegative();
  }
  if (type.isF32())
    return isa<FloatAttr>(value);
  auto tensor = cast<RankedTensorType>(type);
  if (auto rope = dyn_cast<RopeAttr>(value))
    return tensor.getRank() == 1 && tensor.getDimSize(0) == rope.getDims() / 2;
  auto dense = dyn_cast<DenseElementsAttr>(value);
  return dense && dense.getType() == type;
}

SmallVector<double> SettingOp::numbers(Type type, Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return {double(integer.getInt())};
  if (auto number = dyn_cast<FloatAttr>(value))
    return {number.getValueAsDouble()};
  if (auto rope = dyn_cast<RopeAttr>(value))
    return rope.getFrequencies();
  SmallVector<double> result;
  for (APFloat x : cast<DenseElementsAttr>(value).getValues<APFloat>())
    result.push_back(x.convertToDouble());
  return result;
}

LogicalResult SettingOp::verify() {
  // C1
  if (Attribute value = getValueAttr(); value && !accepts(getType(), value))
    return emitOpError("has the default ") << value << ", which is not of type " << getType();
  return success();
}
