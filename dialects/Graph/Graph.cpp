#include "dialects/Graph/Graph.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::graph;

#include "dialects/Graph/GraphDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Graph/GraphAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Graph/GraphTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Graph/GraphOps.cpp.inc"

void GraphDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Graph/GraphAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Graph/GraphTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Graph/GraphOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// !graph.tensor
//===----------------------------------------------------------------------===//

// C1
LogicalResult SymbolicType::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<Attribute> sizes, Type) {
  for (Attribute size : sizes) {
    auto number = dyn_cast<IntegerAttr>(size);
    auto text = dyn_cast<StringAttr>(size);
    if ((number && number.getInt() >= 0) || (text && !text.empty()))
      continue;
    return emitError() << "has the size " << size
                       << "; expected a number from 0 on, or the text of an expression";
  }
  return success();
}

std::optional<int64_t> SymbolicType::getNumber(unsigned axis) const {
  if (auto number = dyn_cast<IntegerAttr>(getSizes()[axis]))
    return number.getInt();
  return std::nullopt;
}

Type SymbolicType::parse(AsmParser &parser) {
  SmallVector<Attribute> sizes;
  Type element;
  SMLoc at = parser.getCurrentLocation();
  auto size = [&]() -> ParseResult {
    int64_t number;
    std::string text;
    OptionalParseResult isNumber = parser.parseOptionalInteger(number);
    if (isNumber.has_value()) {
      sizes.push_back(parser.getBuilder().getI64IntegerAttr(number));
      return *isNumber;
    }
    if (parser.parseString(&text))
      return failure();
    sizes.push_back(parser.getBuilder().getStringAttr(text));
    return success();
  };
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, size) ||
      parser.parseComma() || parser.parseType(element) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(at); }, parser.getContext(), sizes, element);
}

void SymbolicType::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getSizes(), printer, [&](Attribute size) {
    if (auto number = dyn_cast<IntegerAttr>(size))
      printer << number.getInt();
    else
      printer << size;
  });
  printer << "], " << getElementType() << ">";
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verifyRegions() {
  // C1
  Block &body = getBody().front();
  if (body.getNumArguments() || body.empty() || !isa<ReturnOp>(body.back()))
    return emitOpError("has a body that takes arguments or ends in no graph.return; expected "
                       "neither");
  // C2
  llvm::StringSet<> inputs, stored;
  for (Operation &op : body) {
    if (auto input = dyn_cast<InputOp>(op); input && !inputs.insert(input.getName()).second)
      return input.emitOpError("has the name of another, '") << input.getName() << "'";
    if (auto tensor = dyn_cast<StoredOp>(op); tensor && !stored.insert(tensor.getName()).second)
      return tensor.emitOpError("has the name of another, '") << tensor.getName() << "'";
  }
  return xf::verifyName(*this, getSymName());
}

// C1
LogicalResult InputOp::verify() {
  if (!llvm::is_contained({"token", "position", "activation"}, getRole()))
    return emitOpError("has the role '")
           << getRole() << "'; expected token, position or activation";
  return xf::verifyName(*this, getName());
}

LogicalResult StoredOp::verify() {
  // C1
  if (getName().empty())
    return emitOpError("has no name");
  if (failed(xf::verifyName(*this, getName())))
    return failure();
  // C2
  if (!getValue())
    return success();
  auto type = cast<SymbolicType>(getType());
  auto shape = cast<ShapedType>(getValue()->getType()).getShape();
  bool fits = type.getRank() == int64_t(shape.size());
  for (unsigned i = 0; fits && i < shape.size(); ++i)
    fits = type.getNumber(i) == shape[i];
  return fits ? success() : emitOpError("has numbers of another shape than its type");
}

static bool hasAxis(Type type, int64_t axis) {
  return axis >= -1 && axis < cast<SymbolicType>(type).getRank();
}

