#include "Capture.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

graph::StoredOp ctxc::pt2::parameterOf(Value value) {
  auto stored = value ? value.getDefiningOp<graph::StoredOp>() : graph::StoredOp();
  if (!stored)
    return {};
  auto type = cast<graph::SymbolicType>(stored.getType());
  Type element = type.getElementType();
  bool isParameter = element.isF32() || element.isBF16() || element.isF16();
  for (unsigned i = 0; i < type.getRank(); ++i)
    isParameter &= type.getNumber(i).value_or(0) > 0;
  // A number without an axis that is not trained is a constant of the program.
  return isParameter && (type.getRank() > 0 || !stored.getFixed()) ? stored : graph::StoredOp();
}

Capture::Capture(ModuleOp module, graph::ProgramOp program, const TokenAxes &axes)
    : module(module), program(program), axes(axes) {
  counted = llvm::none_of(program.getBody().getOps<graph::InputOp>(),
                          [](graph::InputOp input) { return input.getRole() == "position"; });
}

/// Finds the ops that lead from the arguments to `result`; stored tensors become arguments.
bool Capture::collect(Value result, Function &function) {
  needed.clear();
  llvm::DenseSet<Value> given(function.arguments.begin(), function.arguments.end());
  SmallVector<Value> work{result};
  SmallVector<Value> stored;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (given.contains(value) || !needed.insert(op).second)
      continue;
    if (auto tensor = dyn_cast<graph::StoredOp>(op)) {
      if (tensor.getValue())
        continue;
      if (!parameterOf(value))
        return false;
      stored.push_back(value);
    } else if (auto input = dyn_cast<graph::InputOp>(op)) {
      if (input.getRole() != "position")
        return false;
    } else if (!TokenAxes::ignoresNumbers(cast<graph::CallOp>(op))) {
      llvm::append_range(work, op->getOperands());
    }
  }
  llvm::sort(stored, [](Value a, Value b) {
    return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
  });
  for (Value value : stored)
    needed.erase(value.getDefiningOp());
  llvm::append_range(function.arguments, stored);
  return true;
}

int64_t Capture::axisOf(Value value) const {
  std::optional<unsigned> axis = axes.axis(value);
  return axis ? int64_t(*axis) : -1;
}

void Capture::fill(graph::FunctionOp function, Value result, ArrayRef<Value> arguments) {
  Block &body = function.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value argument : arguments)
    mapping.map(argument, body.addArgument(argument.getType(), argument.getLoc()));
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  for (Operation &op : program.getBody().front()) {
    if (!needed.contains(&op))
      continue;
    auto call = dyn_cast<graph::CallOp>(op);
    if (!call) {
      builder.clone(op, mapping);
      continue;
    }
    // Of what has the sizes of an operand alone, the result's type says all.
    bool isAlone = TokenAxes::ignoresNumbers(call);
    SmallVector<Value> operands;
    SmallVector<NamedAttribute> named;
    for (Value operand : call.getOperands())
      if (!isAlone)
        operands.push_back(mapping.lookup(operand));
    for (NamedAttribute argument : call.getArguments())
      if (!isAlone || !isa<graph::OperandAttr>(argument.getValue()))
        named.push_back(argument);
    auto copy = graph::CallOp::create(builder, call.getLoc(), call.getResultTypes(),
                                      call.getTarget(), operands, builder.getDictionaryAttr(named),
                                      /*path=*/"", /*visible=*/false);
    mapping.map(call.getResults(), copy.getResults());
  }
  graph::ReturnOp::create(builder, result.getLoc(), mapping.lookup(result));
}

std::optional<Capture::Function> Capture::capture(Value result, ArrayRef<Value> arguments,
                                                  StringRef path) {
  Function made{{}, SmallVector<Value>(arguments)};
  if (!collect(result, made))
    return std::nullopt;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<int64_t> argumentAxes;
  for (Value argument : made.arguments)
    argumentAxes.push_back(axisOf(argument));
  auto op = graph::FunctionOp::create(builder, result.getLoc(), "function", program.getTokens(),
                                      argumentAxes, axisOf(result), counted);
  fill(op, result, made.arguments);
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os, OpPrintingFlags().useLocalScope().assumeVerified());
  auto [same, isNew] = known.try_emplace(text);
  if (!isNew) {
    op.erase();
    made.name = same->second;
    return made;
  }
  // The module's own name; those that are numbers in lists say nothing.
  StringRef last = path.rsplit('.').second.empty() ? path : path.rsplit('.').second;
  std::string name = last.empty() ? "part" : last.str();
  for (char &letter : name)
    letter = llvm::isAlnum(letter) ? letter : '_';
  name += "_of_program";
  if (unsigned count = names[name]++)
    name += "_" + std::to_string(count);
  op.setSymName(name);
  same->second = made.name = FlatSymbolRefAttr::get(op.getContext(), name);
  return made;
}

graph::FunctionOp Capture::functionOf(FlatSymbolRefAttr name) {
  return module.lookupSymbol<graph::FunctionOp>(name.getAttr());
}

void ctxc::pt2::eraseUnusedFunctions(ModuleOp module) {
  llvm::DenseSet<Operation *> used;
  module.walk([&](Operation *op) { used.insert(graph::FunctionOp::ofOp(op)); });
  for (auto function : llvm::make_early_inc_range(module.getOps<graph::FunctionOp>()))
    if (!used.contains(function))
      function.erase();
}
