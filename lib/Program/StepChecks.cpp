#include "ctxc/Program/StepChecks.h"
#include "ctxc/Program/ModelEnds.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace mlir;
using namespace ctxc;

std::optional<int64_t> ctxc::embeddingWidth(const Program &program) {
  for (ProgramStep step : program.steps)
    if (step.ofEmbedding)
      return cast<RankedTensorType>(step.ofEmbedding.getArgumentTypes().front()).getNumElements();
  return std::nullopt;
}

/// Checks the input for `position` if it is an embedding.
static llvm::Error checkEmbedding(const Program &program, const Input &input, int64_t position) {
  if (!input.isEmbedding())
    return llvm::Error::success();
  std::optional<int64_t> width = embeddingWidth(program);
  if (!width)
    return makeError(
        "position " + llvm::Twine(position) +
        " is given an embedding in place of a token, and the model has no place for one: it "
        "reads the token for more than its embedding");
  if (int64_t(input.embedding().size()) != *width)
    return makeError("position " + llvm::Twine(position) + " is given an embedding of " +
                     llvm::Twine(input.embedding().size()) + " numbers, expected " +
                     llvm::Twine(*width) + ", as many as a token's embedding has");
  // Kernels compute in float32.
  if (!llvm::all_of(input.embedding(), [](double x) { return std::isfinite(float(x)); }))
    return makeError("position " + llvm::Twine(position) +
                     " is given an embedding with a number that is not finite as float32");
  return llvm::Error::success();
}

llvm::Error ctxc::checkStep(const Program &program, int64_t held, int64_t last, int64_t capacity,
                            ArrayRef<Input> tokens, ArrayRef<int64_t> positions) {
  if (tokens.empty())
    return makeError("there is no token to run");
  if (tokens.size() != positions.size())
    return makeError(llvm::Twine(tokens.size()) + " tokens are given " +
                     llvm::Twine(positions.size()) + " positions");
  for (int64_t position : positions) {
    if (position <= last)
      return makeError("position " + llvm::Twine(position) + " follows position " +
                       llvm::Twine(last) + "; positions of a run must increase from 0");
    last = position;
  }
  for (auto [input, position] : llvm::zip(tokens, positions))
    if (llvm::Error error = checkEmbedding(program, input, position))
      return error;
  if (program.positions && last >= *program.positions)
    return makeError("position " + llvm::Twine(last) + " is out of range; the model is known for " +
                     llvm::Twine(*program.positions) + " positions, and is another beyond");
  if (last > INT32_MAX)
    return makeError("position " + llvm::Twine(last) + " is beyond what a run can hold");
  if (held + int64_t(tokens.size()) > capacity)
    return makeError("the run has room for " + llvm::Twine(capacity) + " tokens and is given " +
                     llvm::Twine(held + tokens.size()));
  return llvm::Error::success();
}

llvm::Error ctxc::checkSequence(int64_t held, ArrayRef<Input> sequence, ArrayRef<Input> tokens) {
  if (held == 0 || sequence.drop_front(held) == tokens)
    return llvm::Error::success();
  return makeError(
      "the run holds " + llvm::Twine(held) +
      " tokens, which have not seen those that follow; a bidirectional model takes all "
      "tokens of a run at once");
}

llvm::Error ctxc::checkIds(const Program &program, ArrayRef<Input> inputs,
                           ArrayRef<int64_t> positions) {
  std::vector<int64_t> tokens;
  for (const Input &input : inputs)
    if (!input.isEmbedding())
      tokens.push_back(input.token());
  for (ProgramStep step : program.steps)
    for (xf::EmbedOp embed : step.block.getBody().getOps<xf::EmbedOp>()) {
      int64_t rows = cast<RankedTensorType>(embed.getTable().getType()).getDimSize(0);
      auto position = embed.getId().getDefiningOp<xf::PositionOp>();
      if (embed.getId().getDefiningOp<xf::ConstantOp>())
        continue;                                           // checked by the verifier
      int64_t offset = position ? position.getOffset() : 0; // rows before position 0's
      for (int64_t id : position ? positions : ArrayRef<int64_t>(tokens))
        if (id < 0 || (position ? position.at(id) : id) >= rows)
          return makeError(llvm::Twine(position ? "position " : "token id ") + llvm::Twine(id) +
                           " is out of range; the table has " + llvm::Twine(rows) + " rows" +
                           (offset ? ", " + llvm::Twine(offset) + " of them for no position" : ""));
    }
  return llvm::Error::success();
}

/// Adds the stored names under which a patch may change the block's parameter `name`.
static void addNames(xf::BlockOp block, xf::LayerOp layer, StringRef name,
                     llvm::StringSet<> &names) {
  PatchedParameter parameter = llvm::cantFail(findPatched(block, layer, name));
  if (!isBankName(parameter.stored))
    names.insert(parameter.stored);
  for (int64_t i = 0; parameter.isSliced() && i < parameter.shape.front(); ++i)
    names.insert(sliceName(parameter.stored, i));
}

