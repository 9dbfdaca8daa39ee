// Man pages, in the language of roff's macros man(7).
#include "tools/CommandLine/Manual.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

namespace {
/// Writes text so that roff changes none of it. What stands between ` and ` becomes bold.
class Roff {
public:
  explicit Roff(llvm::raw_ostream &os) : os(os) {}

  void text(StringRef text);
  /// Paragraphs; lines of columns or of a list stay as they are.
  void paragraphs(StringRef text);
  /// Lines as they are.
  void lines(StringRef text);

private:
  /// A line of its own, which is no request where it starts as one.
  void line(StringRef text);

  llvm::raw_ostream &os;
  bool bold = false;
};
} // namespace

void Roff::text(StringRef text) {
  for (char c : text) {
    switch (c) {
    case '`':
      bold = !bold;
      os << (bold ? "\\fB" : "\\fR");
      break;
    case '\n':
      os << ' ';
      break;
    case '\\':
      os << "\\(rs";
      break;
    case '-':
      os << "\\-";
      break;
    case '\'':
      os << "\\(aq";
      break;
    case '^':
      os << "\\(ha";
      break;
    case '~':
      os << "\\(ti";
      break;
    default:
      os << c;
    }
  }
}

void Roff::line(StringRef line) {
  if (line.starts_with("."))
    os << "\\&";
  text(line);
  os << "\n";
}

void Roff::lines(StringRef text) {
  llvm::SmallVector<StringRef> all;
  text.split(all, '\n');
  for (StringRef each : all)
    line(each);
}

void Roff::paragraphs(StringRef text) {
  while (!text.empty()) {
    auto [paragraph, rest] = text.split("\n\n");
    llvm::SmallVector<StringRef> all;
    paragraph.split(all, '\n', -1, false);
    bool laidOut = llvm::any_of(all, [](StringRef each) {
      return each.starts_with(" ") || each.starts_with("- ") || each.trim().contains("  ");
    });
    if (laidOut)
      os << ".nf\n";
    for (StringRef each : all)
      line(each);
    if (laidOut)
      os << ".fi\n";
    text = rest;
    if (!text.empty())
      os << ".PP\n";
  }
}

static void printHead(const Overview &overview, StringRef name, StringRef summary,
                      llvm::raw_ostream &os) {
  os << ".\\\" Written by ctxc man.\n.TH " << name.upper() << " 1 \"\" \"ctxc " << overview.version
     << "\" \"ctxc manual\"\n.SH NAME\n";
  Roff roff(os);
  roff.text(name);
  os << " \\- ";
  roff.text(summary);
  os << "\n.SH SYNOPSIS\n";
}

static void printExamples(StringRef examples, llvm::raw_ostream &os) {
  os << ".SH EXAMPLES\n.nf\n";
  Roff(os).lines(examples.rtrim('\n'));
  os << ".fi\n";
}

void driver::printManPage(const Overview &overview, llvm::ArrayRef<Command> commands,
                          llvm::raw_ostream &os) {
  Roff roff(os);
  printHead(overview, "ctxc", overview.summary, os);
  os << "\\fBctxc\\fR COMMAND ...\n.SH DESCRIPTION\n";
  roff.paragraphs(overview.description);
  os << ".SH COMMANDS\n";
  for (const Command &command : commands) {
    os << ".TP\n\\fBctxc\\-";
    roff.text(command.name);
    os << "\\fR(1)\n";
    roff.paragraphs(command.summary);
  }
  os << ".SH EXIT STATUS\n";
  roff.paragraphs(overview.exitCodes);
  os << ".SH ENVIRONMENT\n";
  for (auto [name, meaning] : overview.environment) {
    os << ".TP\n.B " << name << "\n";
    roff.paragraphs(meaning);
  }
  printExamples(overview.examples, os);
}

void driver::printManPage(const Overview &overview, const Command &command, llvm::raw_ostream &os) {
  Roff roff(os);
  printHead(overview, ("ctxc-" + command.name).str(), command.summary, os);
  roff.text(synopsisOf(command));
  os << "\n.SH DESCRIPTION\n";
  roff.paragraphs(command.description);
  os << ".SH OPTIONS\n";
  for (const OptionSpec &option : optionsOf(command)) {
    os << ".TP\n.B \"";
    roff.text(labelOf(option));
    os << "\"\n";
    roff.paragraphs(option.help);
  }
  os << ".SH EXIT STATUS\n";
  roff.paragraphs(overview.exitCodes);
  printExamples(command.examples, os);
  os << ".SH SEE ALSO\n\\fBctxc\\fR(1)\n";
}
