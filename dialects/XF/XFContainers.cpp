// Blocks, models and layers, and the settings that a layer gives to a block.
#include "dialects/XF/XF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"

using namespace mlir;
using namespace ctxc::xf;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static bool isPrintable(StringRef name) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(name.bytes_begin());
  if (!llvm::isLegalUTF8String(&begin, reinterpret_cast<const llvm::UTF8 *>(name.bytes_end())))
    return false;
  for (size_t i = 0; i < name.size(); ++i) {
    auto byte = [&](size_t at) { return static_cast<unsigned char>(name[at]); };
    // U+0080 to U+009F take two bytes.
    if (byte(i) < 0x20 || byte(i) == 0x7f || (byte(i) == 0xc2 && byte(i + 1) < 0xa0))
      return false;
  }
  return true;
}

LogicalResult ctxc::xf::verifyName(Operation *op, StringRef name) {
  if (isPrintable(name))
    return success();
  std::string shown;
  llvm::raw_string_ostream os(shown);
  llvm::printEscapedString(name, os);
  return op->emitOpError("has the name '")
         << shown << "'; names are UTF-8 without control characters";
}

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

/// A value of a block: see C3 of xf.block.
static bool isBlockValue(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool isNumber = tensor && tensor.getRank() == 0 && tensor.getElementType().isInteger(32);
  return isSized(type) || isNumber || type.isIndex() || type.isF32();
}

LogicalResult BlockOp::verifyRegions() {
  // C4
  if (failed(verifyName(*this, getSymName())))
    return failure();
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
    if (isa<LayerOp, BlockOp, ModelOp>(op) || op.getNumRegions())
      return op.emitOpError("cannot stand in a block; layers belong to xf.model");
  // C3
  if (getResultTypes().empty())
    return yield.emitOpError("gives no value; a block has an output");
  auto refuse = [&](Operation *op, Type type) {
    return op->emitOpError("has a value of type ")
           << type << "; in a block it must be a tensor of one or more dimensions, fixed and not 0";
  };
  for (Type type : getArgumentTypes())
    if (!isSized(type))
      return refuse(*this, type);
  for (Type type : getResultTypes())
    if (!isSized(type))
      return refuse(*this, type);
  for (Operation &op : getBody().front())
    for (Type type : op.getResultTypes())
      if (!isBlockValue(type))
        return refuse(&op, type);
  return success();
}

//===----------------------------------------------------------------------===//
// ModelOp
//===----------------------------------------------------------------------===//

LogicalResult ModelOp::verifyRegions() {
  // C4
  if (failed(verifyName(*this, getSymName())))
    return failure();
  if (getBody().getNumArguments())
    return emitOpError("has a body with arguments; a model reads xf.token and xf.position");
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
  // C4
  if (failed(verifyName(*this, getPrefix())))
    return failure();
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
  llvm::StringMap<SmallVector<SettingOp, 1>> settings;
  llvm::StringSet<> params;
  block.walk([&](SettingOp s) { settings[s.getName()].push_back(s); });
  block.walk([&](ParamOp p) { params.insert(p.getName()); });
  for (NamedAttribute given :
       getSettingsAttr() ? getSettingsAttr().getValue() : ArrayRef<NamedAttribute>()) {
    auto it = settings.find(given.getName());
    if (it == settings.end())
      return emitOpError("gives a setting '")
             << given.getName().getValue() << "' that block '" << getBlock() << "' does not have";
    for (SettingOp setting : it->second)
      if (!SettingOp::accepts(setting.getType(), given.getValue()))
        return emitOpError("gives setting '")
               << given.getName().getValue() << "' the value " << given.getValue()
               << ", which is not of type " << setting.getType();
  }
  for (auto &entry : settings)
    for (SettingOp setting : entry.second)
      if (!getSettingValue(setting))
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
    auto stored = dyn_cast<StringAttr>(given.getValue());
    if (!stored)
      return emitOpError("binds '") << given.getName().getValue() << "' to " << given.getValue()
                                    << "; a stored name is a string";
    if (failed(verifyName(*this, stored.getValue())))
      return failure();
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
    return integer && (integer.getType().isIndex() || integer.getType().isSignlessInteger()) &&
           integer.getValue().getBitWidth() <= 64 && integer.getValue().isNonNegative();
  }
  if (type.isF32()) {
    auto number = dyn_cast<FloatAttr>(value);
    return number && number.getValue().isFinite();
  }
  auto tensor = cast<RankedTensorType>(type);
  if (auto rope = dyn_cast<RopeAttr>(value))
    return tensor.getRank() == 1 && tensor.getDimSize(0) == rope.getDims() / 2;
  auto dense = dyn_cast<DenseElementsAttr>(value);
  return dense && dense.getType() == type &&
         llvm::all_of(dense.getValues<APFloat>(), [](const APFloat &x) { return x.isFinite(); });
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
  // C3
  constexpr int64_t most = 1 << 24;
  if (auto tensor = dyn_cast<RankedTensorType>(getType()); tensor && tensor.getNumElements() > most)
    return emitOpError("has type ") << tensor << "; a setting has at most " << most << " numbers";
  // C1
  if (Attribute value = getValueAttr(); value && !accepts(getType(), value))
    return emitOpError("has the default ") << value << ", which is not of type " << getType();
  // C2
  return verifyName(*this, getName());
}
