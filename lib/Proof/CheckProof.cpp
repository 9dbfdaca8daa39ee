// Compares the claims of a proof with the structures of a model, and checks each claim by its kind.
#include "Claims.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Proof/Body.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::proof;

static std::string joined(const Names &names) {
  return names.empty() ? "none" : llvm::join(names, ", ");
}

void Subject::wrong(const llvm::Twine &what) {
  problems.push_back((titleOf(structure) + ": " + what).str());
}

bool Subject::expect(const llvm::Twine &what, StringRef found, StringRef expected) {
  if (found == expected)
    return true;
  wrong(what + ": found " + quoted(found) + ", expected " + quoted(expected));
  return false;
}

bool Subject::expect(const llvm::Twine &what, const Names &found, const Names &expected) {
  if (found == expected)
    return true;
  wrong(what + ": found " + joined(found) + ", expected " + joined(expected));
  return false;
}

void Subject::expectOrder(const llvm::Twine &what, ArrayRef<Value> values) {
  for (size_t i = 1; i < values.size(); ++i) {
    Operation *before = values[i - 1].getDefiningOp(), *after = values[i].getDefiningOp();
    if (!(after && (!before || (before != after && before->isBeforeInBlock(after)))))
      wrong(what + ": found " + text.name(values[i]) + " after " + text.name(values[i - 1]) +
            ", expected each once and in the block's order");
  }
}

Value Subject::value(const llvm::Twine &what, StringRef name) {
  Value value = text.lookup(name);
  if (!value)
    wrong(what + ": the block has no value " + quoted(name));
  return value;
}

Operation *Subject::op(const llvm::Twine &what, StringRef name) {
  Value found = value(what, name);
  Operation *op = found ? found.getDefiningOp() : nullptr;
  if (found && !op)
    wrong(what + ": " + name + " is an input of the block, not an op");
  return op;
}

/// Checks what a proof says about the structure itself.
static bool checkIdentity(Subject &s) {
  const Claim &claim = s.claim;
  bool good = s.expect("digest", claim.digest, digestOf(s.structure, s.text));
  auto names = [](const std::set<std::string> &set) { return Names(set.begin(), set.end()); };
  good &= s.expect("frozen", claim.frozen, names(s.structure.frozen));
  good &= s.expect("shared", claim.shared, names(s.structure.shared));
  if (claim.inputsDepend != s.structure.inputsDepend) {
    s.wrong(llvm::Twine("inputsDepend: found ") + (claim.inputsDepend ? "true" : "false") +
            ", expected " + (s.structure.inputsDepend ? "true" : "false"));
    good = false;
  }
  Names equal;
  for (unsigned input : s.structure.equalInputs)
    equal.push_back(s.text.name(s.flow.body().getArgument(input)).str());
  good &= s.expect("equalInputs", claim.equalInputs, equal);
  ArrayRef<std::string> lines = s.text.lines();
  for (size_t i = 0; i < std::max(claim.text.size(), lines.size()); ++i) {
    StringRef found = i < claim.text.size() ? StringRef(claim.text[i]) : StringRef();
    StringRef expected = i < lines.size() ? StringRef(lines[i]) : StringRef();
    if (!s.expect("text, line " + llvm::Twine(i + 1), found, expected))
      return false;
  }
  return good;
}

