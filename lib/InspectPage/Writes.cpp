// What layers write into the residual stream: nearest tokens, and cosines between layers.
#include "Figures.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::page;

static std::vector<Bar> barsOf(const Subject &of, llvm::ArrayRef<TokenScore> scores,
                               double largest) {
  std::vector<Bar> bars;
  for (const TokenScore &score : scores)
    bars.push_back(
        {label(of.name, score.token, 15), largest > 0 ? std::fabs(score.score) / largest : 0,
         number(score.score),
         "token " + std::to_string(score.token) + ", " + label(of.name, score.token, 60)});
  return bars;
}

static void writeCard(llvm::raw_ostream &os, const Subject &of, const LayerWrite &write,
                      double mostWritten) {
  double largest = 0;
  for (llvm::ArrayRef<TokenScore> side : {write.towards, write.away})
    for (const TokenScore &score : side.take_front(1))
      largest = std::max(largest, std::fabs(score.score));
  std::string layer = std::to_string(write.layer);
  os << "<article class=\"card\" aria-label=\"layer " << layer << "\"><header><h3>Layer " << layer
     << "</h3><span class=\"share\">" << percent(write.relative)
     << "</span></header><div class=\"meter\" style=\"--v:"
     << coordinate(mostWritten > 0 ? write.relative / mostWritten : 0) << "\"></div>\n";
  writeBars(os, barsOf(of, write.towards, largest), "towards", "towards these tokens");
  writeBars(os, barsOf(of, llvm::ArrayRef(write.away).take_front(2), largest), "away",
            "away from these tokens");
  os << "</article>\n";
}

void page::writeNearest(llvm::raw_ostream &os, const Subject &of) {
  const SubjectInspection &subject = of.subject();
  os << "<section aria-labelledby=\"nearest\"><h2 id=\"nearest\">What it says</h2>\n<figure>"
        "<figcaption>What each layer’s patch writes into the residual stream, as a share of the "
        "layer’s output, and the tokens which that points towards, and (below the dashes) away "
        "from: "
        "the direction read through the model’s own final norm, scale and head.</figcaption>\n";
  if (!subject.noLens.empty())
    os << "<p>No nearest tokens: " << escaped(subject.noLens) << ".</p>\n";
  double mostWritten = 0;
  for (const LayerWrite &write : subject.writes)
    mostWritten = std::max(mostWritten, write.relative);
  os << "<div class=\"cards\">\n";
  for (const LayerWrite &write : subject.writes)
    writeCard(os, of, write, mostWritten);
  os << "</div></figure></section>\n";
}

void page::writeLayerCosines(llvm::raw_ostream &os, const Subject &of) {
  const SubjectInspection &subject = of.subject();
  size_t count = subject.writes.size();
  Grid grid;
  grid.what = "cosines between what layers write";
  grid.hue = "of-cosine";
  grid.cell = grid.height = count > 40 ? 12 : count > 12 ? 20 : 30;
  for (const LayerWrite &write : subject.writes)
    grid.columns.push_back(std::to_string(write.layer));
  for (size_t i = count; i-- > 0;) {
    grid.rows.push_back(grid.columns[i]);
    for (size_t j = 0; j < count; ++j) {
      std::optional<double> cosine = subject.writeCosines[i * count + j];
      grid.cells.push_back({cosine.value_or(0), "layers " + grid.columns[i] + " and " +
                                                    grid.columns[j] + ": cosine " +
                                                    cosineText(cosine)});
    }
  }
  os << "<section aria-labelledby=\"agree\"><h2 id=\"agree\">Do layers agree?</h2>\n<figure>"
        "<figcaption>The cosine of the angle between what two layers write into the stream. "
        "Neighbours that push the same way show as blocks along the diagonal.</figcaption>\n";
  writeGrid(os, grid);
  writeScale(os, "of-cosine", "−1", "1");
  {
    std::vector<llvm::StringRef> heads = {"layer"};
    for (const std::string &column : grid.columns)
      heads.push_back(column);
    Table table(os, "Cosines between layers", heads);
    for (size_t i = 0; i < count; ++i) {
      std::vector<std::string> row = {grid.columns[i]};
      for (size_t j = 0; j < count; ++j)
        row.push_back(cosineText(subject.writeCosines[i * count + j]));
      table.row(row);
    }
  }
  os << "</figure></section>\n";
}
