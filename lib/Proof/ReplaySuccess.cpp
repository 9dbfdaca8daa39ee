// Controllable and output-only claims in numbers. The patch is formed as the claims say, op after
// op: F gets its full-run output, G the output that its chain solves for; each change is written
// into the parameter itself. Then the block runs without the context, and must give the outputs
// that it gives with the context.
#include "Claims.h"
#include "Numbers.h"
#include "ctxc/Program/PatchSize.h"
#include "dialects/Patch/Patch.h"
#include "dialects/XF/Sizes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;
using namespace ctxc::reference;

/// What is beyond is met by another seed, or is no evidence: a tolerance that grows with the patch
/// lets any error pass.
static constexpr double largestConditioning = 1e4;
/// A patch, or a number, with which float64 shows nothing however small the error.
static constexpr double hopelessConditioning = 1e10;

namespace {

/// Evaluates a few ops on values of a run: the ops that are built to solve another op, or to form
/// their patch.
class Scratch {
public:
  explicit Scratch(xf::BlockOp like) : builder(like.getContext()) {
    block = xf::BlockOp::create(builder, like.getLoc(), builder.getStringAttr("scratch"),
                                TypeAttr::get(builder.getFunctionType({}, {})),
                                /*sym_visibility=*/nullptr, /*arg_attrs=*/nullptr,
                                /*res_attrs=*/nullptr);
    builder.setInsertionPointToStart(&block->getBody().emplaceBlock());
  }

  Value add(Type type, const Matrix &rows) {
    inputs.push_back(rows);
    return block->getBody().front().addArgument(type, block->getLoc());
  }
  /// Parameters and settings are looked up; any other value is taken from `run`.
  Value add(Value value, const BlockRun &run) {
    Operation *op = value.getDefiningOp();
    if (op && isa<xf::ParamOp, xf::SettingOp>(op))
      return builder.clone(*op)->getResult(0);
    return add(value.getType(), run.values.rows(value));
  }
  llvm::Expected<SmallVector<Matrix>> run(ArrayRef<Value> results, BlockRun &like) {
    Evaluation evaluation(like.environment);
    Block &body = block->getBody().front();
    for (auto [argument, rows] : llvm::zip_equal(body.getArguments(), inputs))
      evaluation.set(argument, rows);
    for (Operation &op : body) {
      auto meaning = dyn_cast<ReferenceOpInterface>(op);
      if (!meaning)
        return errorAt(&op, "has no meaning in the reference");
      if (llvm::Error error = meaning.evaluate(evaluation))
        return std::move(error);
    }
    return llvm::map_to_vector(results, [&](Value v) { return Matrix(evaluation.rows(v)); });
  }

  OpBuilder builder;

private:
  OwningOpRef<xf::BlockOp> block;
  SmallVector<Matrix> inputs;
};

class SuccessReplay {
public:
  SuccessReplay(Subject &subject, const ResolvedPlan &plan, int64_t seed)
      : subject(subject), plan(plan), numbers(subject.structure, subject.flow, seed) {}

  llvm::Expected<Replay> run();

private:
  llvm::Error patch(Operation *op, const Matrix &target);
  llvm::Expected<Matrix> solve(const ResolvedOutput &output);
  llvm::Error write(Operation *op, ArrayRef<Matrix> parts);

  Subject &subject;
  const ResolvedPlan &plan;
  Numbers numbers;
  std::unique_ptr<BlockRun> full, reduced;
  double relative = 1; ///< the largest ‖Δp‖ / ‖p‖
};

} // namespace

