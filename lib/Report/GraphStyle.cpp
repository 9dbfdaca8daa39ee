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
     << "</td></tr>";
}

void graph::printLegend(llvm::raw_ostream &os) {
  os << "  legend [shape=plain, fillcolor=\"#ffffff\", label=<<table border=\"1\" "
        "color=\"#bbbbbb\" cellborder=\"0\" "
        "cellspacing=\"3\" cellpadding=\"3\"><tr><td colspan=\"2\"><b>Legend</b></td></tr>";
  for (const Style &style : styles)
    if (style.part != Part::Plain)
      row(os,
          "<td border=\"2\" color=\"" + style.border + "\" bgcolor=\"" + style.fill +
              "\" width=\"30\"></td>",
          style.meaning);
  row(os, "<td border=\"5\" color=\"" + chainEdge + "\" width=\"30\"></td>",
      "the goal: brought to what it is with the context");
  row(os, "<td><font color=\"" + contextColour + "\"><b>———</b></font></td>",
      "depends on the context");
  row(os, "<td><font color=\"" + plainEdge + "\">———</font></td>",
      "the same with and without the context");
  row(os, "<td><font color=\"" + contextColour + "\">- - -</font></td>",
      "dashed: which experts are selected");
  row(os, "<td border=\"1\" color=\"#c9bfa5\" bgcolor=\"" + contextualFill + "\"></td>",
      "the contextual part A(C, x)");
  row(os, "<td border=\"1\" color=\"" + mixtureBorder + "\" bgcolor=\"" + mixtureFill + "\"></td>",
      "a mixture: its router, its experts");
  os << "</table>>];\n";
}
