// The cosine of each token's patch with the one before, as a line through the tokens.
#include "Figures.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using namespace ctxc::page;

namespace {

class Chart {
public:
  Chart(llvm::raw_ostream &os, const Subject &of) : os(os), of(of) {
    tokens = of.inspection.patches;
    tokens = tokens.drop_front(tokens.empty() ? 0 : 1); // the first has none before it
    tokens = tokens.take_back(64);
    for (const TokenInspection &token : tokens)
      for (std::optional<double> cosine : {token.before.total.matrix, token.before.total.vector})
        if (cosine)
          least = std::min(least, *cosine);
    step = std::max(8.0, std::min(28.0, 460.0 / std::max<size_t>(tokens.size(), 1)));
    width = left + step * tokens.size() + 8;
  }

  bool isEmpty() const { return tokens.empty(); }
  void write();

private:
  double x(size_t index) const { return left + step * (index + 0.5); }
  double y(double cosine) const { return 6 + height * (1 - cosine) / (1 - least); }
  void axis(double cosine);
  void series(std::optional<double> PatchCosine::*cosine, llvm::StringRef hue,
              llvm::StringRef kind);

  llvm::raw_ostream &os;
  const Subject &of;
  llvm::ArrayRef<TokenInspection> tokens;
  double least = 0, step, width, left = 34, height = 170;
};

void Chart::axis(double cosine) {
  os << "<line class=\"axis\" x1=\"" << coordinate(left) << "\" x2=\"" << coordinate(width)
     << "\" y1=\"" << coordinate(y(cosine)) << "\" y2=\"" << coordinate(y(cosine))
     << "\"/><text text-anchor=\"end\" x=\"" << coordinate(left - 6) << "\" y=\""
     << coordinate(y(cosine) + 4) << "\">" << number(cosine) << "</text>\n";
}

void Chart::series(std::optional<double> PatchCosine::*cosine, llvm::StringRef hue,
                   llvm::StringRef kind) {
  os << "<g class=\"" << hue << "\"><polyline class=\"line\" points=\"";
  for (auto [i, token] : llvm::enumerate(tokens))
    if (token.before.total.*cosine)
      os << coordinate(x(i)) << "," << coordinate(y(*(token.before.total.*cosine))) << " ";
  os << "\"/>\n";
  for (auto [i, token] : llvm::enumerate(tokens))
    if (std::optional<double> value = token.before.total.*cosine)
      os << "<circle class=\"i dot\" r=\"" << (token.position == of.subject().position ? 5 : 3.5)
         << "\" cx=\"" << coordinate(x(i)) << "\" cy=\"" << coordinate(y(*value)) << "\"><title>"
         << label(of.name, token.token, 30) << ", position " << token.position
         << "\ncosine with the patch of the token before: " << cosineText(value) << " (" << kind
         << ")</title></circle>\n";
  os << "</g>\n";
}

void Chart::write() {
  bool labelled = tokens.size() <= 32;
  double all = height + (labelled ? 80 : 16);
  os << "<div class=\"scroll\"><svg style=\"--least:" << coordinate(leastWidth(width))
     << "px\" width=\"" << coordinate(width) << "\" height=\"" << coordinate(all)
     << "\" viewBox=\"0 0 " << coordinate(width) << " " << coordinate(all)
     << "\" role=\"group\" aria-label=\"cosines of patches of successive tokens\" "
        "data-columns=\"0\">\n<g aria-hidden=\"true\">\n";
  for (double cosine : {1.0, 0.5, 0.0})
    axis(cosine);
  if (labelled)
    for (auto [i, token] : llvm::enumerate(tokens))
      os << "<text text-anchor=\"end\""
         << (token.position == of.subject().position ? " class=\"mark\"" : "")
         << " transform=\"translate(" << coordinate(x(i) + 4) << " " << coordinate(y(least) + 14)
         << ") rotate(-55)\">" << label(of.name, token.token, 9) << "</text>\n";
  os << "</g>\n";
  if (of.has(true))
    series(&PatchCosine::matrix, "of-matrix", "matrices");
  if (of.has(false))
    series(&PatchCosine::vector, "of-vector", "vectors");
  os << "</svg></div>\n";
}

} // namespace

void page::writeTokenCosines(llvm::raw_ostream &os, const Subject &of) {
  Chart chart(os, of);
  if (chart.isEmpty())
    return;
  os << "<section aria-labelledby=\"successive\"><h2 id=\"successive\">Does it last?</h2>\n<figure>"
        "<figcaption>The cosine of each token’s patch with that of the token before: near 1, one "
        "patch would do for both; near 0, each token needs its own.</figcaption>\n";
  chart.write();
  os << "<p class=\"scale\">";
  if (of.has(true))
    os << "<span class=\"ramp of-matrix\" "
          "style=\"background:rgb(var(--matrix));width:.8rem\"></span> "
          "matrices ";
  if (of.has(false))
    os << "<span class=\"ramp of-vector\" "
          "style=\"background:rgb(var(--vector));width:.8rem\"></span> "
          "vectors";
  os << "</p>\n";
  {
    Table table(os, "Patches of all tokens",
                {"token", "position", "matrices", "cosine", "vectors", "cosine"});
    for (const TokenInspection &token : of.inspection.patches)
      table.row({"<bdi class=\"tok\">" + label(of.name, token.token, 24) + "</bdi>",
                 std::to_string(token.position), number(token.norms.total.matrix),
                 cosineText(token.before.total.matrix), number(token.norms.total.vector),
                 cosineText(token.before.total.vector)});
  }
  os << "</figure></section>\n";
}
