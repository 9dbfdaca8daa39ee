#include "ctxc/Report/InspectReport.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace ctxc;

namespace {

std::string printed(const char *format, double value) {
  return llvm::formatv("{0}", llvm::format(format, value)).str();
}
std::string figure(double value) { return printed("%8.3g", value); }
std::string percent(double fraction) { return printed("%7.3g %%", 100 * fraction); }
std::string brief(double value) { return printed("%.3g", value); }

/// `value` relative to `largest` as a bar of at most `columns`, in eighths of a column, padded.
std::string bar(double value, double largest, unsigned columns) {
  static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  unsigned length = largest > 0 && value > 0
                        ? unsigned(std::lround(8 * columns * std::min(1.0, value / largest)))
                        : 0;
  std::string text;
  for (unsigned i = 0; i < length / 8; ++i)
    text += "█";
  text += eighths[length % 8];
  text.append(columns - (length + 7) / 8, ' ');
  return text;
}

std::string cosineText(std::optional<double> cosine) {
  return cosine ? printed("%6.2f", *cosine) : "     –";
}

class InspectText {
public:
  InspectText(llvm::raw_ostream &os, const Inspection &inspection, const InspectSettings &settings,
              const TokenName &name)
      : os(os), inspection(inspection), subject(inspection.subject), settings(settings), name(name),
        hasMatrices(any(&ParameterChange::isMatrix, true)),
        hasVectors(any(&ParameterChange::isMatrix, false)) {}

  void print() {
    begin();
    predictions();
    layers();
    parameters();
    tokens();
    leftOut();
    end();
  }

private:
  bool any(bool ParameterChange::*member, bool value) const {
    return llvm::any_of(subject.parameters,
                        [&](const ParameterChange &change) { return change.*member == value; });
  }
  void begin();
  void predictions();
  void layers();
  void parameters();
  void tokens();
  void leftOut();
  void end();
  std::string nearest(llvm::ArrayRef<TokenScore> scores, size_t count) const {
    std::string text;
    for (const TokenScore &score : scores.take_front(count))
      text += (text.empty() ? "" : "  ") + fitColumns(name(score.token), 16, false);
    return text;
  }

