#include "ctxc/Report/VerifyReport.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace ctxc;

/// A measured number in eight columns.
static std::string figure(double value) {
  if (std::isinf(value))
    return "     inf";
  return llvm::formatv("{0}", llvm::format("%8.3g", value)).str();
}

static std::string brief(double value) { return llvm::StringRef(figure(value)).trim().str(); }

static std::string percent(double fraction) { return brief(100 * fraction) + " %"; }

static std::string seconds(double value) {
  return llvm::formatv("{0}", llvm::format(value < 10 ? "%.2f s" : "%.1f s", value)).str();
}

std::string ctxc::positionsText(llvm::ArrayRef<int64_t> positions) {
  std::string text;
  for (size_t i = 0, end; i < positions.size(); i = end) {
    for (end = i + 1; end < positions.size() && positions[end] == positions[end - 1] + 1;)
      ++end;
    text += (i ? ", " : "") + std::to_string(positions[i]);
    if (end - i > 1)
      text += "-" + std::to_string(positions[end - 1]);
  }
  return text;
}

std::string ctxc::whyKeptText(const VerifySettings &settings, llvm::StringRef indent) {
  if (settings.whyKept.empty())
    return "";
  auto [first, second] = llvm::StringRef(settings.whyKept).split(", and ");
  return (",\n" + indent + "since " + first + ", and\n" + indent + second + "\n" + indent +
          "(the option keep says otherwise: none, or other positions)")
      .str();
}

void VerifyText::mark(bool good) {
  if (os.has_colors())
    os.changeColor(good ? llvm::raw_ostream::GREEN : llvm::raw_ostream::RED, true);
  os << (good ? "=" : "≠");
  if (os.has_colors())
    os.resetColor();
}

/// Describes the context of the last token.
static std::string contextText(const RunRequest &request) {
  llvm::ArrayRef<Input> context = llvm::ArrayRef(request.tokens).drop_back();
  int64_t given = llvm::count_if(context, [](const Input &input) { return input.isEmbedding(); });
  std::string tokens = counted(context.size() - given, "token");
  return given ? tokens + " and " + counted(given, "embedding") + " in place of tokens" : tokens;
}

std::string ctxc::notComparedLine(const VerifySettings &settings) {
  return settings.notCompared.empty()
             ? ""
             : "read       not compared with its source: " + printableLine(settings.notCompared) +
                   "\n";
}

std::string ctxc::outputText(const VerifySettings &settings, bool hasHead) {
  return hasHead ? counted(settings.vocabulary, "token") + " in the vocabulary"
                 : counted(settings.vocabulary, "number") + " as its output, no head";
}

void VerifyText::begin() {
  const RunRequest &request = settings.request;
  os << "model      " << printableLine(settings.model) << " (" << counted(settings.layers, "layer")
     << ", " << outputText(settings, !settings.request.headless) << ")\n"
     << "weights    " << settings.dtype << ", hash " << settings.modelHash << "\n";
  os << notComparedLine(settings);
  if (!settings.patchFile.empty())
    os << "patch      " << printableLine(settings.patchFile);
  if (!settings.patchFactors.empty())
    os << ", in " << settings.patchFactors << ": rounding took at most "
       << percent(settings.patchRounding) << " of its changes";
  if (!settings.patchFile.empty())
    os << "\n";
  os << "update     " << (settings.updateApplies ? settings.update : "none applies") << ", "
     << (request.materialize ? "added to the weights and rounded to their type"
                             : "kept factored beside the weights")
     << "\nplan       " << settings.plan << "\nbackend    " << settings.backend << "\n";
  if (request.positions.empty())
    os << "context    " << contextText(request) << "; ";
  else
    os << "positions  " << fitColumns(positionsText(request.positions), 88, false) << " of "
       << counted(request.tokens.size(), "token")
       << ", each patched after the tokens before it\n           ";
  if (request.kept.empty())
    os << (request.tokens.size() == 2 ? "it is not" : "none of them") << " kept in the reduced run";
  else
    os << "kept in the reduced run: " << (request.kept.size() == 1 ? "position " : "positions ")
       << positionsText(request.kept) << whyKeptText(settings, "           ");
  if (settings.request.headless) {
    os << "\n\n"
       << "                        the last hidden state: L∞              cosine\n"
       << (request.positions.empty() ? "step" : "pos.")
       << " token               patched   unpatched       patched   unpatched\n";
    return;
  }
  os << "\n\n"
     << "                      full run          patched run         unpatched\n"
     << (request.positions.empty() ? "step" : "pos.")
     << " token            with context      without context     without context        L∞     "
        " "
        "TVD\n";
}

void VerifyText::step(const VerifyStep &step) {
  ++count;
  bool isStep = settings.request.positions.empty();
  os << llvm::format("%4d ", static_cast<int>(isStep ? count : step.position))
     << fitColumns(name(step.token), 16) << " ";
  if (settings.request.headless) {
    os << "  " << figure(step.patched.linf) << "    " << figure(step.control.linf) << "      "
       << figure(step.patchedCosine) << "    " << figure(step.controlCosine) << "\n";
    os.flush();
    return;
  }
  os << fitColumns(name(step.next), 17) << " ";
  mark(step.patched.match);
  os << " " << fitColumns(name(step.patched.token), 17) << " ";
  mark(step.control.match);
  os << " " << fitColumns(name(step.control.token), 15) << " " << figure(step.patched.linf) << " "
     << figure(step.patched.totalVariation) << "\n";
  os.flush();
}

