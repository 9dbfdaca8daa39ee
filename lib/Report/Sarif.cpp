// SARIF 2.1.0 (OASIS), as far as a check needs it.
#include "ctxc/Report/Sarif.h"
#include "ctxc/Report/Place.h"
#include "ctxc/Report/Rules.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace ctxc;
namespace json = llvm::json;

std::string ctxc::fileUri(StringRef path) {
  std::string uri = llvm::sys::path::is_absolute(path) ? "file://" : "";
  for (char c : path) {
    if (llvm::isAlnum(c) || StringRef("-._~/").contains(c))
      uri += c;
    else
      uri += "%" + llvm::toHex(StringRef(&c, 1));
  }
  return uri;
}

static json::Object message(const Twine &text) { return json::Object{{"text", text.str()}}; }

static StringRef level(Severity severity) {
  switch (severity) {
  case Severity::Ignored:
    return "none";
  case Severity::Remark:
    return "note";
  case Severity::Warning:
    return "warning";
  case Severity::Error:
    return "error";
  }
  llvm_unreachable("a severity of no known kind");
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static Severity usualSeverity(const Rule &rule) {
  switch (rule.kind) {
  case RuleKind::Rejection:
  case RuleKind::Undecided:
    return Severity::Error;
  case RuleKind::Warning:
    return cantFail(Severities::parse({})).of(rule.id);
  case RuleKind::Theorem:
  case RuleKind::Lemma:
  case RuleKind::Extension:
    return Severity::Ignored; // verdicts rest on these rules; no finding names them
  }
  llvm_unreachable("a rule of no known kind");
}

static json::Object ruleJson(const Rule &rule) {
  std::string text = (rule.statement + "\n\n" + rule.help).str();
  std::string markdown = ("```text\n" + rule.statement + "\n```\n\n" + rule.help).str();
  return json::Object{{"id", rule.id},
                      {"shortDescription", message(rule.title)},
                      {"fullDescription", message(rule.statement)},
                      {"help", json::Object{{"text", text}, {"markdown", markdown}}},
                      {"defaultConfiguration", json::Object{{"level", level(usualSeverity(rule))}}},
                      {"properties", json::Object{{"kind", stringify(rule.kind)}}}};
}

static int64_t indexOf(StringRef id) {
  const Rule *rule = findRule(id);
  return rule ? rule - allRules().begin() : -1;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

static json::Object physicalLocation(const Place &place) {
  json::Object physical{{"artifactLocation", json::Object{{"uri", fileUri(place.file)}}}};
  if (place.line) {
    json::Object region{{"startLine", place.line}, {"startColumn", std::max(1u, place.column)}};
    if (place.width)
      region["endColumn"] = place.column + place.width;
    physical["region"] = std::move(region);
  }
  return physical;
}

/// The module of a checkpoint, or else the block or model `root`.
static json::Object logicalLocation(const Place &place, Operation *root) {
  StringRef symbol = SymbolTable::getSymbolName(root).getValue();
  if (place.module.empty())
    return json::Object{{"name", symbol}, {"fullyQualifiedName", symbol}, {"kind", "function"}};
  StringRef name = StringRef(place.module).rsplit('.').second;
  return json::Object{{"name", name.empty() ? place.module : name.str()},
                      {"fullyQualifiedName", place.module},
                      {"kind", "module"}};
}

static json::Object location(Operation *op, Operation *root) {
  Place place = placeOf(op ? op : root);
  json::Object object{{"logicalLocations", json::Array{logicalLocation(place, root)}}};
  if (!place.file.empty())
    object["physicalLocation"] = physicalLocation(place);
  return object;
}

/// The places of the finding's notes, and of `layers`, whose numbers are `numbers`.
static json::Array relatedLocations(Operation *root, const Finding &finding,
                                    ArrayRef<xf::LayerOp> layers, ArrayRef<unsigned> numbers) {
  json::Array related;
  auto add = [&](Operation *op, const Twine &text) {
    json::Object object = location(op, root);
    object["id"] = int64_t(related.size());
    object["message"] = message(text);
    related.push_back(std::move(object));
  };
  for (const Remark &note : finding.notes)
    add(note.op, note.message);
  for (auto [layer, number] : llvm::zip(layers, numbers))
    add(layer, "layer " + Twine(number));
  return related;
}

static json::Object resultJson(Operation *root, const Finding &finding, Severity severity,
                               json::Object properties, json::Array related) {
  if (!finding.advice.empty())
    properties["wayOut"] = finding.advice;
  json::Object result{
      {"ruleId", finding.rule},
      {"ruleIndex", indexOf(finding.rule)},
      {"level", level(severity)},
      {"message",
       message(finding.message + (finding.advice.empty() ? "" : "; way out: " + finding.advice))},
      {"locations", json::Array{location(finding.op, root)}},
      {"properties", std::move(properties)}};
  if (!related.empty())
    result["relatedLocations"] = std::move(related);
  return result;
}

static json::Object resultJson(const VerdictGroup &group, const GroupFinding &found) {
  xf::BlockOp block = group.block;
  const Finding &finding = found.finding;
  json::Object properties{{"verdict", stringify(group.verdict->kind)},
                          {"block", block.getSymName()}};
  if (!group.ops.empty())
    properties["layers"] = formatRanges(group.layers);
  if (found.severity == Severity::Error && group.verdict->bound)
    properties["bound"] = *group.verdict->bound;
  return resultJson(block, finding, found.severity, std::move(properties),
                    relatedLocations(block, finding, group.ops, group.layers));
}

static json::Object resultJson(const ModelVerdict &verdict, const Finding &finding) {
  xf::ModelOp model = verdict.model;
  json::Object properties{{"verdict", stringify(verdict.kind)}, {"model", model.getSymName()}};
  return resultJson(model, finding, Severity::Error, std::move(properties),
                    relatedLocations(model, finding, {}, {}));
}

json::Value ctxc::sarifLog(ArrayRef<VerdictGroup> groups, ArrayRef<GroupFinding> findings,
                           int exitCode, const CheckReportOptions &options) {
  json::Array rules, results;
  for (const Rule &rule : allRules())
    rules.push_back(ruleJson(rule));
  for (const GroupFinding &found : findings)
    results.push_back(resultJson(groups[found.group], found));
  for (const Finding &cause : options.model ? options.model->causes : std::vector<Finding>())
    results.push_back(resultJson(*options.model, cause));
  json::Object driver{{"name", "ctxc"}, {"version", CTXC_VERSION}, {"rules", std::move(rules)}};
  json::Object invocation{{"executionSuccessful", true}, {"exitCode", exitCode}};
  if (!options.notCompared.empty())
    invocation["toolExecutionNotifications"] = json::Array{
        json::Object{{"level", level(Severity::Warning)},
                     {"message", message("not compared with its source: " + options.notCompared)}}};
  json::Object run{{"tool", json::Object{{"driver", std::move(driver)}}},
                   {"invocations", json::Array{std::move(invocation)}},
                   {"columnKind", "unicodeCodePoints"},
                   {"results", std::move(results)}};
  return json::Object{
      {"$schema",
       "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", json::Array{std::move(run)}}};
}