  llvm::raw_ostream &os;
  const Inspection &inspection;
  const SubjectInspection &subject;
  const InspectSettings &settings;
  const TokenName &name;
  bool hasMatrices, hasVectors;
};

void InspectText::begin() {
  const VerifySettings &run = settings.run;
  os << "model      " << printableLine(run.model) << " (" << counted(run.layers, "layer") << ", "
     << outputText(run, inspection.hasHead) << ")\n"
     << notComparedLine(run) << "update     " << (run.updateApplies ? run.update : "none applies")
     << "; " << run.dtype << " weights; " << run.backend << "\nplan       " << run.plan
     << "\ntoken      " << fitColumns(name(subject.token), 40, false) << " at position "
     << subject.position << "; of the " << subject.position << " before it ";
  llvm::ArrayRef<int64_t> kept = run.request.kept;
  kept = kept.take_while([&](int64_t position) { return position < subject.position; });
  if (kept.empty())
    os << "none is kept in the reduced run\n\n";
  else
    os << "kept in the reduced run: " << fitColumns(positionsText(kept), 30, false)
       << whyKeptText(run, "           ") << "\n\n";
}

void InspectText::predictions() {
  if (!inspection.hasHead) {
    os << "The model has no head: it predicts no tokens, and no direction can be read as tokens.\n"
          "L∞ of its outputs: patched "
       << brief(subject.patchedMetrics.linf) << ", unpatched "
       << brief(subject.unpatchedMetrics.linf) << "\n\n";
    return;
  }
  os << "predicts   full run,                     patched run,                 unpatched,\n"
        "           with context                  without context              without context\n";
  for (auto [full, patched, unpatched] :
       llvm::zip_equal(subject.full, subject.patched, subject.unpatched)) {
    os << "          ";
    for (const TokenScore *score : {&full, &patched, &unpatched})
      os << " " << fitColumns(name(score->token), 17) << printed("%7.1f %%", 100 * score->score)
         << (score == &unpatched ? "" : "  ");
    os << "\n";
  }
  os << "L∞, TVD    from the full run:            " << figure(subject.patchedMetrics.linf) << " "
     << figure(subject.patchedMetrics.totalVariation) << "            "
     << figure(subject.unpatchedMetrics.linf) << " "
     << figure(subject.unpatchedMetrics.totalVariation) << "\n\n";
}

void InspectText::layers() {
  double largest = 0, largestVector = 0;
  for (const PatchNorm &norm : subject.norms.layers) {
    largest = std::max(largest, norm.matrixRelative);
    largestVector = std::max(largestVector, norm.vectorRelative);
  }
  os << "layer  matrices                    vectors                     written  "
     << (subject.noLens.empty() ? "towards these tokens" : "") << "\n"
     << "           norm    of own                norm    of own       of stream\n";
  const LayerWrite none;
  for (auto [layer, norm] : llvm::enumerate(subject.norms.layers)) {
    auto found = llvm::find_if(subject.writes, [index = int64_t(layer)](const LayerWrite &write) {
      return write.layer == index;
    });
    const LayerWrite &write = found == subject.writes.end() ? none : *found;
    os << llvm::format("%5d ", int(layer)) << figure(norm.matrix) << " "
       << percent(norm.matrixRelative) << " " << bar(norm.matrixRelative, largest, 7) << " "
       << figure(norm.vector) << " " << percent(norm.vectorRelative) << " "
       << bar(norm.vectorRelative, largestVector, 7) << " " << percent(write.relative) << "  "
       << fitColumns(nearest(write.towards, 3), 23, false) << "\n";
  }
  os << "  all " << figure(subject.norms.total.matrix) << " "
     << percent(subject.norms.total.matrixRelative) << "         "
     << figure(subject.norms.total.vector) << " " << percent(subject.norms.total.vectorRelative)
     << "\n\n";
}

void InspectText::parameters() {
  struct Sum {
    const ParameterChange *largest = nullptr;
    double squares = 0;
  };
  llvm::MapVector<llvm::StringRef, Sum> sums;
  for (const ParameterChange &change : subject.parameters) {
    Sum &sum = sums[change.name];
    sum.squares += change.norm * change.norm;
    if (!sum.largest || change.relative > sum.largest->relative)
      sum.largest = &change;
  }
  os << "parameter                                                 norm  largest share of its "
        "own\n";
  for (auto &[parameter, sum] : sums)
    os << "  " << fitColumns(parameter, 40) << " " << (sum.largest->isOutput ? "output" : "input ")
       << "  " << figure(std::sqrt(sum.squares)) << "  " << percent(sum.largest->relative)
       << " in layer " << sum.largest->layer << "\n";
  os << "\n";
}

void InspectText::tokens() {
  llvm::ArrayRef<TokenInspection> shown = inspection.patches;
  constexpr size_t limit = 24;
  auto end = llvm::find_if(
      shown, [&](const TokenInspection &token) { return token.position == subject.position; });
  size_t last = std::min<size_t>(shown.size(), end - shown.begin() + 1 + limit / 4);
  shown = shown.take_front(std::max(last, std::min(shown.size(), limit)));
  shown = shown.take_back(limit);
  double largest = 0;
  for (const TokenInspection &token : shown)
    largest = std::max(largest, hasMatrices ? token.norms.total.matrix : token.norms.total.vector);
  os << "pos. token              matrices            vectors    cosine with the one before    "
     << (inspection.hasHead ? "predicts" : "") << "\n"
     << "                            norm               norm        matrices    vectors\n";
  for (const TokenInspection &token : shown) {
    const PatchNorm &norm = token.norms.total;
    os << (token.position == subject.position ? "›" : " ")
       << llvm::format("%3d ", int(token.position)) << fitColumns(name(token.token), 17) << " "
       << figure(norm.matrix) << " " << bar(hasMatrices ? norm.matrix : norm.vector, largest, 8)
       << " " << figure(norm.vector) << "          " << cosineText(token.before.total.matrix)
       << "     " << cosineText(token.before.total.vector) << "    "
       << (token.next >= 0 ? fitColumns(name(token.next), 15, false) : "") << "\n";
  }
  if (shown.size() < inspection.patches.size())
    os << "     " << counted(inspection.patches.size() - shown.size(), "more token")
       << " in JSON and on the page\n";
  os << "\n";
}

void InspectText::leftOut() {
  if (subject.leftOut.empty())
    return;
  std::vector<const LeftOut *> order;
  for (const LeftOut &part : subject.leftOut)
    order.push_back(&part);
  auto change = [&](const LeftOut &part) {
    return hasMatrices ? part.relative.matrix : part.relative.vector;
  };
  llvm::sort(order, [&](const LeftOut *a, const LeftOut *b) {
    return std::pair(-change(*a), a) < std::pair(-change(*b), b);
  });
  constexpr size_t limit = 10;
  os << "had it not been read                          the patch of "
     << (hasMatrices ? "matrices" : "vectors ") << "          full run's\n"
     << "                                              changes by                   TVD    "
     << (inspection.hasHead ? "prediction" : "") << "\n";
  for (const LeftOut *part : llvm::ArrayRef(order).take_front(limit)) {
    const bool isOne = part->positions.size() == 1;
    std::string words = isOne ? name(inspection.tokens[part->positions[0]])
                              : readableText(inspection, settings, name, part->positions);
    if (!settings.hasNames)
      words = (isOne ? "token " : "tokens ") + words;
    os << fitColumns(positionsText(part->positions), 8) << " " << fitColumns(words, 36)
       << percent(change(*part)) << " " << bar(change(*part), change(*order.front()), 12);
    if (inspection.hasHead)
      os << figure(part->totalVariation) << "    "
         << (part->next == subject.patchedMetrics.baselineToken ? "= " : "≠ ")
         << fitColumns(name(part->next), 16, false);
    os << "\n";
  }
  if (order.size() > limit)
    os << "         " << order.size() - limit << " more, of which each changes it less\n";
  os << "\n";
}

void InspectText::end() {
  auto tell = [&](const char *what, double PatchNorm::*norm) {
    MostOfPatch most = mostOfPatch(subject.norms.layers, norm);
    if (most.layers.empty())
      return;
    os << (most.layers.size() == 1 ? "layer " : "layers ");
    for (auto [i, layer] : llvm::enumerate(most.layers))
      os << (i == 0 ? "" : i + 1 == most.layers.size() ? " and " : ", ") << layer;
    os << (most.layers.size() == 1 ? " has " : " have ") << printed("%.0f %%", 100 * most.share)
       << " of the squared norm of the " << what << "\n";
  };
  tell("matrices", &PatchNorm::matrix);
  tell("vectors", &PatchNorm::vector);
  if (inspection.hasHead && !subject.noLens.empty())
    os << "no nearest tokens: " << subject.noLens << "\n";
  int64_t harmful = 0;
  for (const LayerObligations &layer : subject.obligations)
    harmful += layer.harmful;
  if (harmful)
    os << "note: " << counted(harmful, "divisor") << (harmful == 1 ? " was" : " were")
       << " zero where a change was needed; the patch is not exact there\n";
  const InspectTimes &times = inspection.times;
  os << llvm::format("time: %.2f s to open the model; %.2f s for the patches of all tokens, %.2f s "
                     "for what layers\nwrite, %.2f s for what parts of the context change\n",
                     settings.times.import + settings.times.plan + settings.times.compile,
                     times.tokens, times.writes, times.leftOut);
}

} // namespace

void ctxc::printInspection(llvm::raw_ostream &os, const Inspection &inspection,
                           const InspectSettings &settings, const TokenName &name) {
  InspectText(os, inspection, settings, name).print();
}
