// The context as a text, shaded by where the patch comes from.
#include "Figures.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using namespace ctxc::page;

/// A token's text; a line break is shown as a sign and also made.
static std::string inText(const Subject &of, int64_t position, bool first) {
  const int64_t token = of.inspection.tokens[position];
  std::string piece = of.name.piece(token), text = of.name.bytes(token), result;
  if (!of.settings.hasNames)
    return (first ? "" : " ") + escaped(piece);
  llvm::StringRef rest = text;
  while (!rest.empty()) {
    auto [line, after] = rest.split('\n');
    bool broken = line.size() < rest.size();
    result += escaped(line);
    if (broken)
      result += "↵<br>";
    rest = after;
  }
  bool special = piece.size() > 2 && piece.front() == '<' && piece.back() == '>' && text == piece;
  return special ? "<span class=\"special\">" + result + "</span>" : result;
}

static std::string textOf(const Subject &of, llvm::ArrayRef<int64_t> positions) {
  std::string text;
  for (int64_t position : positions)
    text += inText(of, position, position == 0);
  return text;
}

/// The hover text: the words, and what they change.
static std::string titleOf(const Subject &of, const LeftOut &part) {
  std::string words = readableText(of.inspection, of.settings, of.name, part.positions);
  std::string title = "“" + escaped(fitColumns(words, 60, false)) + "” (position " +
                      positionsText(part.positions) + ")\n";
  if (of.has(true))
    title += "without it the patch of matrices changes by " + percent(part.relative.matrix) + "\n";
  if (of.has(false))
    title += "the patch of vectors by " + percent(part.relative.vector) + "\n";
  if (of.inspection.hasHead)
    title += "the full run's prediction by a total variation of " + number(part.totalVariation) +
             ", to " + label(of.name, part.next);
  return title;
}

/// The text, shaded by the `value` of each part.
static void writeText(llvm::raw_ostream &os, const Subject &of, llvm::StringRef panel,
                      llvm::function_ref<double(const LeftOut &)> value) {
  const SubjectInspection &subject = of.subject();
  double largest = 0;
  for (const LeftOut &part : subject.leftOut)
    largest = std::max(largest, value(part));
  os << "<div class=\"" << panel << "\"><div class=\"prompt\" role=\"group\" aria-label=\"the "
     << "context, by how much each part of it changes\" data-columns=\"0\">";
  int64_t position = 0;
  auto writeKept = [&](int64_t end) {
    for (; position < end; ++position)
      os << "<span class=\"kept\">" << inText(of, position, position == 0) << "</span>";
  };
  for (const LeftOut &part : subject.leftOut) {
    writeKept(part.positions.front());
    bool turns = of.inspection.hasHead && part.next != subject.patchedMetrics.baselineToken;
    os << "<span class=\"i" << (turns ? " turns" : "")
       << "\" style=\"--v:" << coordinate(largest > 0 ? value(part) / largest : 0) << "\" title=\""
       << titleOf(of, part) << "\">" << textOf(of, part.positions) << "</span>";
    position = part.positions.back() + 1;
  }
  writeKept(subject.position);
  os << "<span class=\"subject\">" << inText(of, subject.position, false) << "</span>";
  std::string after;
  for (position = subject.position + 1; position < int64_t(of.inspection.tokens.size()); ++position)
    after += inText(of, position, false);
  if (!after.empty())
    os << "<span class=\"after\">" << after << "</span>";
  os << "</div>\n";
  writeScale(os, "of-shade", "0 %",
             panel == "panel-1" ? percent(largest) : "TVD " + number(largest));
  os << "</div>\n";
}

void page::writePrompt(llvm::raw_ostream &os, const Subject &of) {
  const SubjectInspection &subject = of.subject();
  bool matrices = of.has(true), head = of.inspection.hasHead;
  os << "<section aria-labelledby=\"prompt\"><h2 id=\"prompt\">Where it came from</h2>\n<figure "
        "class=\"either\"><figcaption>The darker a "
     << (of.settings.grain == Grain::Token ? "token" : "sentence")
     << ", the more the patch would have been another had it never been read: ‖P − P without it‖ / "
        "‖P‖ of the patch’s "
     << (matrices ? "matrices" : "vectors") << ", all other tokens staying at their positions."
     << (head ? " Wavy underlines: without it the model would have predicted another token." : "")
     << " The token whose patch this is has a frame.</figcaption>\n";
  if (head)
    os << "<fieldset class=\"choice\"><legend>Shade by the change of</legend><label><input "
          "type=\"radio\" name=\"shade\" class=\"first\" checked> the patch</label><label><input "
          "type=\"radio\" name=\"shade\" class=\"second\"> the prediction</label></fieldset>\n";
  writeText(os, of, "panel-1", [&](const LeftOut &part) {
    return matrices ? part.relative.matrix : part.relative.vector;
  });
  if (head)
    writeText(os, of, "panel-2", [](const LeftOut &part) { return part.totalVariation; });
  {
    Table table(os, "Parts of the context left out",
                {"left out", "position", "matrices", "vectors", "TVD", "prediction"});
    for (const LeftOut &part : subject.leftOut) {
      std::string words = part.positions.size() == 1
                              ? of.name(of.inspection.tokens[part.positions[0]])
                              : readableText(of.inspection, of.settings, of.name, part.positions);
      table.row({"<bdi class=\"tok\">" + escaped(fitColumns(words, 40, false)) + "</bdi>",
                 positionsText(part.positions), percent(part.relative.matrix),
                 percent(part.relative.vector), head ? number(part.totalVariation) : "–",
                 head ? "<bdi class=\"tok\">" + label(of.name, part.next) + "</bdi>" : "–"});
    }
  }
  os << "</figure></section>\n";
}
