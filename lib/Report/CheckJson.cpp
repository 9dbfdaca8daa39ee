// The check report for programs.
#include "CheckRows.h"
#include "ctxc/Report/CheckReport.h"

using namespace mlir;
using namespace ctxc;
namespace json = llvm::json;

static json::Array patches(ArrayRef<PatchRow> rows) {
  json::Array array;
  for (const PatchRow &row : rows)
    array.push_back(
        json::Object{{"parameter", row.parameter}, {"change", row.change}, {"lemma", row.lemma}});
  return array;
}

static json::Object remarkJson(Operation *op, StringRef message) {
  json::Object object{{"message", message}};
  if (std::string where = fileLocation(op); !where.empty())
    object["location"] = where;
  if (op)
    object["op"] = op->getName().getStringRef();
  return object;
}

static json::Array findings(ArrayRef<Finding> list) {
  json::Array array;
  for (const Finding &f : list) {
    json::Object object = remarkJson(f.op, f.message);
    json::Array notes;
    for (const Remark &note : f.notes)
      notes.push_back(remarkJson(note.op, note.message));
    object["rule"] = f.rule;
    object["notes"] = std::move(notes);
    object["advice"] = f.advice;
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
  for (const ObligationRow &row : rows.obligations)
    obligations.push_back(json::Object{
        {"parameter", row.parameter}, {"condition", row.condition}, {"holds", row.holds}});
  json::Object object{{"block", block.getSymName()},
                      {"verdict", stringify(verdict.kind)},
                      {"input", patches(rows.input)},
                      {"output", patches(rows.output)},
                      {"obligations", std::move(obligations)},
                      {"causes", findings(verdict.causes)},
                      {"remark", verdict.remark}};
  object["bound"] = verdict.bound ? json::Value(*verdict.bound) : json::Value(nullptr);
  if (!group.ops.empty())
    object["layers"] = json::Array(group.layers);
  if (options.plans)
    object["plans"] = plansJson(group);
  return object;
}

json::Value ctxc::checkReportJson(ArrayRef<VerdictGroup> groups,
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
  for (const VerdictGroup &group : groups)
    array.push_back(groupJson(group, options));
  return json::Object{{"groups", std::move(array)}, {"summary", std::move(summary)}};
}
