#include "GraphBuilder.h"
#include "Capture.h"
#include "Spelling.h"
#include "Symbols.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "mlir/IR/Verifier.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::pt2;

/// The calls, each in the next, that a location keeps at most.
static constexpr size_t mostCalls = 4;

/// By their numbers in torch's schema.
static constexpr StringLiteral namesOfTypes[] = {"",    "U8",  "I8", "I16", "I32",  "I64",  "F16",
                                                 "F32", "F64", "",   "C64", "C128", "BOOL", "BF16"};

std::optional<int64_t> ctxc::pt2::codeOfType(StringRef name) {
  const auto *found = find(namesOfTypes, name);
  if (name.empty() || found == std::end(namesOfTypes))
    return std::nullopt;
  return found - std::begin(namesOfTypes);
}

mlir::Type ctxc::pt2::elementType(mlir::MLIRContext *context, int64_t code) {
  mlir::Builder b(context);
  switch (code) {
  case 1:
    return b.getIntegerType(8, /*isSigned=*/false);
  case 2:
  case 3:
  case 4:
  case 5:
    return b.getIntegerType(8 << (code - 2), /*isSigned=*/true);
  case 6:
    return b.getF16Type();
  case 7:
    return b.getF32Type();
  case 8:
    return b.getF64Type();
  case 10:
    return mlir::ComplexType::get(b.getF32Type());
  case 11:
    return mlir::ComplexType::get(b.getF64Type());
  case 12:
    return b.getI1Type();
  case 13:
    return b.getBF16Type();
  default:
    return {};
  }
}

GraphBuilder::GraphBuilder(std::string where, const Payloads &payloads, mlir::MLIRContext *context)
    : where(std::move(where)), payloads(payloads), builder(context) {
  program.module = mlir::ModuleOp::create(mlir::FileLineColLoc::get(context, this->where, 1, 1));
  op = graph::ProgramOp::create(builder, program.module->getLoc(), "model",
                                builder.getI64IntegerAttr(0), mlir::IntegerAttr());
  program.module->push_back(op);
  builder.setInsertionPointToEnd(&op.getBody().emplaceBlock());
}

Expected<mlir::Value> GraphBuilder::input(StringRef name, graph::SymbolicType type,
                                          StringRef role) {
  if (type.getRank() < 2 || type.getNumber(0) != 1)
    return makeError(where + ": input " + quoted(name) +
                     " is not (1, tokens, …); export the model "
                     "for one sequence");
  mlir::Attribute size = type.getSizes()[1];
  if (tokens && tokens != size)
    return makeError(where + ": input " + quoted(name) +
                     " has another number of tokens than the "
                     "inputs before it");
  tokens = size;
  mlir::Location loc = mlir::NameLoc::get(builder.getStringAttr(name));
  return mlir::Value(graph::InputOp::create(builder, loc, type, name, role));
}

Expected<graph::StoredOp> GraphBuilder::stored(StringRef name, graph::SymbolicType type, bool fixed,
                                               bool loaded) {
  mlir::Location loc = mlir::NameLoc::get(builder.getStringAttr(name));
  auto made =
      graph::StoredOp::create(builder, loc, type, name, fixed, loaded, mlir::DenseElementsAttr());
  if (Error error = readNumbers(made))
    return std::move(error);
  return made;
}

/// A mask, a scale or a list of indices is a part of the program; what could be a parameter, or has
/// more entries than the masks of any model, is read with the weights.
Error GraphBuilder::readNumbers(graph::StoredOp tensor) {
  constexpr int64_t mostEntries = 1 << 22;
  StringRef name = tensor.getName();
  if (!tensor.getFixed() || parameterOf(tensor) || !payloads.has(name))
    return Error::success();
  auto type = cast<graph::SymbolicType>(tensor.getType());
  SmallVector<int64_t> shape;
  int64_t count = 1;
  for (unsigned i = 0; i < type.getRank(); ++i) {
    shape.push_back(type.getNumber(i).value_or(-1));
    if (shape.back() < 0 || (shape.back() && count > mostEntries / shape.back()))
      return Error::success();
    count *= shape.back();
  }
  Expected<std::vector<double>> numbers = payloads.numbers(name);
  if (!numbers)
    return numbers.takeError();
  if (int64_t(numbers->size()) != count)
    return makeError(where + ": tensor " + quoted(name) + " has " + Twine(numbers->size()) +
                     " entries; its type says " + Twine(count));
  tensor.setValueAttr(mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get(shape, builder.getF64Type()), ArrayRef(*numbers)));
  return Error::success();
}

/// A number of tokens that is fixed must not be met by chance: it is how their axis is known.
Error GraphBuilder::checkFixedLength() {
  auto fixed = dyn_cast<mlir::IntegerAttr>(tokens);
  if (!fixed)
    return Error::success();
  for (auto tensor : op.getBody().getOps<graph::StoredOp>()) {
    auto type = cast<graph::SymbolicType>(tensor.getType());
    for (unsigned i = 0; i < type.getRank(); ++i)
      if (int64_t size = type.getNumber(i).value_or(0);
          fixed.getInt() < 5 || (size && size % fixed.getInt() == 0))
        return makeError(where + ": the program is for " + Twine(fixed.getInt()) +
                         " tokens alone, which does not tell their axis from one of the " +
                         Twine(size) + " entries of " + quoted(tensor.getName()) +
                         "; export it with another length, which divides no size");
  }
  return Error::success();
}

/// The line of the innermost call, and behind it those of the calls around it, as far as they are
/// marked: torch alone writes every forward that leads to an op.
mlir::Location GraphBuilder::calls(ArrayRef<SourceLine> innermostFirst) {
  const SourceLine &line = innermostFirst.front();
  program.lines.try_emplace({line.file.str(), line.line}, line.text.str());
  mlir::Location at = mlir::FileLineColRange::get(builder.getStringAttr(line.file), line.line,
                                                  line.column, line.column + line.width);
  innermostFirst = innermostFirst.drop_front();
  if (innermostFirst.empty() || !innermostFirst.front().width)
    return at;
  return mlir::CallSiteLoc::get(at, calls(innermostFirst));
}

/// A value's name around its module's path around its lines.
mlir::Location GraphBuilder::locationOf(const Call &call) {
  mlir::StringAttr as = builder.getStringAttr(call.name);
  SmallVector<SourceLine> own = ownLines(call.trace);
  if (own.empty())
    return mlir::NameLoc::get(as);
  own.truncate(std::min(own.size(), mostCalls));
  mlir::Location at = calls(own);
  if (!call.module.empty())
    at = mlir::NameLoc::get(builder.getStringAttr(call.module), at);
  return mlir::NameLoc::get(as, at);
}

mlir::ValueRange GraphBuilder::call(const Call &call) {
  return graph::CallOp::create(builder, locationOf(call), call.types, nameOfOp(call.op),
                               call.operands, builder.getDictionaryAttr(call.arguments),
                               call.module, call.visible)
      .getResults();
}

Expected<Program> GraphBuilder::finish(ArrayRef<mlir::Value> results) {
  if (!tokens)
    return makeError(where + ": the program has no input; expected (1, tokens, …)");
  if (Error error = checkFixedLength())
    return std::move(error);
  if (results.empty())
    return makeError(where + ": the program returns no tensor");
  graph::ReturnOp::create(builder, builder.getUnknownLoc(), results);
  op.setTokensAttr(tokens);
  takeWholeSelections(op);
  recompose(op);
  if (failed(mlir::verify(*program.module)))
    return makeError(where + ": the program does not verify; see the messages above");
  return std::move(program);
}
