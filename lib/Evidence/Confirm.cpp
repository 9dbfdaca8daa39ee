// A plan that is called exact almost everywhere is exact on random weights and activations, at the
// block's own sizes: some identities hold at one size alone, such as that of a constant 1/512 and a
// mean of 512 numbers.
#include "BlockRun.h"
#include "StandIn.h"
#include "ctxc/Evidence/Trial.h"
#include "ctxc/Reference/Evaluation.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ctxc;

/// Blocks with more numbers than this are tried with sparse matrices.
static constexpr int64_t mostNumbers = 200'000;
/// A patch that is larger beside its parameter, whatever the weights, divides by what is zero but
/// for the rounding of a float32 number of the block, such as 1/√512.
static constexpr double mostRelativeNorm = 1e5;

static int64_t countNumbers(xf::BlockOp block) {
  int64_t numbers = 0;
  block.walk([&](xf::ParamOp param) {
    numbers += cast<RankedTensorType>(param.getType()).getNumElements();
  });
  return numbers;
}

//===----------------------------------------------------------------------===//
// Trials of one block
//===----------------------------------------------------------------------===//

/// Whether the plan says of a condition that it fails on an open set.
static bool isConditional(const BlockPlan &plan) {
  return llvm::any_of(plan.obligations, [](const PlanObligation &o) {
    return o.kind != xf::Obligation::None && o.likelihood == xf::Zeros::OpenSet;
  });
}

/// What speaks against the plan on the first few random weights and activations that decide.
static std::string contradiction(xf::BlockOp block, const PlanOptions &options,
                                 const BlockPlan &plan) {
  // Of ten seeds three are to be conclusive, of a large block one.
  const int64_t numbers = countNumbers(block);
  const uint64_t seeds = 10, enough = numbers > 4'000'000 ? 1 : 3;
  bool conditional = isConditional(plan);
  uint64_t agreed = 0, unmet = 0;
  std::string last;
  for (uint64_t seed = 1; seed <= seeds && agreed < enough; ++seed) {
    TrialOptions how;
    how.seed = seed;
    how.layer = options.layer;
    how.inputsAreSources = options.inputsAreSources;
    how.update = options.update;
    how.others = 0;
    how.sparse = numbers > mostNumbers;
    if (std::string lack = lackOfMemory(block, how); !lack.empty())
      return lack;
    llvm::Expected<Trial> trial = tryPlan(block, plan, how);
    if (!trial) {
      llvm::consumeError(trial.takeError());
      continue;
    }
    std::string at = " on random weights and activations, seed " + std::to_string(seed);
    if (trial->harmful > 0 && !conditional)
      return "what it divides by is zero" + at;
    if (trial->harmful > 0) {
      ++unmet;
      last = "what it divides by was zero" + at;
    } else if (trial->outcome() == TrialOutcome::Wrong) {
      return trial->whyNotExact() + at;
    } else if (trial->outcome() == TrialOutcome::IllConditioned) {
      ++unmet;
      last = trial->whyNotExact() + at;
    } else if (trial->relativeNorm > mostRelativeNorm) {
      ++unmet;
      last.clear();
      llvm::raw_string_ostream(last)
          << llvm::format("the patch is %.2g times its parameter, as if it divided by a rounding",
                          trial->relativeNorm)
          << at;
    } else {
      ++agreed;
    }
  }
  return agreed == 0 && unmet > 0 ? last + ", and no other was better" : "";
}

//===----------------------------------------------------------------------===//
// Blocks that the reference cannot run
//===----------------------------------------------------------------------===//

using OpMap = llvm::DenseMap<Operation *, Operation *>;

/// Each op of `from` with its counterpart of `to`, a block of the same ops, but for those that
/// `isLeftOut`.
static OpMap counterparts(xf::BlockOp from, xf::BlockOp to,
                          llvm::function_ref<bool(Operation *)> isLeftOut) {
  OpMap map;
  for (auto [a, b] : llvm::zip_equal(from.getBody().front(), to.getBody().front()))
    if (!isLeftOut(&a))
      map[&a] = &b;
  return map;
}

/// `plan` for the counterparts of its ops; none where one has none.
static std::optional<BlockPlan> translated(const BlockPlan &plan, const OpMap &map) {
  BlockPlan result = plan;
  bool isWhole = true;
  auto translate = [&](Operation *&op) {
    if (!op)
      return;
    op = map.lookup(op);
    isWhole &= op != nullptr;
  };
  llvm::for_each(result.inputSites, translate);
  for (OutputPatch &output : result.outputs) {
    translate(output.site);
    translate(output.normMatrix);
    for (ChainLink &link : output.links)
      translate(link.op);
    auto goal = cast<OpResult>(output.goal);
    Operation *op = goal.getOwner();
    translate(op);
    output.goal = op ? Value(op->getResult(goal.getResultNumber())) : Value();
  }
  for (PlanObligation &o : result.obligations) {
    translate(o.site);
    auto value = dyn_cast_or_null<OpResult>(o.value);
    Operation *op = value ? map.lookup(value.getOwner()) : nullptr;
    o.value = op ? Value(op->getResult(value.getResultNumber())) : Value();
    isWhole &= o.value || o.kind != xf::Obligation::SameSelection;
  }
  if (!isWhole)
    return std::nullopt;
  return result;
}

/// Tries the plan on a block that the reference can run, with an attention in the place of what
/// reads the context. None where it has no such plan.
static std::optional<std::string>
contradictionOfStandIn(xf::BlockOp block, const PlanOptions &options, const BlockPlan &plan) {
  if (sharesBankMembers(block, options.layer))
    return std::nullopt;
  OwningOpRef<ModuleOp> module = standAlone(block, options.bindings, options.layer);
  xf::BlockOp alone = *module->getOps<xf::BlockOp>().begin();
  OpMap toAlone =
      counterparts(block, alone, [](Operation *op) { return isa<xf::ContextualOpInterface>(op); });
  replaceUnknownContext(alone);
  std::optional<BlockPlan> own = translated(plan, toAlone);
  if (!own)
    return std::nullopt;
  PlanOptions ofAlone = options;
  ofAlone.layer = {}; // its settings are in the block
  return contradiction(alone, ofAlone, *own);
}

std::string ctxc::confirmByTrial(xf::BlockOp block, const PlanOptions &options,
                                 const PlanCandidate &candidate) {
  ScopedDiagnosticHandler quiet(block.getContext(), [](Diagnostic &) { return success(); });
  needReference(block);
  auto isUnknown = [](Operation &op) { return !isa<reference::ReferenceOpInterface>(op); };
  if (llvm::any_of(block.getBody().front().without_terminator(), isUnknown))
    if (auto against = contradictionOfStandIn(block, options, candidate.plan))
      return *against;
  return contradiction(block, options, candidate.plan);
}