llvm::StringSet<> ctxc::loadableNames(const Program &program) {
  llvm::StringSet<> names;
  for (ProgramStep step : program.steps)
    if (step.applied)
      for (patch::LoadOp load : step.applied.getBody().getOps<patch::LoadOp>())
        addNames(step.block, step.layer, load.getParameter(), names);
  return names;
}

PatchableNames::PatchableNames(const Program &program) : loadable(loadableNames(program)) {
  for (ProgramStep step : program.steps)
    for (xf::ParamOp param : step.block.getBody().getOps<xf::ParamOp>())
      addNames(step.block, step.layer, param.getName(), all);
}

llvm::Error PatchableNames::check(const Patch &patch, bool materialize) const {
  llvm::StringSet<> seen;
  for (const ParameterPatch &entry : patch.parameters) {
    if (!seen.insert(entry.parameter).second)
      return makeError(entry.parameter + ": the patch changes it twice");
    if (!all.contains(entry.parameter))
      return makeError(entry.parameter +
                       ": the patch changes it, but the model has no such parameter");
    if (!materialize && !loadable.contains(entry.parameter))
      return makeError(entry.parameter + ": the patch changes it, but the plan patches it nowhere; "
                                         "materialize the patch to run it");
  }
  return llvm::Error::success();
}

std::optional<size_t> Program::head() const {
  if (isHeadless(*this) || steps.size() < 2 || steps.back().index ||
      readsContext(steps.back().block))
    return std::nullopt;
  return steps.size() - 1;
}

Value Program::logits() const {
  xf::LayerOp last = steps.back().layer;
  return last->getBlock()->back().getOperand(0);
}

llvm::Expected<size_t> ctxc::checkHead(const Program &program, int64_t elements, int64_t count) {
  std::optional<size_t> head = program.head();
  if (!head)
    return makeError("the model has no head: what it gives is its last layer's output, and no "
                     "logits of tokens");
  xf::LayerOp layer = program.steps[*head].layer;
  if (layer.getInputs().size() != 1)
    return makeError("the model's head reads " + llvm::Twine(layer.getInputs().size()) +
                     " values, expected the residual stream alone");
  int64_t width = cast<RankedTensorType>(layer.getInputs()[0].getType()).getNumElements();
  if (elements != count * width)
    return makeError("the model's head reads streams of " + llvm::Twine(width) +
                     " numbers, found " + llvm::Twine(count ? elements / count : 0));
  return *head;
}

llvm::Error ctxc::checkStartLayer(const Program &program, int64_t layer) {
  if (layer >= 0 && layer <= program.layers)
    return llvm::Error::success();
  return makeError("layer " + llvm::Twine(layer) +
                   " is to be the first that is patched; the model has layers 0 to " +
                   llvm::Twine(program.layers - 1));
}

bool ctxc::readsContext(xf::BlockOp block) {
  return llvm::any_of(block.getBody().getOps(),
                      [](Operation &op) { return isa<xf::ContextualOpInterface>(op); });
}

std::optional<int64_t> ctxc::windowOf(ProgramStep step) {
  std::optional<int64_t> widest;
  for (Operation &op : step.block.getBody().getOps()) {
    if (!isa<xf::ContextualOpInterface>(op))
      continue;
    if (std::optional<int64_t> reach = cast<xf::ContextualOpInterface>(op).getReach()) {
      widest = std::max(*reach, widest.value_or(0));
      continue;
    }
    if (cast<xf::ContextualOpInterface>(op).getCarried()) { // which is no window's
      widest = std::max<int64_t>(1, widest.value_or(0));
      continue;
    }
    auto attention = dyn_cast<xf::AttentionOp>(op);
    auto setting = attention && attention.getWindow()
                       ? attention.getWindow().getDefiningOp<xf::SettingOp>()
                       : xf::SettingOp();
    if (!setting)
      return std::nullopt;
    int64_t window =
        xf::SettingOp::numbers(setting.getType(), step.layer.getSettingValue(setting)).front();
    if (window <= 0)
      return std::nullopt;
    widest = std::max(window, widest.value_or(0));
  }
  return widest;
}

bool ctxc::isBidirectional(const Program &program) {
  return llvm::any_of(program.steps, [](ProgramStep step) {
    return llvm::any_of(step.block.getBody().getOps<xf::AttentionOp>(),
                        [](xf::AttentionOp op) { return op.getBidirectional(); });
  });
}

template <typename IsIt> static bool hasContextual(const Program &program, IsIt isIt) {
  return llvm::any_of(program.steps, [&](ProgramStep step) {
    return llvm::any_of(step.block.getBody().getOps(), [&](Operation &op) {
      auto contextual = dyn_cast<xf::ContextualOpInterface>(op);
      return contextual && isIt(contextual);
    });
  });
}

bool ctxc::isRecurrent(const Program &program) {
  return hasContextual(program, [](xf::ContextualOpInterface op) { return bool(op.getCarried()); });
}

bool ctxc::countsTokens(const Program &program) {
  return hasContextual(
      program, [](xf::ContextualOpInterface op) { return op.getCarried() || op.getReach(); });
}
