// Full, patched and unpatched run side by side, which shows that the patch works.
#include "Figures.h"

using namespace ctxc;
using namespace ctxc::page;

static void writeRun(llvm::raw_ostream &os, const Subject &of, llvm::StringRef hue,
                     llvm::StringRef title, llvm::StringRef what, llvm::ArrayRef<TokenScore> top,
                     const TokenMetrics *metrics) {
  os << "<div class=\"" << hue << "\"><h3>" << title << "</h3><p class=\"note\">" << what
     << "</p>\n";
  std::vector<Bar> bars;
  for (const TokenScore &score : top)
    bars.push_back({label(of.name, score.token, 24), score.score, percent(score.score),
                    "token " + std::to_string(score.token)});
  writeBars(os, bars, hue, title);
  if (metrics)
    os << "<p class=\"note\"><span class=\"verdict\">"
       << (metrics->match ? "= the same token" : "≠ another token")
       << "</span><br>logits differ by at most " << number(metrics->linf) << ", distributions by "
       << number(metrics->totalVariation) << " (TVD)</p>\n";
  os << "</div>\n";
}

void page::writeRuns(llvm::raw_ostream &os, const Subject &of) {
  const SubjectInspection &subject = of.subject();
  os << "<section aria-labelledby=\"runs\"><h2 id=\"runs\">The same model without the "
        "context</h2>\n"
        "<figure><figcaption>What comes after the token, in three runs. The patched run sees the "
        "patch and nothing of the context"
     << (of.settings.run.request.kept.empty() ? "" : " but the tokens that are kept")
     << ".</figcaption>\n";
  if (!of.inspection.hasHead)
    os << "<p>The model has no head, and predicts no tokens. Its outputs differ from the full "
          "run’s by "
          "at most "
       << number(subject.patchedMetrics.linf) << " with the patch, and by "
       << number(subject.unpatchedMetrics.linf) << " without it.</p>\n";
  else {
    os << "<div class=\"columns runs\">\n";
    writeRun(os, of, "full", "Full run", "with the context", subject.full, nullptr);
    writeRun(os, of, "patched", "Patched run", "without the context, with the patch",
             subject.patched, &subject.patchedMetrics);
    writeRun(os, of, "unpatched", "Unpatched run", "without the context, without a patch",
             subject.unpatched, &subject.unpatchedMetrics);
    os << "</div>\n";
  }
  os << "</figure></section>\n";
}