/// W + u vᵀ, or p + Δp, in the parameter's own order.
llvm::Error SuccessReplay::write(Operation *op, ArrayRef<Matrix> parts) {
  auto found = numbers.parameter(parameterOf(op));
  if (!found)
    return found.takeError();
  std::vector<double> &to = **found;
  patch::PatchForm form = cast<patch::PatchableOpInterface>(op).getPatchForm();
  double before = 0, after = 0;
  for (double x : to)
    before += x * x;
  auto add = [&](double &x, double change) {
    x += change;
    after += change * change;
  };
  // A claim may patch one parameter for several vectors.
  auto tooMany = [&](int64_t count) {
    return errorAt(op, "has a patch of " + Twine(count) + " numbers, and a parameter of " +
                           Twine(to.size()));
  };
  if (form.kind == patch::PatchForm::Delta) {
    if (parts[0].cols() != int64_t(to.size()))
      return tooMany(parts[0].cols());
    for (size_t i = 0; i < to.size(); ++i)
      add(to[i], parts[0](0, i));
  } else {
    bool isBank = form.kind == patch::PatchForm::Rank1EachSlice;
    int64_t slots = isBank ? parts[2].cols() : 1;
    int64_t out = parts[0].cols() / slots, in = parts[1].cols() / slots;
    if (isBank ? int64_t(to.size()) % (out * in) != 0 : out * in != int64_t(to.size()))
      return tooMany(out * in);
    for (int64_t slot = 0; slot < slots; ++slot) {
      int64_t slice = isBank ? int64_t(parts[2](0, slot)) : 0;
      for (int64_t i = 0; slice >= 0 && i < out; ++i)
        for (int64_t j = 0; j < in; ++j)
          add(to[slice * out * in + (form.transposed ? j * out + i : i * in + j)],
              parts[0](0, slot * out + i) * parts[1](0, slot * in + j));
    }
  }
  double own = std::sqrt(before > 0 ? after / before : after);
  if (!std::isnan(relative) && !(own <= relative)) // what is no number is the largest
    relative = own;
  return llvm::Error::success();
}

/// Patches the reduced run's `op` to give `target`, and recomputes the run.
llvm::Error SuccessReplay::patch(Operation *op, const Matrix &target) {
  auto patchable = dyn_cast<patch::PatchableOpInterface>(op);
  if (!patchable)
    return errorAt(op, "does not say how its patch is formed (PatchableOpInterface)");
  Scratch scratch(subject.structure.block);
  Value result = op->getResult(0);
  patch::PatchRequest request;
  request.target = scratch.add(result.getType(), target);
  request.result = scratch.add(result.getType(), reduced->values.rows(result));
  for (Value operand : op->getOperands())
    request.operands.push_back(scratch.add(operand, *reduced));
  SmallVector<Value> parts = patchable.buildParts(scratch.builder, request);
  auto formed = scratch.run(parts, *reduced);
  if (!formed)
    return formed.takeError();
  if (llvm::Error error = write(op, *formed))
    return error;
  auto again = numbers.reduced();
  if (!again)
    return again.takeError();
  reduced = std::move(*again);
  return llvm::Error::success();
}

/// The output that the site needs for the goal to have its full-run value: solved back from the
/// goal, the other operands being the reduced run's.
llvm::Expected<Matrix> SuccessReplay::solve(const ResolvedOutput &output) {
  Matrix target = full->values.rows(output.goal);
  for (const ResolvedOutput::Link &link : llvm::reverse(output.links)) {
    Scratch scratch(subject.structure.block);
    Value wanted = scratch.add(link.op->getResult(0).getType(), target);
    IRMapping operands;
    for (Value operand : link.op->getOperands())
      if (!operands.contains(operand))
        operands.map(operand, scratch.add(operand, *reduced));
    if (auto tap = dyn_cast<xf::TapOpInterface>(link.op)) {
      // What other tokens add is in what it gives now.
      auto values =
          llvm::map_to_vector(link.op->getOperands(), [&](Value v) { return operands.lookup(v); });
      Value y = scratch.add(link.op->getResult(0), *reduced);
      auto found = scratch.run(
          xf::buildTapSolve(tap, scratch.builder, wanted, values[link.operand], y, values),
          *reduced);
      if (!found)
        return found.takeError();
      target = std::move(found->front());
      continue;
    }
    // A part is solved for by the ops around it, which a clone has not.
    auto clone = cast<xf::SolvableOpInterface>(xf::isPartOfResult(link.op, link.operand)
                                                   ? link.op
                                                   : scratch.builder.clone(*link.op, operands));
    auto values =
        llvm::map_to_vector(link.op->getOperands(), [&](Value v) { return operands.lookup(v); });
    Value leverage; // for the least norm any positive numbers are valid
    if (output.split == xf::Split::LeastNorm && clone.isUnderdetermined(link.operand)) {
      auto type = cast<RankedTensorType>(link.op->getOperand(link.operand).getType());
      leverage = xf::createOnes(scratch.builder, link.op->getLoc(), type.getShape().take_front());
    }
    Value solved = clone.isUnderdetermined(link.operand)
                       ? clone.buildSplit(scratch.builder, link.operand, wanted, values, leverage)
                       : clone.buildSolve(scratch.builder, link.operand, wanted, values);
    auto found = scratch.run(solved, *reduced);
    if (!found)
      return found.takeError();
    target = std::move(found->front());
  }
  return target;
}

