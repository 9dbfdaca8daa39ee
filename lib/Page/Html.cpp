#include "ctxc/Page/Html.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Unicode.h"
#include <cmath>

using namespace ctxc;
using llvm::StringRef;

std::string page::escaped(StringRef text) {
  std::string result;
  for (char c : fitColumns(text, ~0u, /*pad=*/false))
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    case '\'':
      result += "&#39;";
      break;
    default:
      result += c;
    }
  return result;
}

std::string page::label(const TokenName &name, int64_t token, unsigned columns) {
  return escaped(fitColumns(name(token), columns, /*pad=*/false));
}

static std::string printed(const char *format, double value) {
  return llvm::formatv("{0}", llvm::format(format, value)).str();
}

std::string page::number(double value) { return printed("%.3g", value); }
std::string page::percent(double fraction) { return printed("%.3g %%", 100 * fraction); }
std::string page::coordinate(double value) {
  return printed("%.4g", std::isfinite(value) ? value : 0);
}
std::string page::cosineText(std::optional<double> cosine) {
  return cosine ? printed("%.3f", *cosine) : "–";
}

page::Table::Table(llvm::raw_ostream &os, StringRef caption, llvm::ArrayRef<StringRef> columns)
    : os(os) {
  os << "<details><summary>The numbers</summary><div class=\"scroll\" tabindex=\"0\" "
        "role=\"region\" "
        "aria-label=\""
     << caption << "\"><table>\n<thead><tr>";
  for (StringRef column : columns)
    os << "<th scope=\"col\">" << column << "</th>";
  os << "</tr></thead>\n<tbody>\n";
}

page::Table::~Table() { os << "</tbody></table></div></details>\n"; }

void page::Table::row(llvm::ArrayRef<std::string> cells) {
  os << "<tr><th scope=\"row\">" << cells.front() << "</th>";
  for (const std::string &cell : cells.drop_front())
    os << "<td>" << cell << "</td>";
  os << "</tr>\n";
}

void page::writeBars(llvm::raw_ostream &os, llvm::ArrayRef<Bar> bars, StringRef hue,
                     StringRef what) {
  os << "<ol class=\"bars " << hue << "\" aria-label=\"" << what << "\">\n";
  for (const Bar &bar : bars)
    os << "<li style=\"--v:" << coordinate(bar.length) << "\"><bdi class=\"tok\" title=\""
       << bar.title << "\">" << bar.label << "</bdi><span class=\"n\">" << bar.value
       << "</span></li>\n";
  os << "</ol>\n";
}

/// How wide a label is drawn, roughly: 12 px system-ui.
static double widthOf(StringRef label) {
  std::string text; // each entity as one character
  for (; !label.empty(); label = label.drop_front()) {
    text += label.front() == '&' ? 'x' : label.front();
    if (label.front() == '&')
      label = label.drop_front(label.find(';'));
  }
  return 6.8 * std::max(1, llvm::sys::unicode::columnWidthUTF8(text)) + 4;
}

void page::writeGrid(llvm::raw_ostream &os, const Grid &grid) {
  double left = 0, below = 0;
  for (const std::string &row : grid.rows)
    left = std::max(left, widthOf(row));
  left += 8;
  bool upright =
      llvm::all_of(grid.columns, [&](StringRef c) { return widthOf(c) < grid.cell + 4; });
  for (const std::string &column : grid.columns)
    below = std::max(below, upright ? 12 : 0.82 * widthOf(column));
  double width = left + grid.cell * grid.columns.size() + (upright ? 2 : 6),
         height = grid.height * grid.rows.size(), all = height + below + 10;
  os << "<div class=\"scroll\"><svg class=\"" << grid.hue
     << "\" style=\"--least:" << coordinate(leastWidth(width)) << "px\" width=\""
     << coordinate(width) << "\" height=\"" << coordinate(all) << "\" viewBox=\"0 0 "
     << coordinate(width) << " " << coordinate(all) << "\" role=\"group\" aria-label=\""
     << grid.what << "\" data-columns=\"" << grid.columns.size() << "\">\n";
  os << "<rect class=\"ground\" x=\"" << coordinate(left) << "\" y=\"0\" width=\""
     << coordinate(grid.cell * grid.columns.size()) << "\" height=\"" << coordinate(height)
     << "\"/>\n<g aria-hidden=\"true\">\n";
  for (auto [i, row] : llvm::enumerate(grid.rows))
    os << "<text x=\"" << coordinate(left - 6) << "\" y=\""
       << coordinate(grid.height * (i + 0.5) + 4) << "\" text-anchor=\"end\">" << row
       << "</text>\n";
  for (auto [i, column] : llvm::enumerate(grid.columns)) {
    double x = left + grid.cell * (i + 0.5);
    StringRef mark = grid.markedColumn == i ? " class=\"mark\"" : "";
    if (upright)
      os << "<text" << mark << " text-anchor=\"middle\" x=\"" << coordinate(x) << "\" y=\""
         << coordinate(height + 14) << "\">" << column << "</text>\n";
    else
      os << "<text" << mark << " text-anchor=\"end\" transform=\"translate(" << coordinate(x + 4)
         << " " << coordinate(height + 10) << ") rotate(-55)\">" << column << "</text>\n";
  }
  os << "</g>\n";
  for (auto [i, cell] : llvm::enumerate(grid.cells)) {
    size_t row = i / grid.columns.size(), column = i % grid.columns.size();
    os << "<rect class=\"i" << (cell.value < 0 ? " minus" : "") << "\" x=\""
       << coordinate(left + grid.cell * column + 0.5) << "\" y=\""
       << coordinate(grid.height * row + 0.5) << "\" width=\"" << coordinate(grid.cell - 1)
       << "\" height=\"" << coordinate(grid.height - 1)
       << "\" style=\"--v:" << coordinate(std::min(1.0, std::fabs(cell.value))) << "\"><title>"
       << cell.title << "</title></rect>\n";
  }
  if (grid.markedColumn)
    os << "<rect class=\"column\" x=\"" << coordinate(left + grid.cell * *grid.markedColumn)
       << "\" y=\"0.75\" width=\"" << coordinate(grid.cell) << "\" height=\""
       << coordinate(height - 1.5) << "\"/>\n";
  os << "</svg></div>\n";
}

void page::writeScale(llvm::raw_ostream &os, StringRef hue, StringRef least, StringRef most,
                      StringRef note) {
  os << "<p class=\"scale\"><span>" << least << "</span><span class=\"ramp " << hue
     << "\"></span><span>" << most << "</span>";
  if (!note.empty())
    os << "<span>" << note << "</span>";
  os << "</p>\n";
}