/// How near the last hidden states are, and the pooled vector.
void VerifyText::states(const VerifyResult &result, const VerifySummary &summary) {
  os << "states     L∞ patched at most " << brief(summary.worstLinf) << ", unpatched "
     << brief(summary.worstControlLinf);
  if (summary.worstFusedLinf)
    os << "; separate against fused " << brief(*summary.worstFusedLinf);
  if (!result.pooled)
    return;
  const PooledText &text = *result.pooled;
  os << "\npooled     " << describe(text.pooling) << ", of " << counted(text.tokens, "token")
     << "\n           L∞ patched " << brief(text.patchedLinf) << ", unpatched "
     << brief(text.controlLinf) << "; cosine patched " << brief(text.patchedCosine)
     << ", unpatched " << brief(text.controlCosine);
}

void VerifyText::end(const VerifyResult &result, const SetupTimes &setup, llvm::StringRef text) {
  VerifySummary summary = summarize(result.steps);
  os << "\n";
  if (!text.empty())
    os << "text       " << fitColumns(text, 88, false) << "\n";
  if (result.ended)
    os << "end        with " << fitColumns(name(result.steps.back().next), 40, false) << ", after "
       << counted(result.steps.size(), "token") << " of at most " << settings.generate << "\n";
  if (settings.request.headless) {
    states(result, summary);
  } else {
    os << "tokens     patched " << summary.matches << " of " << summary.steps << " match ("
       << percent(double(summary.matches) / summary.steps) << "); unpatched "
       << summary.controlMatches << " of " << summary.steps << "\n"
       << "logits     L∞ patched at most " << brief(summary.worstLinf) << ", unpatched "
       << brief(summary.leastControlLinf);
    if (summary.steps > 1)
      os << " to " << brief(summary.worstControlLinf);
    if (summary.worstFusedLinf)
      os << "; separate against fused " << brief(*summary.worstFusedLinf);
  }
  os << "\npatch      matrices: norm " << brief(summary.largestMatrixNorm) << ", at most "
     << percent(summary.largestMatrixRelative) << " of a layer's own\n           vectors:  norm "
     << brief(summary.largestVectorNorm) << ", at most " << percent(summary.largestVectorRelative)
     << " of a layer's own\n";
  if (settings.patchFile.empty())
    os << "zeros      " << summary.harmful << " harmful, " << summary.harmless
       << " harmless divisors replaced by 1\n"
       << "replay     predicted error in another program: at most "
       << brief(summary.largestReplayError) << " in a layer's output\n";
  const ReplayError replay = replayErrorIn(settings.replay, result.steps, settings.sink);
  if (settings.patchFile.empty() && settings.replay != "f32")
    os << "           in " << settings.replay << " activations: at most "
       << percent(replay.relative) << " of a layer's output, " << brief(replay.error)
       << " in layer " << replay.layer << "\n";
  for (auto [rank, facts] : llvm::enumerate(settings.ranks)) {
    os << (rank == 0 ? "ranks      " : "           ") << rank << ": ";
    if (facts.firstLayer == facts.endLayer)
      os << "the head";
    else
      os << "layers " << facts.firstLayer << "-" << facts.endLayer - 1;
    os << ", " << brief(facts.weightBytes * 1e-6) << " MB of weights, "
       << brief(facts.residentBytes * 1e-6) << " MB resident; " << brief(facts.streamBytes * 1e-3)
       << " kB to the next, " << brief(facts.sharedBytes * 1e-3) << " kB within the layers, "
       << brief(facts.sentBytes * 1e-3) << " kB sent in all\n";
  }
  if (std::string why = replayWarning(settings.replay, replay); !why.empty())
    os << "warning    " << why << ";\n           keep a token in front, or replay in f32\n";
  const RunTimes &times = result.times;
  os << "time       import " << seconds(setup.import) << ", plan " << seconds(setup.plan)
     << ", compile " << seconds(setup.compile) << ", prefill " << seconds(times.prefill) << "\n"
     << "           " << (settings.patchFile.empty() ? "patch " : "full run ")
     << seconds(times.patch) << ", verify " << seconds(times.verify) << ", control "
     << seconds(times.control) << "\n\n";
  outcome(summary);
}

void VerifyText::outcome(const VerifySummary &summary) {
  const char *number = settings.request.headless ? "a number" : "a logit";
  if (isVerified(summary, settings))
    os << "verified: the patched model without the context gives "
       << (settings.request.headless ? "the last hidden state" : "every token")
       << " of the model with it\n";
  else if (summary.verified())
    os << "not verified: " << number << " differs by " << brief(summary.worstLinf) << ", more than "
       << brief(*settings.tolerance) << "\n";
  else if (summary.matches < summary.steps || !summary.finite)
    os << "not verified: " << summary.steps - summary.matches << " of "
       << counted(summary.steps, "token")
       << (summary.steps - summary.matches == 1 ? " differs\n" : " differ\n");
  else if (std::string why = whyTooLarge(summary.largestPatch); !why.empty())
    os << "not verified: " << why << "\n";
  else
    os << "not verified: in " << summary.beyond << " of " << counted(summary.steps, "step") << " "
       << number << " differs by more than roundings allow: found " << brief(summary.nearestLinf)
       << ", expected at most " << brief(summary.nearestAllowed) << "\n";
  if (summary.harmful)
    os << "note: " << counted(summary.harmful, "divisor")
       << (summary.harmful == 1 ? " was" : " were")
       << " zero where a change was needed; the patch is "
          "not exact there\n";
}