llvm::Expected<Replay> SuccessReplay::run() {
  for (std::unique_ptr<BlockRun> *to : {&full, &reduced}) {
    auto done = to == &full ? numbers.full() : numbers.reduced();
    if (!done)
      return done.takeError();
    *to = std::move(*done);
  }
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, subject.flow.outputs().size()));
  Vector wanted = numbers.outputs(*full, all);
  Replay replay;
  replay.done = true;
  replay.control = (wanted - numbers.outputs(*reduced, all)).cwiseAbs().maxCoeff();
  double largest = std::max(numbers.largest(*full), numbers.largest(*reduced));
  for (Operation *op : plan.cut)
    if (llvm::Error error = patch(op, full->values.rows(op->getResult(0))))
      return std::move(error);
  for (const ResolvedOutput &output : plan.outputs) {
    auto target = solve(output);
    if (!target)
      return target.takeError();
    if (llvm::Error error = patch(output.site, *target))
      return std::move(error);
    largest = std::max(largest, target->cwiseAbs().maxCoeff());
  }
  replay.error = (wanted - numbers.outputs(*reduced, all)).cwiseAbs().maxCoeff();
  replay.conditioning = std::max({1.0, largest, numbers.largest(*reduced), relative});
  if (!isPatchOfSize(relative))
    replay.conditioning = std::max(replay.conditioning, 2 * hopelessConditioning);
  // Constants that a link may divide by are of float32.
  replay.tolerance = 1e-7 * std::min(replay.conditioning, largestConditioning);
  return replay;
}

/// Whether some condition of the claim is said to fail on an open set.
static bool isConditional(const Claim &claim) {
  auto fails = [](const Instance &instance) { return instance.fails == "open-set"; };
  return llvm::any_of(claim.cut, fails) || llvm::any_of(claim.outputs, [&](const Output &output) {
           return llvm::any_of(output.patches, fails) || llvm::any_of(output.divisors, fails);
         });
}

Replay proof::replaySuccess(Subject &subject, const ResolvedPlan &plan,
                            const CheckOptions &options) {
  Replay replay;
  xf::BlockOp block = subject.structure.block;
  if (int64_t count = countNumbers(block); count > options.numbers) {
    replay.skipped =
        std::to_string(count) + " numbers are more than " + std::to_string(options.numbers);
    return replay;
  }
  needReference(block);
  bool patchesNothing = plan.outputs.empty(), conditional = isConditional(subject.claim);
  constexpr int64_t small = 200'000;
  int exact = 0, shown = 0, enough = countNumbers(block) <= small && !patchesNothing ? 3 : 1;
  // A condition that fails on an open set may fail just here, numbers may be too large, and a relu
  // may shut the context out: then elsewhere.
  for (int64_t seed = options.seed; seed < options.seed + 8 && shown < enough; ++seed) {
    auto tried = SuccessReplay(subject, plan, seed).run();
    if (!tried) {
      replay = {};
      replay.skipped = llvm::toString(tried.takeError());
      return replay;
    }
    bool isExact = tried->error <= tried->tolerance && tried->conditioning <= hopelessConditioning;
    bool mayFail = conditional || tried->conditioning > largestConditioning;
    if (!isExact && (!mayFail || !exact))
      replay = *tried;
    if (!isExact && !mayFail) {
      exact = 0;
      break;
    }
    if (!isExact)
      continue;
    ++exact;
    bool isShown = patchesNothing || tried->control > 10 * tried->tolerance;
    if (isShown || !shown)
      replay = *tried;
    shown += isShown;
  }
  if (!exact) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "found an output that differs by " << replay.error
        << " from the full run's under the patch, expected at most " << replay.tolerance
        << " (the largest number, or patch beside its parameter, is " << replay.conditioning << ")";
    subject.wrong("replay: " + text);
  } else if (!shown) {
    replay.done = false;
    replay.skipped = "the context changes no output on these numbers, so that nothing is shown";
  }
  return replay;
}
