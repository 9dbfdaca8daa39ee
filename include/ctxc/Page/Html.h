//===- Html.h - the HTML and SVG parts of pages ----------------------------===//
#ifndef CTXC_PAGE_HTML_H
#define CTXC_PAGE_HTML_H

#include "ctxc/Report/InspectReport.h"

namespace ctxc::page {

/// `text` as character data and as an attribute's value: `& < > " '` become entities. Invisible
/// characters (controls, and those that change the direction of text) and bytes that are not UTF-8
/// become \xNN.
std::string escaped(llvm::StringRef text);

/// A token's spelling, escaped, of at most `columns` columns.
std::string label(const TokenName &name, int64_t token, unsigned columns = 16);

/// A number: "12.3", "0.0042".
std::string number(double value);
/// A fraction: "12.3 %".
std::string percent(double fraction);
/// A length in a picture, or a fraction, with as many digits as are visible.
std::string coordinate(double value);
std::string cosineText(std::optional<double> cosine);

/// The table below a picture, collapsed.
class Table {
public:
  Table(llvm::raw_ostream &os, llvm::StringRef caption, llvm::ArrayRef<llvm::StringRef> columns);
  ~Table();
  /// The first cell is the row's head. Cells are HTML.
  void row(llvm::ArrayRef<std::string> cells);

private:
  llvm::raw_ostream &os;
};

/// A list of labelled bars for tokens, with `values` relative to the `largest`.
struct Bar {
  std::string label; ///< HTML
  double length = 0; ///< in [0, 1]
  std::string value, title;
};
void writeBars(llvm::raw_ostream &os, llvm::ArrayRef<Bar> bars, llvm::StringRef hue,
               llvm::StringRef what);

/// Rows and columns of coloured cells, as SVG.
struct Grid {
  struct Cell {
    double value = 0; ///< depth of colour in [−1, 1]
    std::string title;
  };
  std::string what, hue; ///< the text for screen readers; a class of the style sheet
  std::vector<std::string> rows, columns; ///< labels, escaped
  std::vector<Cell> cells;                ///< row-major
  double cell = 24, height = 18;
  std::optional<size_t> markedColumn;
};
void writeGrid(llvm::raw_ostream &os, const Grid &grid);

/// How far a picture with labels may shrink before it scrolls: its 12-pixel letters to 9.6.
inline double leastWidth(double width) { return 0.8 * width; }

/// A legend of colours, from `least` to `most`.
void writeScale(llvm::raw_ostream &os, llvm::StringRef hue, llvm::StringRef least,
                llvm::StringRef most, llvm::StringRef note = "");

} // namespace ctxc::page

#endif // CTXC_PAGE_HTML_H
