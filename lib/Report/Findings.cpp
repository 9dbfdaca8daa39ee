#include "ctxc/Report/Findings.h"
#include "ctxc/Report/Rules.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using llvm::StringRef;

/// The rules of warnings, as a message lists them.
static std::string listWarnings() {
  std::string list;
  for (const Rule &rule : allRules())
    if (rule.kind == RuleKind::Warning)
      list += (list.empty() ? "" : ", ") + rule.id.str();
  return list;
}

static llvm::Error checkWarning(StringRef option, StringRef id) {
  const Rule *rule = findRule(id);
  if (rule && rule->kind == RuleKind::Warning)
    return llvm::Error::success();
  if (rule)
    return makeError("-W" + option + ": '" + id + "' is no warning; expected one of " +
                     listWarnings());
  return makeError("-W" + option + ": there is no rule '" + id + "'; expected one of " +
                   listWarnings());
}

llvm::Expected<Severities> Severities::parse(llvm::ArrayRef<StringRef> options) {
  Severities result;
  for (StringRef option : options) {
    StringRef id = option;
    if (id == "error") {
      result.warningsAreErrors = true;
      continue;
    }
    if (id == "no-error") {
      result.warningsAreErrors = false;
      continue;
    }
    bool keeps = id.consume_front("no-error=");
    bool error = !keeps && id.consume_front("error=");
    bool no = !keeps && !error && id.consume_front("no-");
    if (llvm::Error bad = checkWarning(option, id))
      return std::move(bad);
    if (keeps) {
      result.keepsWarning[id] = true;
      if (result.chosen.lookup(id) == Severity::Error)
        result.chosen[id] = Severity::Warning;
      continue;
    }
    result.keepsWarning.erase(id);
    result.chosen[id] = error ? Severity::Error : no ? Severity::Ignored : Severity::Warning;
  }
  return result;
}

Severity Severities::of(StringRef id) const {
  const Rule *rule = findRule(id);
  if (!rule || rule->kind != RuleKind::Warning)
    return Severity::Error;
  auto found = chosen.find(id);
  Severity severity = found != chosen.end()     ? found->second
                      : id == rules::OutputOnly ? Severity::Remark
                                                : Severity::Warning;
  bool raised = warningsAreErrors && severity == Severity::Warning && !keepsWarning.lookup(id);
  return raised ? Severity::Error : severity;
}

std::vector<GroupFinding> ctxc::collectFindings(llvm::ArrayRef<VerdictGroup> groups,
                                                const Severities &severities) {
  std::vector<GroupFinding> all;
  for (auto [i, group] : llvm::enumerate(groups)) {
    for (const Finding &cause : group.verdict->causes)
      all.push_back({unsigned(i), cause, Severity::Error});
    for (Finding &warning : findWarnings(group))
      if (Severity severity = severities.of(warning.rule); severity != Severity::Ignored)
        all.push_back({unsigned(i), std::move(warning), severity});
  }
  return all;
}

void ctxc::emitFindings(llvm::ArrayRef<VerdictGroup> groups,
                        llvm::ArrayRef<GroupFinding> findings) {
  for (const GroupFinding &found : findings)
    emitFinding(groups[found.group], found.finding,
                found.severity == Severity::Error     ? mlir::DiagnosticSeverity::Error
                : found.severity == Severity::Warning ? mlir::DiagnosticSeverity::Warning
                                                      : mlir::DiagnosticSeverity::Remark);
}