LogicalResult FunctionOp::verifyRegions() {
  Block &body = getBody().front();
  auto result = body.empty() ? ReturnOp() : dyn_cast<ReturnOp>(body.back());
  // C2
  if (!result || result.getValues().size() != 1)
    return emitOpError("has a body that does not end in a graph.return of one value");
  for (Operation &op : body.without_terminator()) {
    auto input = dyn_cast<InputOp>(op);
    auto stored = dyn_cast<StoredOp>(op);
    if (isa<CallOp>(op) || (input && input.getRole() == "position") ||
        (stored && stored.getValue()))
      continue;
    return op.emitOpError("is in a graph.function; expected calls, positions, and stored tensors "
                          "with their numbers");
  }
  // C1
  bool fits = getAxes().size() == body.getNumArguments() &&
              hasAxis(result.getValues()[0].getType(), getResultAxis());
  for (auto [argument, axis] : llvm::zip(body.getArguments(), getAxes()))
    fits &= isa<SymbolicType>(argument.getType()) && hasAxis(argument.getType(), axis);
  if (!fits)
    return emitOpError("has axes that do not fit its arguments or its result");
  return xf::verifyName(*this, getSymName());
}

FunctionOp FunctionOp::ofOp(Operation *op) {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>(bodyName);
  return name ? SymbolTable::lookupNearestSymbolFrom<FunctionOp>(op, name) : FunctionOp();
}

LogicalResult GraphDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == FunctionOp::whyName && isa<StringAttr>(attribute.getValue()))
    return success();
  if (attribute.getName() != FunctionOp::bodyName)
    return op->emitError("has the attribute '")
           << attribute.getName().getValue() << "', which the graph dialect does not have";
  if (!isa<FlatSymbolRefAttr>(attribute.getValue()) || op->getNumResults() != 1)
    return op->emitOpError("has a graph.body that is no symbol, or more than one result");
  // A block may stand in another module than the functions; then it cannot be run.
  FunctionOp function = FunctionOp::ofOp(op);
  if (function && function.getAxes().size() != op->getNumOperands())
    return op->emitOpError("has ") << op->getNumOperands() << " operands, and a graph.body of "
                                   << function.getAxes().size();
  return success();
}

static void collectOperands(Attribute attribute, llvm::SmallBitVector &named, bool &outside) {
  if (auto operand = dyn_cast<OperandAttr>(attribute)) {
    if (operand.getIndex() < named.size())
      named.set(operand.getIndex());
    else
      outside = true;
  } else if (auto list = dyn_cast<ArrayAttr>(attribute)) {
    for (Attribute element : list)
      collectOperands(element, named, outside);
  }
}

LogicalResult CallOp::verify() {
  // C1
  if (getTarget().empty())
    return emitOpError("has no target");
  if (failed(xf::verifyName(*this, getTarget())) || failed(xf::verifyName(*this, getPath())))
    return failure();
  // C2
  llvm::SmallBitVector named(getOperands().size());
  bool outside = false;
  for (NamedAttribute argument : getArguments())
    collectOperands(argument.getValue(), named, outside);
  if (outside || !named.all())
    return emitOpError("has ") << getOperands().size() << " operands, and arguments that "
                               << (outside ? "name another" : "do not name all of them");
  return success();
}

Value CallOp::getTensor(StringRef name) {
  auto operand = dyn_cast_or_null<OperandAttr>(getArgument(name));
  return operand ? getOperands()[operand.getIndex()] : Value();
}

StringRef CallOp::getBaseName() {
  auto [space, rest] = getTarget().split('.');
  return rest.empty() ? space : rest.split('.').first;
}

// C1
LogicalResult OpaqueOp::verify() {
  return success(succeeded(xf::verifyName(*this, getTarget())) &&
                 succeeded(xf::verifyName(*this, getWhy())));
}

xf::Solvability OpaqueOp::getSolvability(unsigned, std::string &reason) {
  reason = "of '" + getTarget().str() + "' is known only what it reads: " + getWhy().str();
  return xf::Solvability::No;
}

Value OpaqueOp::buildSolve(OpBuilder &, unsigned, Value, ValueRange) {
  llvm_unreachable("nothing solves an op of which nothing is known");
}
