#include "ctxc/Report/InspectReport.h"
#include "llvm/Config/llvm-config.h"
#include <cmath>

using namespace ctxc;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// JSON has neither infinity nor NaN.
static Value number(double value) { return std::isfinite(value) ? Value(value) : Value(nullptr); }
static Value number(std::optional<double> value) { return value ? number(*value) : Value(nullptr); }

namespace {

class InspectJson {
public:
  InspectJson(const Inspection &inspection, const InspectSettings &settings, const TokenName &name)
      : inspection(inspection), settings(settings), name(name) {}

  Value write() const {
    const VerifySettings &run = settings.run;
    const RunRequest &request = run.request;
    Object model{{"path", run.model},
                 {"hash", run.modelHash},
                 {"layers", run.layers},
                 {"vocabulary", run.vocabulary},
                 {"head", inspection.hasHead}};
    if (!run.notCompared.empty())
      model["notCompared"] = run.notCompared;
    Object about{{"tokens", Array(inspection.tokens)},
                 {"given", inspection.given},
                 {"kept", Array(request.kept)},
                 {"startLayer", request.startLayer},
                 {"update", run.update},
                 {"dtype", run.dtype},
                 {"backend", run.backend},
                 {"threads", run.threads},
                 {"plan", run.plan},
                 {"by", settings.grain == Grain::Token ? "token" : "sentence"}};
    if (!run.whyKept.empty())
      about["whyKept"] = run.whyKept;
    return Object{{"format", "ctxc-inspect"},
                  {"version", 1},
                  {"versions", Object{{"ctxc", CTXC_VERSION}, {"llvm", LLVM_VERSION_STRING}}},
                  {"model", std::move(model)},
                  {"settings", std::move(about)},
                  {"tokens", tokens()},
                  {"subject", subject()},
                  {"seconds", Object{{"import", settings.times.import},
                                     {"plan", settings.times.plan},
                                     {"compile", settings.times.compile},
                                     {"tokens", inspection.times.tokens},
                                     {"writes", inspection.times.writes},
                                     {"leftOut", inspection.times.leftOut}}}};
  }

private:
  std::string text(int64_t token) const { return name.text(token); }
  std::string piece(int64_t token) const { return llvm::json::fixUTF8(name.piece(token)); }

  static Object norm(const PatchNorm &norm) {
    return Object{{"matrixNorm", number(norm.matrix)},
                  {"matrixRelative", number(norm.matrixRelative)},
                  {"vectorNorm", number(norm.vector)},
                  {"vectorRelative", number(norm.vectorRelative)}};
  }
  static Array norms(llvm::ArrayRef<PatchNorm> layers) {
    Array result;
    for (const PatchNorm &layer : layers)
      result.push_back(norm(layer));
    return result;
  }
  static Object cosine(const PatchCosine &cosine) {
    return Object{{"matrix", number(cosine.matrix)}, {"vector", number(cosine.vector)}};
  }
  Object next(int64_t token) const {
    return token < 0 ? Object{}
                     : Object{{"token", token}, {"text", text(token)}, {"piece", piece(token)}};
  }
  Array scores(llvm::ArrayRef<TokenScore> scores, llvm::StringRef what) const {
    Array result;
    for (const TokenScore &score : scores)
      result.push_back(Object{{"token", score.token},
                              {"text", text(score.token)},
                              {"piece", piece(score.token)},
                              {what, number(score.score)}});
    return result;
  }
  Object metrics(const TokenMetrics &metrics) const {
    Object result{{"linf", number(metrics.linf)}};
    if (inspection.hasHead) {
      result["match"] = metrics.match;
      result["totalVariation"] = number(metrics.totalVariation);
    }
    return result;
  }

  Array tokens() const {
    Array result;
    for (const TokenInspection &token : inspection.patches) {
      Array before;
      for (const PatchCosine &layer : token.before.layers)
        before.push_back(cosine(layer));
      Object entry{{"position", token.position},
                   {"token", token.token},
                   {"text", text(token.token)},
                   {"piece", piece(token.token)},
                   {"norm", norm(token.norms.total)},
                   {"layers", norms(token.norms.layers)},
                   {"cosineBefore", cosine(token.before.total)},
                   {"layerCosinesBefore", std::move(before)}};
      if (token.next >= 0)
        entry["next"] = next(token.next);
      result.push_back(std::move(entry));
    }
    return result;
  }

  Array parameters() const {
    Array result;
    for (const ParameterChange &change : inspection.subject.parameters)
      result.push_back(Object{{"parameter", llvm::json::fixUTF8(change.parameter)},
                              {"layer", change.layer},
                              {"kind", change.isMatrix ? "matrix" : "vector"},
                              {"side", change.isOutput ? "output" : "input"},
                              {"norm", number(change.norm)},
                              {"relative", number(change.relative)}});
    return result;
  }

  Array writes() const {
    Array result;
    for (const LayerWrite &write : inspection.subject.writes)
      result.push_back(Object{{"layer", write.layer},
                              {"norm", number(write.norm)},
                              {"relative", number(write.relative)},
                              {"towards", scores(write.towards, "logit")},
                              {"away", scores(write.away, "logit")},
                              {"direction", Array(write.direction)}});
    return result;
  }

  /// Row by row.
  Array writeCosines() const {
    const SubjectInspection &subject = inspection.subject;
    size_t count = subject.writes.size();
    Array rows;
    for (size_t i = 0; i < count; ++i) {
      Array row;
      for (size_t j = 0; j < count; ++j)
        row.push_back(number(subject.writeCosines[i * count + j]));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  Array leftOut() const {
    Array result;
    for (const LeftOut &part : inspection.subject.leftOut) {
      Object entry{{"positions", Array(part.positions)},
                   {"text", textOf(inspection, settings, name, part.positions)},
                   {"matrixChange", number(part.change.matrix)},
                   {"matrixChangeRelative", number(part.relative.matrix)},
                   {"vectorChange", number(part.change.vector)},
                   {"vectorChangeRelative", number(part.relative.vector)}};
      if (inspection.hasHead) {
        entry["totalVariation"] = number(part.totalVariation);
        entry["next"] = next(part.next);
      }
      result.push_back(std::move(entry));
    }
    return result;
  }

  Object subject() const {
    const SubjectInspection &subject = inspection.subject;
    int64_t harmful = 0;
    for (const LayerObligations &layer : subject.obligations)
      harmful += layer.harmful;
    Object result{{"position", subject.position},
                  {"token", subject.token},
                  {"text", text(subject.token)},
                  {"piece", piece(subject.token)},
                  {"norm", norm(subject.norms.total)},
                  {"layers", norms(subject.norms.layers)},
                  {"parameters", parameters()},
                  {"harmful", harmful},
                  {"patched", metrics(subject.patchedMetrics)},
                  {"unpatched", metrics(subject.unpatchedMetrics)},
                  {"writes", writes()},
                  {"writeCosines", writeCosines()},
                  {"leftOut", leftOut()}};
    if (inspection.hasHead)
      result["predictions"] = Object{{"full", scores(subject.full, "probability")},
                                     {"patched", scores(subject.patched, "probability")},
                                     {"unpatched", scores(subject.unpatched, "probability")}};
    if (!subject.noLens.empty())
      result["noLens"] = subject.noLens;
    return result;
  }

  const Inspection &inspection;
  const InspectSettings &settings;
  const TokenName &name;
};

} // namespace

Value ctxc::inspectionJson(const Inspection &inspection, const InspectSettings &settings,
                           const TokenName &name) {
  return InspectJson(inspection, settings, name).write();
}
