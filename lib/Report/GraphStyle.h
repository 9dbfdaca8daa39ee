// The colours of a drawn verdict, and what they mean.
#ifndef CTXC_LIB_REPORT_GRAPHSTYLE_H
#define CTXC_LIB_REPORT_GRAPHSTYLE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <set>
#include <string>

namespace ctxc::graph {

/// The role of an op in the verdict; the first that applies.
enum class Part { Cause, Input, Output, NormMatrix, Link, Noted, Plain };

struct Style {
  Part part;
  llvm::StringRef fill, border, meaning;
};

inline constexpr Style styles[] = {
    {Part::Cause, "#f4a3a3", "#b00020", "what the verdict against names"},
    {Part::Input, "#a9cdf5", "#1c5fa8", "F: patched; what follows is as with the context"},
    {Part::Output, "#a8dcae", "#1b7a34", "G: patched, and absorbs what is left"},
    {Part::NormMatrix, "#d3eed6", "#1b7a34", "patched with G, before its norm"},
    {Part::Link, "#ffffff", "#1b7a34", "the chain that is solved for G's output"},
    {Part::Noted, "#fbe3e3", "#b00020", "named in a note"},
    {Part::Plain, "#ffffff", "#777777", "an op"},
};

inline const Style &styleOf(Part part) {
  for (const Style &style : styles)
    if (style.part == part)
      return style;
  return styles[std::size(styles) - 1];
}

inline constexpr llvm::StringLiteral contextColour = "#d9760a"; ///< edges that carry the context
inline constexpr llvm::StringLiteral plainEdge = "#9a9a9a";
inline constexpr llvm::StringLiteral chainEdge = "#1b7a34";
inline constexpr llvm::StringLiteral contextualFill = "#f3efe6"; ///< the box of A(C, x)
inline constexpr llvm::StringLiteral contextualBorder = "#c9bfa5";
inline constexpr llvm::StringLiteral mixtureFill = "#eeeef6"; ///< the boxes of routers and experts
inline constexpr llvm::StringLiteral mixtureBorder = "#b5b5cc";

/// Text in an HTML-like label.
std::string escape(llvm::StringRef text);

/// What a drawing has, for its legend to explain that and nothing else.
struct Drawn {
  std::set<Part> parts;
  bool goal = false, contextEdge = false, plainEdge = false, selection = false;
  bool contextual = false, mixture = false;
};
void printLegend(llvm::raw_ostream &os, const Drawn &drawn);

/// A style sheet for an SVG of the colours above: others, where the reader's screen is dark.
std::string darkStyle();

} // namespace ctxc::graph

#endif // CTXC_LIB_REPORT_GRAPHSTYLE_H
