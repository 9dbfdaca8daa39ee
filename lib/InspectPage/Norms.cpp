// Update norms: layers by tokens, and parameters by layers.
#include "Figures.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using namespace ctxc::page;

bool Subject::has(bool matrices) const {
  return llvm::any_of(subject().parameters,
                      [&](const ParameterChange &change) { return change.isMatrix == matrices; });
}

/// As many tokens as a picture has room for, including the subject.
static llvm::ArrayRef<TokenInspection> shownTokens(const Subject &of) {
  constexpr size_t most = 64;
  llvm::ArrayRef<TokenInspection> tokens = of.inspection.patches;
  while (tokens.size() > most && tokens.back().position > of.subject().position)
    tokens = tokens.drop_back();
  return tokens.take_back(most);
}

static void writeHeatMap(llvm::raw_ostream &os, const Subject &of, bool matrices) {
  llvm::ArrayRef<TokenInspection> tokens = shownTokens(of);
  double PatchNorm::*relative = matrices ? &PatchNorm::matrixRelative : &PatchNorm::vectorRelative;
  double PatchNorm::*norm = matrices ? &PatchNorm::matrix : &PatchNorm::vector;
  const char *kind = matrices ? "matrices" : "vectors";
  double largest = 0;
  for (const TokenInspection &token : tokens)
    for (const PatchNorm &layer : token.norms.layers)
      largest = std::max(largest, layer.*relative);
  Grid grid;
  grid.what = std::string("update norms of ") + kind + ", layers by tokens";
  grid.hue = matrices ? "of-matrix" : "of-vector";
  grid.height = of.settings.run.layers > 12 ? 18 : 26;
  grid.cell = std::clamp(960.0 / tokens.size(), 15.0, 44.0);
  for (auto [i, token] : llvm::enumerate(tokens)) {
    grid.columns.push_back(label(of.name, token.token, 14));
    if (token.position == of.subject().position)
      grid.markedColumn = i;
  }
  for (int64_t layer = of.settings.run.layers; layer-- > 0;) {
    grid.rows.push_back(std::to_string(layer));
    for (const TokenInspection &token : tokens) {
      const PatchNorm &at = token.norms.layers[layer];
      grid.cells.push_back({largest > 0 ? at.*relative / largest : 0,
                            label(of.name, token.token, 30) + ", position " +
                                std::to_string(token.position) + ", layer " +
                                std::to_string(layer) + "\n" + kind + ": norm " + number(at.*norm) +
                                ", " + percent(at.*relative) + " of the layer’s own"});
    }
  }
  os << "<div class=\"" << (matrices ? "panel-1" : "panel-2") << "\">\n";
  writeGrid(os, grid);
  writeScale(os, grid.hue, "0 %", percent(largest),
             std::string("of the layer’s patched ") + kind +
                 (tokens.size() < of.inspection.patches.size() ? "; the last tokens alone" : ""));
  os << "</div>\n";
}

void page::writeLayersByTokens(llvm::raw_ostream &os, const Subject &of) {
  bool both = of.has(true) && of.has(false);
  os << "<section aria-labelledby=\"norms\"><h2 id=\"norms\">How much, and where</h2>\n<figure "
        "class=\"either\"><figcaption>The patch of every token, each after those before it: its "
        "norm "
        "in each layer, relative to the parameters that it changes. Layers upwards, as the model "
        "computes; the framed column is the token of this page.</figcaption>\n";
  if (both)
    os << "<fieldset class=\"choice\"><legend>Show</legend><label><input type=\"radio\" "
          "name=\"norms\" class=\"first\" checked> matrices</label><label><input type=\"radio\" "
          "name=\"norms\" class=\"second\"> vectors</label></fieldset>\n";
  for (bool matrices : {true, false})
    if (of.has(matrices))
      writeHeatMap(os, of, matrices);
  {
    Table table(os, "Norms by layer", {"layer", "matrices", "of own", "vectors", "of own"});
    for (auto [layer, norm] : llvm::enumerate(of.subject().norms.layers))
      table.row({std::to_string(layer), number(norm.matrix), percent(norm.matrixRelative),
                 number(norm.vector), percent(norm.vectorRelative)});
  }
  os << "</figure></section>\n";
}

void page::writeParameters(llvm::raw_ostream &os, const Subject &of) {
  const SubjectInspection &subject = of.subject();
  int64_t layers = of.settings.run.layers;
  // Experts and other slices of one parameter share one table row, which shows the largest.
  llvm::MapVector<llvm::StringRef, std::vector<const ParameterChange *>> rows;
  double largest[2] = {0, 0};
  for (const ParameterChange &change : subject.parameters) {
    auto &row = rows[change.name];
    row.resize(layers);
    if (change.layer >= 0)
      row[change.layer] = &change;
    largest[change.isMatrix] = std::max(largest[change.isMatrix], change.relative);
  }
  if (rows.size() > 24 || rows.empty())
    return; // too many, as in mixtures, where tokens have different experts
  Grid grid;
  grid.what = "update norms, parameters by layers";
  grid.hue = "of-matrix";
  grid.height = 24;
  grid.cell = 24;
  for (int64_t layer = 0; layer < layers; ++layer)
    grid.columns.push_back(std::to_string(layer));
  for (auto &[parameter, row] : rows) {
    llvm::StringRef brief = parameter;
    brief.consume_back(".weight");
    grid.rows.push_back(
        escaped(brief.rsplit('.').second.empty() ? brief : brief.rsplit('.').second));
    for (const ParameterChange *change : row) {
      if (!change) {
        grid.cells.push_back({0, escaped(parameter) + ": not patched in this layer"});
        continue;
      }
      double most = largest[change->isMatrix];
      grid.cells.push_back({most > 0 ? change->relative / most : 0,
                            escaped(change->parameter) + "\n" +
                                (change->isOutput ? "output" : "input") + " side, norm " +
                                number(change->norm) + ", " + percent(change->relative) +
                                " of its own"});
    }
  }
  os << "<section aria-labelledby=\"parameters\"><h2 id=\"parameters\">Which parameters take "
        "it</h2>\n"
        "<figure><figcaption>The token’s patch by parameter, layers to the right. "
        "Depth of colour: the share of the parameter’s own norm, up to "
     << (of.has(true) ? percent(largest[1]) + " for matrices" : "")
     << (of.has(true) && of.has(false) ? " and " : "")
     << (of.has(false) ? percent(largest[0]) + " for vectors" : "") << ".</figcaption>\n";
  writeGrid(os, grid);
  {
    Table table(os, "Norms by parameter", {"parameter", "side", "norm", "of own"});
    for (const ParameterChange &change : subject.parameters)
      table.row({"<span class=\"tok\">" + escaped(change.parameter) + "</span>",
                 change.isOutput ? "output" : "input", number(change.norm),
                 percent(change.relative)});
  }
  os << "</figure></section>\n";
}
