#include "TextVerdict.h"
#include "ctxc/Report/CheckReport.h"
#include "ctxc/Session/Model.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Unfinished.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using namespace ctxc::lsp;
using llvm::StringRef;

/// The model that a text describes, which a file has meanwhile.
static std::unique_ptr<Model> modelOf(StringRef text, const mlir::DialectRegistry &plugins) {
  auto nothing = [](llvm::Error error) {
    llvm::consumeError(std::move(error)); // MLIR's server says what is wrong with a text
    return nullptr;
  };
  auto folder = Unfinished::temporaryDirectory();
  if (!folder)
    return nothing(folder.takeError());
  std::string path = (folder->path() + "/text.mlir").str();
  if (llvm::Error error = writeFileAtomically(path, [&](llvm::raw_pwrite_stream &file) {
        file << text;
        return llvm::Error::success();
      }))
    return nothing(std::move(error));
  LoadOptions options;
  options.needWeights = false;
  options.diagnostics = [](const ModelDiagnostic &) {};
  options.dialects = &plugins;
  auto model = Model::load(path, std::move(options));
  if (!model)
    return nothing(model.takeError());
  return std::move(*model);
}

static TextFinding toText(const Finding &finding, Severity severity, mlir::Operation *root) {
  auto place = [&](mlir::Operation *op) { return placeOf(op ? op : root); };
  TextFinding found;
  found.place = place(finding.op);
  found.severity = severity;
  found.rule = finding.rule.str();
  found.message = finding.message;
  found.advice = finding.advice;
  for (const Remark &note : finding.notes)
    found.notes.push_back({place(note.op), note.message});
  return found;
}

/// What is known of a text, before any way out is tried.
static std::optional<TextVerdict>
judge(StringRef text, const mlir::DialectRegistry &plugins,
      llvm::function_ref<void(TextFinding &, const Finding &)> addFixes) {
  std::unique_ptr<Model> model = modelOf(text, plugins);
  if (!model)
    return std::nullopt;
  auto groups = model->check();
  auto whole = groups ? model->judge(*groups) : groups.takeError();
  auto severities = Severities::parse({});
  if (!whole || !severities || groups->empty()) {
    llvm::consumeError(whole.takeError());
    llvm::consumeError(severities.takeError());
    return std::nullopt;
  }
  TextVerdict verdict;
  verdict.isPatchable = isPatchable(*groups) && (!*whole || (*whole)->isSuccess());
  for (const GroupFinding &found : collectFindings(*groups, *severities)) {
    xf::BlockOp block = (*groups)[found.group].block;
    verdict.findings.push_back(toText(found.finding, found.severity, block));
    if (found.severity == Severity::Error)
      addFixes(verdict.findings.back(), found.finding);
  }
  if (*whole)
    for (const Finding &cause : (*whole)->causes)
      verdict.findings.push_back(toText(cause, Severity::Error, (*whole)->model));
  for (const VerdictGroup &group : *groups) {
    std::string report;
    llvm::raw_string_ostream os(report);
    printCheckReport(os, group);
    verdict.reports.push_back({placeOf(group.block).line, std::move(report)});
  }
  return verdict;
}

namespace {
/// An op that a way out adds behind another: its parameter has a number for each entry.
struct Remedy {
  StringRef name, sign; ///< "scale", and the word between the two operands
};
} // namespace

static constexpr Remedy remedies[] = {{"scale", "by"}, {"bias", "+"}};

/// `line` is "  %n = xf.normalize …": the value gets another name, and `remedy` its own.
static std::optional<Fix> remedied(StringRef line, const Place &place, mlir::Operation *op,
                                   const Remedy &remedy) {
  auto type = op->getNumResults() == 1
                  ? llvm::dyn_cast<mlir::RankedTensorType>(op->getResult(0).getType())
                  : nullptr;
  StringRef before = line.take_front(place.column - 1), indent = before;
  indent = indent.take_while([](char c) { return c == ' ' || c == '\t'; });
  StringRef name = before.drop_front(indent.size()).rtrim();
  if (!type || type.getRank() != 1 || !name.consume_front("%") || !name.consume_back("="))
    return std::nullopt;
  name = name.rtrim();
  std::string shape = llvm::formatv("{0}", type);
  Fix fix;
  fix.title = "add a trainable " + remedy.name.str() + " after this " +
              op->getName().getStringRef().str() + ": every layer then has an exact patch";
  fix.line = place.line - 1;
  fix.lines = llvm::formatv("{0}%{1}_bare = {2}\n"
                            "{0}%{1}_{3} = xf.param \"{1}_{3}.weight\" : {4}\n"
                            "{0}%{1} = xf.{3} %{1}_bare {5} %{1}_{3} : {4}, {4}\n",
                            indent, name, line.drop_front(place.column - 1).trim(), remedy.name,
                            shape, remedy.sign);
  return fix;
}

std::optional<TextVerdict> lsp::judgeText(StringRef text, const mlir::DialectRegistry &plugins) {
  auto tryRemedies = [&](TextFinding &found, const Finding &finding) {
    llvm::SmallVector<StringRef> lines;
    text.split(lines, '\n');
    const Place &place = found.place;
    if (!finding.op || !place.line || place.line > lines.size() || !place.column)
      return;
    for (const Remedy &remedy : remedies) {
      StringRef line = lines[place.line - 1];
      auto fix = remedied(line, place, finding.op, remedy);
      if (!fix)
        continue;
      size_t at = line.data() - text.data();
      std::string changed = (text.take_front(at) + fix->lines +
                             text.substr(std::min(at + line.size() + 1, text.size())))
                                .str();
      auto verdict = judge(changed, plugins, [](TextFinding &, const Finding &) {});
      if (verdict && verdict->isPatchable)
        found.fixes.push_back(std::move(*fix));
    }
  };
  return judge(text, plugins, tryRemedies);
}
