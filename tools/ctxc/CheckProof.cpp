// ctxc check-proof
#include "ctxc/Proof/CheckProof.h"
#include "Commands.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/InputFile.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

/// A proof of a thousand structures takes only a few megabytes.
static constexpr uint64_t largestFile = 64 << 20;

static llvm::Expected<proof::Proof> readProof(StringRef path) {
  llvm::Expected<std::string> text = readSmallFile(path, largestFile);
  if (!text)
    return text.takeError();
  return proof::parseProof(*text, path);
}

/// "block 'b', layers 0-3: controllable, by unified: replayed: …"
static void printClaim(const proof::Claim &claim, const proof::Replay &replay) {
  llvm::raw_ostream &os = out();
  os << "block '" << claim.block << "', layers " << claim.layers << ": " << claim.verdict;
  if (!claim.theorem.empty())
    os << ", by " << claim.theorem;
  os << "\n  ";
  if (!replay.done)
    os << "not replayed: " << replay.skipped << "\n";
  else if (claim.verdict == "rejected")
    os << llvm::format("replayed: out of reach by %.3g\n", replay.distance);
  else
    os << llvm::format("replayed: error %.2g, without the patch %.3g\n", replay.error,
                       replay.control);
}

static llvm::Expected<int> runCheckProof(const Arguments &arguments) {
  auto found = readProof(arguments.positional(1));
  if (!found)
    return found.takeError();
  proof::CheckOptions options;
  auto seed = arguments.integer("--seed", 0, 1 << 30, options.seed);
  if (!seed)
    return seed.takeError();
  options.seed = *seed;
  auto numbers = arguments.integer("--numbers", 0, int64_t(1) << 40, options.numbers);
  if (!numbers)
    return numbers.takeError();
  options.numbers = *numbers;
  LoadOptions loading;
  loading.needWeights = false;
  auto model = openModel(arguments.positional(0), std::move(loading));
  if (!model)
    return model.takeError();
  proof::Judgement judgement = proof::checkProof((*model)->module(), *found, options);
  for (size_t i = 0; i < found->claims.size(); ++i)
    printClaim(found->claims[i], judgement.replays[i]);
  if (!found->past.empty())
    out() << "the model: undecided: the context goes past the layers by "
          << llvm::join(found->past, ", ") << "\n";
  flushOutput();
  std::string path = printableLine(arguments.positional(1));
  constexpr size_t most = 100;
  size_t count = judgement.problems.size();
  for (const std::string &problem : llvm::ArrayRef(judgement.problems).take_front(most))
    err() << path << ": error: " << printableLine(problem) << "\n";
  if (count > most)
    err() << path << ": error: and " << count - most << " more\n";
  if (count)
    out() << "\nthe proof does not hold: " << counted(count, "claim") << " wrong\n";
  else if (judgement.skipped)
    out() << "\nthe proof is not shown to hold: nothing was found against it, and "
          << judgement.skipped << " of " << found->claims.size() << " claims were not replayed\n";
  else
    out() << "\nthe proof holds\n";
  return judgement.holds() ? ExitGood : ExitAgainst;
}

Command driver::checkProofCommand() {
  return {
      "check-proof",
      "check a proof that `ctxc check --proof FILE` wrote, independently of the planner",
      {"MODEL", "FILE"},
      {{"--numbers", "N", "check only the structure of blocks with more than N numbers (20000000)"},
       {"--seed", "N", "seed of the random weights and activations for replaying claims (1)"}},
      "A small checker, which shares no code with the analysis and the planner: like these, it\n"
      "trusts what xf's ops say about themselves. It compares every\n"
      "claim of FILE with MODEL's blocks: their text and bindings, the cut, the chains, the\n"
      "parameters, the conditions of each lemma instance and the barriers of a rejection. Then it\n"
      "replays the claim in float64 on random weights. MODEL's own weights are not needed. See\n"
      "docs/proofs.md. The exit code is 0 if the proof holds, 1 if a claim is wrong or was not\n"
      "replayed, 2 if FILE or MODEL cannot be read.",
      "  ctxc check examples/models/gemma3-kjv-1m --proof gemma3.proof.json\n"
      "  ctxc check-proof examples/models/gemma3-kjv-1m gemma3.proof.json\n",
      runCheckProof};
}
