// One patch for all tokens of a text: how many directions each layer needs, and which tokens need
// which.
#include "ctxc/InspectPage/InspectPage.h"
#include "ctxc/Page/Frame.h"
#include "ctxc/Page/Html.h"
#include "ctxc/Report/JointReport.h"
#include "ctxc/Support/Count.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::page;

namespace {

/// So many directions, and tokens, have a column of a picture at most.
constexpr size_t mostDirections = 16, mostTokens = 64;

/// The part of the square of a site's change in each of its directions.
std::vector<double> sharesOf(const JointSite &site) {
  double all = 0;
  for (double value : site.spectrum)
    all += value * value;
  std::vector<double> shares;
  for (double value : site.spectrum)
    shares.push_back(all > 0 ? value * value / all : 0);
  return shares;
}

size_t widestSpectrum(const JointPatch &patch) {
  size_t most = 1;
  for (const JointSite &site : patch.sites)
    most = std::max(most, site.spectrum.size());
  return std::min(most, mostDirections);
}

void writeSpectra(llvm::raw_ostream &os, const JointPatch &patch) {
  os << "<section aria-labelledby=\"spectra\"><h2 id=\"spectra\">How many directions a layer "
        "needs</h2>\n<figure><figcaption>Each row is the change of one layer’s matrix, each column "
        "a singular direction of it, the largest first: how much of the square of the change it "
        "has. Where a few directions are dark, the context does much the same to every "
        "token.</figcaption>\n";
  Grid grid;
  grid.what = "shares of singular directions, by layer";
  grid.hue = "of-matrix";
  const size_t columns = widestSpectrum(patch);
  for (size_t i = 0; i < columns; ++i)
    grid.columns.push_back(std::to_string(i + 1));
  for (const JointSite &site : patch.sites) {
    grid.rows.push_back("layer " + std::to_string(site.layer));
    std::vector<double> shares = sharesOf(site);
    shares.resize(columns);
    for (auto [i, share] : llvm::enumerate(shares))
      grid.cells.push_back({std::sqrt(share), "layer " + std::to_string(site.layer) +
                                                  ", direction " + std::to_string(i + 1) + ": " +
                                                  percent(share) + " of the square of the change"});
  }
  writeGrid(os, grid);
  writeScale(os, grid.hue, "0", "100 %", "the depth is the root of the share");
  {
    Table table(os, "Changes of the layers",
                {"layer", "matrix", "rank", "of the matrix’s own norm", "directions of half of it",
                 "independence", "predicted replay error"});
    for (const JointSite &site : patch.sites)
      table.row({std::to_string(site.layer), escaped(site.matrix),
                 std::to_string(site.spectrum.size()), percent(site.change),
                 std::to_string(directionsOfHalf(site)), number(site.independence),
                 number(site.replayError)});
  }
  os << "</figure></section>\n";
}

void writeNeeds(llvm::raw_ostream &os, const JointVerification &of, size_t inFront,
                const TokenName &name) {
  const JointSite &site = largestChange(of.patch);
  const size_t rows = std::min(site.spectrum.size(), mostDirections),
               count = std::min(of.steps.size(), mostTokens), from = of.steps.size() - count;
  if (rows == 0)
    return;
  os << "<section aria-labelledby=\"needs\"><h2 id=\"needs\">Which tokens need which</h2>\n<figure>"
        "<figcaption>In layer "
     << site.layer
     << ", which changes most: of what the change writes for each token, the part in each "
        "direction. Tokens with the same dark rows get the same from the context; for a token with "
        "an empty column nothing is missing, for instance since the layer’s window does not reach "
        "back to the context.</figcaption>\n";
  Grid grid;
  grid.what = "shares of directions, by token";
  grid.hue = "of-matrix";
  grid.cell = std::max(14.0, std::min(28.0, 900.0 / count));
  for (size_t i = 0; i < rows; ++i)
    grid.rows.push_back("direction " + std::to_string(i + 1));
  for (size_t token = from; token < of.steps.size(); ++token)
    grid.columns.push_back(label(name, of.steps[token].token, 9));
  for (size_t i = 0; i < rows; ++i)
    for (size_t token = from; token < of.steps.size(); ++token) {
      const double share = site.shares[inFront + token][i];
      grid.cells.push_back({std::sqrt(share), label(name, of.steps[token].token, 30) +
                                                  ", direction " + std::to_string(i + 1) + ": " +
                                                  percent(share) + " of what is written for it"});
    }
  writeGrid(os, grid);
  writeScale(os, grid.hue, "0", "100 %", "the depth is the root of the share");
  {
    Table table(os, "Directions of each token",
                {"token", "largest direction", "its share", "next of the model with the context",
                 "without"});
    for (size_t token = from; token < of.steps.size(); ++token) {
      const std::vector<double> &shares = site.shares[inFront + token];
      const auto most = std::max_element(shares.begin(), shares.end());
      const VerifyStep &step = of.steps[token];
      table.row({label(name, step.token, 30), std::to_string(most - shares.begin() + 1),
                 percent(*most), label(name, step.next, 30), label(name, step.control.token, 30)});
    }
  }
  os << "</figure></section>\n";
}

std::string leadOf(const JointVerification &of) {
  const JointSite &largest = largestChange(of.patch);
  return "<p class=\"lead\">One change of each layer is exact for " +
         counted(of.reread.tokens, "token") +
         ": without the context, its weights give every likeliest token of the model with it at " +
         std::to_string(of.reread.agree) + " of them, where the unpatched weights do at " +
         std::to_string(of.reread.agreeControl) + ". Layer " + std::to_string(largest.layer) +
         " changes most, by " + percent(largest.change) + " of its matrix; half of that is in " +
         counted(directionsOfHalf(largest), "direction") + " of " +
         std::to_string(largest.spectrum.size()) + ".</p>";
}

} // namespace

void ctxc::writeJointPage(llvm::raw_ostream &os, const JointVerification &found,
                          const VerifySettings &settings, const TokenName &name) {
  std::string figures;
  llvm::raw_string_ostream to(figures);
  writeSpectra(to, found.patch);
  writeNeeds(to, found, settings.request.kept.size(), name);
  const std::string title = "What a context did to " + counted(found.reread.tokens, "token");
  writePage(os, {"ctxc inspect", title, title, leadOf(found), figures,
                 "<p>Model <code>" + escaped(settings.model) + "</code>, weights " +
                     escaped(settings.dtype) + ", hash <code>" +
                     escaped(settings.modelHash.substr(0, 16)) +
                     "</code>; ctxc " CTXC_VERSION ".</p>"});
}
