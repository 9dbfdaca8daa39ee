#include "Figures.h"
#include "ctxc/InspectPage/InspectPage.h"
#include "ctxc/Page/Frame.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::page;
using llvm::StringRef;

static std::string joined(llvm::ArrayRef<int64_t> layers) {
  std::string text = layers.size() == 1 ? "layer " : "layers ";
  for (auto [i, layer] : llvm::enumerate(layers))
    text += (i == 0 ? "" : i + 1 == layers.size() ? " and " : ", ") + std::to_string(layer);
  return text;
}

/// A part of the context, in its own words.
static std::string quoted(const Subject &of, const LeftOut &part) {
  std::string words = readableText(of.inspection, of.settings, of.name, part.positions);
  return "“<bdi>" + escaped(fitColumns(words, 40, false)) + "</bdi>”";
}

/// To which parts of the context the patch owes most. The first token is no finding, since models
/// send attention there that goes nowhere else, whatever the token is; it is named apart.
static std::string originsOf(const Subject &of) {
  bool matrices = of.has(true);
  auto change = [&](const LeftOut *part) {
    return matrices ? part->relative.matrix : part->relative.vector;
  };
  std::vector<const LeftOut *> order;
  for (const LeftOut &part : of.subject().leftOut)
    order.push_back(&part);
  llvm::sort(order, [&](const LeftOut *a, const LeftOut *b) {
    return std::pair(-change(a), a) < std::pair(-change(b), b);
  });
  const LeftOut *sink = nullptr;
  auto first = llvm::find_if(order, [](const LeftOut *part) {
    return part->positions.size() == 1 && part->positions.front() == 0;
  });
  if (first != order.end() && first - order.begin() < 3) {
    sink = *first;
    order.erase(first);
  }
  order.resize(std::min<size_t>(order.size(), 3));
  std::string text;
  for (auto [i, part] : llvm::enumerate(order))
    text += (i == 0                  ? "It owes most to "
             : i + 1 == order.size() ? " and "
                                     : ", ") +
            quoted(of, *part);
  if (!order.empty())
    text += ". ";
  if (sink)
    text += "The first token, " + quoted(of, *sink) +
            ", is not counted, as an attention sink: it gets attention that goes nowhere else. "
            "Without it the patch would change by " +
            percent(change(sink)) + ".";
  return text;
}

/// The page's findings in a few sentences.
static std::string leadOf(const Subject &of) {
  const SubjectInspection &subject = of.subject();
  std::string text = "<p class=\"lead\">It is token " + std::to_string(subject.position + 1) +
                     " of " + std::to_string(of.inspection.tokens.size()) + ". ";
  auto tell = [&](const char *what, double PatchNorm::*norm) {
    MostOfPatch most = mostOfPatch(subject.norms.layers, norm);
    if (!most.layers.empty())
      text += std::string("Of the change of the ") + what + ", " + joined(most.layers) +
              (most.layers.size() == 1 ? " takes " : " take ") +
              number(std::round(100 * most.share)) + " %. ";
  };
  tell("matrices", &PatchNorm::matrix);
  tell("vectors", &PatchNorm::vector);
  return text + originsOf(of) + "</p>";
}

static std::string footerOf(const Subject &of) {
  const VerifySettings &run = of.settings.run;
  int64_t harmful = 0;
  for (const LayerObligations &layer : of.subject().obligations)
    harmful += layer.harmful;
  std::string text =
      "<p>Model <code>" + escaped(run.model) + "</code>, weights " + escaped(run.dtype) +
      ", hash <code>" + escaped(run.modelHash.substr(0, 16)) + "</code>; update " +
      (run.updateApplies ? escaped(run.update) : std::string("none applies")) + "; plan " +
      escaped(run.plan) + "; " + escaped(run.backend) + " backend; ctxc " CTXC_VERSION "." +
      (run.notCompared.empty() ? ""
                               : " What was read of the model was not compared with its source: " +
                                     escaped(run.notCompared) + ".") +
      "</p>\n";
  if (!run.request.kept.empty())
    text += "<p>Kept in the reduced run: positions " + positionsText(run.request.kept) +
            (run.whyKept.empty() ? "" : ", since " + escaped(run.whyKept)) + ".</p>\n";
  if (harmful)
    text += "<p>" + std::to_string(harmful) +
            " divisors were zero where a change was needed: the patch is not exact there.</p>\n";
  return text +
         "<p>Each patch is exact for its token at its position, and for no other "
         "(<i>Equivalence of Context and Parameter Updates in Modern Transformer Blocks</i>, "
         "arXiv 2511.17864, Algorithm 1).</p>";
}

static std::string figuresOf(const Subject &of) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writePrompt(os, of);
  writeRuns(os, of);
  writeLayersByTokens(os, of);
  writeNearest(os, of);
  os << "<div class=\"pair\">\n";
  writeLayerCosines(os, of);
  writeTokenCosines(os, of);
  os << "</div>\n";
  writeParameters(os, of);
  return text;
}

void ctxc::writeInspectPage(llvm::raw_ostream &os, const Inspection &inspection,
                            const InspectSettings &settings, const TokenName &name) {
  Subject of{inspection, settings, name};
  std::string token = label(name, inspection.subject.token, 40);
  writePage(os, {"ctxc inspect", "What the context did to " + token,
                 "What the context did to <bdi class=\"tok\">" + token + "</bdi>", leadOf(of),
                 figuresOf(of), footerOf(of)});
}
