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

// C1
LogicalResult StoredOp::verify() {
  if (getName().empty())
    return emitOpError("has no name");
  return xf::verifyName(*this, getName());
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