/// Checks that a claim has the parts of its verdict and no others, and no list that is longer than
/// the block allows.
static bool checkParts(Subject &s) {
  const Claim &c = s.claim;
  size_t most = s.text.count();
  bool good = true;
  auto limit = [&](StringRef part, size_t size) {
    if (size <= most)
      return;
    s.wrong(part + ": found " + llvm::Twine(size) + " entries, expected at most " +
            llvm::Twine(most) + ", as many as the block has values");
    good = false;
  };
  limit("cut", c.cut.size());
  limit("outputs", c.outputs.size());
  limit("selections", c.selections.size());
  limit("open", c.open.size());
  limit("behind", c.behind.size());
  limit("causes", c.causes.size());
  for (const Output &output : c.outputs) {
    limit("chain", output.chain.size());
    limit("patches", output.patches.size());
    limit("divisors", output.divisors.size());
  }
  bool success = c.verdict == "controllable" || c.verdict == "output-only";
  auto refuse = [&](StringRef part, bool isThere) {
    if (isThere)
      s.wrong(part + ": is no part of the verdict " + c.verdict);
  };
  refuse("theorem", !success && !c.theorem.empty());
  refuse("parameters", !success && !c.parameters.empty());
  refuse("cut", !success && !c.cut.empty());
  refuse("outputs", !success && !c.outputs.empty());
  refuse("selections", !success && !c.selections.empty());
  refuse("open", c.verdict != "output-only" && !c.open.empty());
  bool rejected = c.verdict == "rejected";
  refuse("patchable", !rejected && !c.patchable.empty());
  refuse("behind", !rejected && !c.behind.empty());
  refuse("causes", !rejected && !c.causes.empty());
  bool undecided = c.verdict == "undecided";
  refuse("missing", !undecided && !c.missing.empty());
  refuse("stops", !undecided && !c.stops.empty());
  return good;
}

static Replay checkClaim(Subject &s, const CheckOptions &options) {
  Replay nothing;
  nothing.skipped = "the claim does not describe it";
  if (!checkParts(s))
    return nothing;
  if (s.claim.verdict == "undecided") {
    checkUndecided(s);
    nothing.skipped = "undecided claims nothing";
    return nothing;
  }
  if (s.claim.verdict == "rejected")
    return checkRejection(s) ? replayRejection(s, options) : nothing;
  std::optional<ResolvedPlan> plan = checkSuccess(s);
  bool canRun =
      plan && llvm::all_of(plan->cut, [](Operation *op) { return bool(parameterOf(op)); });
  for (const ResolvedOutput &output : plan ? plan->outputs : SmallVector<ResolvedOutput>())
    canRun &= parameterOf(output.site) && llvm::all_of(output.links, [&](auto &link) {
                return s.flow.linkBreak(link.op, link.operand).empty();
              });
  return canRun ? replaySuccess(s, *plan, options) : nothing;
}

Judgement proof::checkProof(ModuleOp module, const Proof &proof, const CheckOptions &options) {
  Judgement judgement;
  std::vector<Structure> structures = structuresOf(module, proof.startLayer);
  if (!module.getOps<xf::ModelOp>().empty())
    llvm::append_range(judgement.problems, checkPast(Body(module, proof.startLayer), proof.past));
  else if (proof.startLayer > 0)
    judgement.problems.push_back("startLayer: found " + std::to_string(proof.startLayer) +
                                 ", expected 0: there is no model, only blocks");
  else if (!proof.past.empty())
    judgement.problems.push_back(
        "past: found a path, expected none: there is no model, only blocks");
  std::vector<unsigned> claimed(structures.size());
  judgement.replays.resize(proof.claims.size());
  for (size_t i = 0; i < proof.claims.size(); ++i) {
    const Claim &claim = proof.claims[i];
    Replay &replay = judgement.replays[i];
    std::string title = "block '" + claim.block + "', layers " + claim.layers;
    auto found = llvm::find_if(
        structures, [&](const Structure &structure) { return titleOf(structure) == title; });
    if (found == structures.end()) {
      judgement.problems.push_back("block " + quoted(claim.block) + ", layers " +
                                   quoted(claim.layers) +
                                   ": the model has no such block with just these layers");
      replay.skipped = "the model has no such block";
      continue;
    }
    Subject subject(*found, claim, proof, judgement.problems);
    if (claimed[found - structures.begin()]++) {
      subject.wrong("is claimed twice");
      replay.skipped = "it is claimed twice";
      continue;
    }
    if (checkIdentity(subject))
      replay = checkClaim(subject, options);
    else
      replay.skipped = "it is another block";
  }
  for (auto [structure, times] : llvm::zip_equal(structures, claimed))
    if (!times)
      judgement.problems.push_back(titleOf(structure) + ": is not claimed");
  for (auto [claim, replay] : llvm::zip_equal(proof.claims, judgement.replays))
    judgement.skipped += !replay.done && claim.verdict != "undecided";
  return judgement;
}
