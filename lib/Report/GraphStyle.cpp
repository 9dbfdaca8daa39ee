#include "GraphStyle.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;

std::string graph::escape(llvm::StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream os(escaped);
  llvm::printHTMLEscaped(text, os);
  return escaped;
}

/// A row of the legend: a cell in the explained style, and words.
static void row(llvm::raw_ostream &os, const llvm::Twine &cell, llvm::StringRef meaning) {
  os << "<tr>" << cell << "<td align=\"left\" border=\"0\">" << graph::escape(meaning)
     << "</td><td width=\"40\"></td></tr>";
}

void graph::printLegend(llvm::raw_ostream &os, const Drawn &drawn) {
  // The last column leaves room for fonts that are wider than graphviz takes them to be.
  os << "  legend [shape=plain, fillcolor=\"#ffffff\", label=<<table border=\"1\" "
        "color=\"#bbbbbb\" cellborder=\"0\" "
        "cellspacing=\"3\" cellpadding=\"3\"><tr><td colspan=\"3\"><b>Legend</b></td></tr>";
  for (const Style &style : styles)
    if (style.part != Part::Plain && drawn.parts.count(style.part))
      row(os,
          "<td border=\"2\" color=\"" + style.border + "\" bgcolor=\"" + style.fill +
              "\" width=\"30\"></td>",
          style.meaning);
  if (drawn.goal)
    row(os, "<td border=\"5\" color=\"" + chainEdge + "\" width=\"30\"></td>",
        "the goal: brought to what it is with the context");
  if (drawn.contextEdge)
    row(os, "<td><font color=\"" + contextColour + "\"><b>———</b></font></td>",
        "depends on the context");
  if (drawn.plainEdge)
    row(os, "<td><font color=\"" + plainEdge + "\">———</font></td>",
        "the same with and without the context");
  if (drawn.selection)
    row(os, "<td><font color=\"" + contextColour + "\">- - -</font></td>",
        "dashed: which experts are selected");
  if (drawn.contextual)
    row(os,
        "<td border=\"1\" color=\"" + contextualBorder + "\" bgcolor=\"" + contextualFill +
            "\"></td>",
        "the contextual part A(C, x)");
  if (drawn.mixture)
    row(os,
        "<td border=\"1\" color=\"" + mixtureBorder + "\" bgcolor=\"" + mixtureFill + "\"></td>",
        "a mixture: its router, its experts");
  os << "</table>>];\n";
}

std::string graph::darkStyle() {
  // graphviz writes some colours by their names.
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> colours[] = {
      {"white", "#1b1b1f"},   {"black", "#e8e6e1"},   {"#ffffff", "#1b1b1f"},
      {"#f4a3a3", "#7a2430"}, {"#b00020", "#ff7b8a"}, {"#a9cdf5", "#1e4674"},
      {"#1c5fa8", "#7fb4f0"}, {"#a8dcae", "#1f5c2d"}, {"#1b7a34", "#6fce86"},
      {"#d3eed6", "#173d20"}, {"#fbe3e3", "#44232a"}, {"#777777", "#9a9aa0"},
      {"#eeeeee", "#33333a"}, {"#9a9a9a", "#86868c"}, {"#d9760a", "#f0a04b"},
      {"#f3efe6", "#2b2823"}, {"#c9bfa5", "#6b6350"}, {"#eeeef6", "#262633"},
      {"#b5b5cc", "#5b5b78"}, {"#bbbbbb", "#55555a"}, {"#444444", "#b8b4ac"}};
  std::string style = "<style>@media (prefers-color-scheme: dark) {\ntext { fill: #e8e6e1 }\n";
  for (auto [light, dark] : colours)
    style += ("[fill=\"" + light + "\"] { fill: " + dark + " } [stroke=\"" + light +
              "\"] { stroke: " + dark + " }\n")
                 .str();
  return style + "}</style>\n";
}
