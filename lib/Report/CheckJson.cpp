// The check report for programs.
#include "CheckRows.h"
#include "ctxc/Report/CheckReport.h"
#include "ctxc/Report/Place.h"
#include "ctxc/Report/Rules.h"

using namespace mlir;
using namespace ctxc;
namespace json = llvm::json;

static void addRule(json::Object &object, const Rule *rule) {
  if (rule)
    object["rule"] = rule->id;
}

static json::Array patches(ArrayRef<PatchRow> rows) {
  json::Array array;
  for (const PatchRow &row : rows) {
    json::Object object{{"parameter", row.parameter}, {"change", row.change}, {"lemma", row.lemma}};
    addRule(object, findRuleOfLemma(row.lemma));
    array.push_back(std::move(object));
  }
  return array;
}

static json::Object remarkJson(Operation *op, StringRef message) {
  json::Object object{{"message", message}};
  Place place = op ? placeOf(op) : Place();
  if (std::string where = text(place); !where.empty())
    object["location"] = where;
  if (!place.module.empty())
    object["module"] = place.module;
  if (op)
    object["op"] = op->getName().getStringRef();
  return object;
}

static json::Object findingJson(const Finding &finding) {
  json::Object object = remarkJson(finding.op, finding.message);
  json::Array notes;
  for (const Remark &note : finding.notes)
    notes.push_back(remarkJson(note.op, note.message));
  object["rule"] = finding.rule;
  object["notes"] = std::move(notes);
  object["advice"] = finding.advice;
  return object;
}

static json::Array findings(ArrayRef<Finding> list) {
  json::Array array;
  for (const Finding &finding : list)
    array.push_back(findingJson(finding));
  return array;
}

static StringRef stringify(Severity severity) {
  switch (severity) {
  case Severity::Ignored:
    return "ignored";
  case Severity::Remark:
    return "remark";
  case Severity::Warning:
    return "warning";
  case Severity::Error:
    return "error";
  }
  llvm_unreachable("a severity of no known kind");
}

/// The findings on group `index` other than the causes of its verdict.
static json::Array warningsJson(ArrayRef<GroupFinding> findings, size_t index) {
  json::Array array;
  for (const GroupFinding &found : findings) {
    const Rule *rule = findRule(found.finding.rule);
    if (found.group != index || !rule || rule->kind != RuleKind::Warning)
      continue;
    json::Object object = findingJson(found.finding);
    object["severity"] = stringify(found.severity);
    array.push_back(std::move(object));
  }
  return array;
}

static json::Array plansJson(const VerdictGroup &group) {
  json::Array plans;
  for (const PlanRow &row : planRows(group)) {
    json::Object plan{{"parameters", json::Array(row.parameters)},
                      {"verdict", stringify(row.kind)},
                      {"chosen", row.chosen},
                      {"numbers", row.cost.numbers},
                      {"vectorDivisions", row.cost.vectorDivisions},
                      {"elementDivisions", row.cost.elementDivisions}};
    if (row.cost.norm)
      plan["norm"] = *row.cost.norm;
    if (row.cost.drift)
      plan["drift"] = *row.cost.drift;
    if (!row.cost.fragility.empty())
      plan["fragility"] = row.cost.fragility;
    plans.push_back(std::move(plan));
  }
  return plans;
}

static json::Object groupJson(const VerdictGroup &group, const CheckReportOptions &options) {
  const Verdict &verdict = *group.verdict;
  xf::BlockOp block = group.block;
  CheckRows rows = checkRows(verdict);
  json::Array obligations;
  for (const ObligationRow &row : rows.obligations) {
    json::Object obligation{
        {"parameter", row.parameter}, {"condition", row.condition}, {"holds", row.holds}};
    addRule(obligation, findRuleOfLemma(row.lemma));
    obligations.push_back(std::move(obligation));
  }
  json::Object object{{"block", block.getSymName()},
                      {"verdict", stringify(verdict.kind)},
                      {"input", patches(rows.input)},
                      {"output", patches(rows.output)},
                      {"obligations", std::move(obligations)},
                      {"causes", findings(verdict.causes)},
                      {"remark", verdict.remark}};
  addRule(object, findTheorem(verdict));
  object["bound"] = verdict.bound ? json::Value(*verdict.bound) : json::Value(nullptr);
  if (!group.ops.empty())
    object["layers"] = json::Array(group.layers);
  if (options.plans)
    object["plans"] = plansJson(group);
  json::Array joint;
  for (const JointMatrix &matrix : jointMatricesOf(group))
    joint.push_back(json::Object{{"parameter", matrix.parameter}, {"tokens", matrix.tokens}});
  object["joint"] = std::move(joint);
  return object;
}

static json::Value modelJson(const ModelVerdict *verdict) {
  if (!verdict)
    return nullptr;
  xf::ModelOp model = verdict->model;
  return json::Object{{"name", model.getSymName()},
                      {"verdict", stringify(verdict->kind)},
                      {"causes", findings(verdict->causes)}};
}

json::Value ctxc::checkReportJson(ArrayRef<VerdictGroup> groups, ArrayRef<GroupFinding> found,
                                  const CheckReportOptions &options) {
  json::Array array;
  json::Object summary;
  for (VerdictKind kind : {VerdictKind::Controllable, VerdictKind::OutputOnly,
                           VerdictKind::Rejected, VerdictKind::Undecided}) {
    int64_t count = 0;
    for (const VerdictGroup &group : groups)
      if (group.verdict->kind == kind)
        count += group.layers.size();
    summary[stringify(kind)] = count;
  }
  for (auto [i, group] : llvm::enumerate(groups)) {
    json::Object object = groupJson(group, options);
    object["warnings"] = warningsJson(found, i);
    array.push_back(std::move(object));
  }
  json::Object report{{"groups", std::move(array)},
                      {"summary", std::move(summary)},
                      {"model", modelJson(options.model)}};
  if (!options.notCompared.empty())
    report["notCompared"] = options.notCompared;
  return report;
}
