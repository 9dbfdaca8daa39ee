#include "ctxc/Evidence/JointVerdict.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Distil/Joint.h"
#include "ctxc/Evidence/Trial.h"
#include "dialects/Patch/Patch.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace ctxc;

/// The one op whose parameter a patch may change, if it is a vector.
static Operation *soleVector(const VerdictGroup &group) {
  BlockGraph graph(group.block);
  ZeroRange zeros(group.block, group.ops.empty() ? xf::LayerOp() : group.ops.front());
  Sites sites(graph, zeros, group.options->bindings, SiteScope::All);
  Operation *sole = nullptr;
  for (const Site &site : sites.all()) {
    if (site.status != SiteStatus::Assignable || sites.isOutOfScope(site.op))
      continue;
    if (sole)
      return nullptr;
    sole = site.op;
  }
  auto patchable = dyn_cast_or_null<patch::PatchableOpInterface>(sole);
  return patchable && patchable.getPatchForm().kind != patch::PatchForm::Rank1 ? sole : nullptr;
}

/// What the change that one token needs, the only one that is exact for it, does to another token;
/// none where a trial shows nothing.
static std::optional<OtherToken> tryAtAnother(const VerdictGroup &group) {
  SampleOptions drawn;
  drawn.inputsAreSources = group.options->inputsAreSources;
  const Sample first = randomSample(group.block, drawn);
  drawn.seed = 2;
  const Sample second = randomSample(group.block, drawn);
  TrialOptions options;
  options.layer = group.options->layer;
  options.inputsAreSources = group.options->inputsAreSources;
  options.sample = &first;
  auto found = tryAtOther(group.block, group.verdict->plan, second, options);
  if (!found) {
    llvm::consumeError(found.takeError()); // the reference cannot run the block
    return std::nullopt;
  }
  constexpr double visible = 1e-3; // of what the context changes
  return *found && (*found)->error > visible * (*found)->control ? *found : std::nullopt;
}

void ctxc::judgeJointly(VerdictGroup &group, int64_t tokens) {
  const Verdict &found = *group.verdict;
  if (!found.isSuccess() || found.plan.patchedOps().empty() || tokens < 2)
    return;
  const bool isModel = !group.ops.empty();
  const std::vector<JointMatrix> matrices = findJointMatrices(
      {isModel ? group.layers.front() : 0, isModel ? group.ops.front() : xf::LayerOp(), group.block,
       group.verdict, group.options});
  Verdict verdict = found;
  const std::string count = std::to_string(tokens) + " tokens";
  std::string known;
  for (const JointMatrix &matrix : matrices) {
    if (matrix.tokens >= tokens) {
      verdict.remark += (verdict.remark.empty() ? "" : "; ") + matrix.parameter + " serves " +
                        count + " at once, if what it reads for them is independent";
      group.verdict = std::make_shared<const Verdict>(std::move(verdict));
      return;
    }
    known += (known.empty() ? "" : ", and ") + matrix.parameter + " serves " +
             std::to_string(matrix.tokens);
  }
  verdict.plan = BlockPlan();
  verdict.remark.clear();
  verdict.kind = VerdictKind::Undecided;
  Finding cause{group.block,
                "no matrix of it is known to serve " + count + " at once" +
                    (known.empty() ? "" : ": " + known),
                rules::JointCapacity};
  cause.advice = "a patch for each token, a shorter text, or a trainable matrix through whose "
                 "product the whole effect of the context passes";
  if (Operation *vector = soleVector(group))
    if (std::optional<OtherToken> other = tryAtAnother(group)) {
      verdict.kind = VerdictKind::Rejected;
      cause.op = vector;
      cause.message = "no change serves " + count + " at once: the vector " + Sites::name(vector) +
                      " is all that a patch may change, and it is the same "
                      "for every token";
      std::string numbers;
      llvm::raw_string_ostream(numbers) << llvm::format(
          "on random weights and activations the only change that is exact for one token leaves an "
          "error of %.2g at another, where no change leaves %.2g",
          other->error, other->control);
      cause.notes.push_back({vector, numbers});
    }
  verdict.causes = {std::move(cause)};
  group.verdict = std::make_shared<const Verdict>(std::move(verdict));
}
