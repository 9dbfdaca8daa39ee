#include "Core.h"
#include "ctxc/InspectPage/InspectPage.h"
#include "ctxc/Report/CheckPage.h"
#include "ctxc/Report/CheckReport.h"
#include "ctxc/Report/InspectReport.h"
#include "ctxc/Report/Sarif.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace ctxc;
using namespace ctxc::python;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// Reads the option `name` into `value`, by its type; whether it was given.
template <typename T> static bool given(const nb::dict &options, const char *name, T &value) {
  if (!options.contains(name) || options[name].is_none())
    return false;
  if constexpr (hasNames<T>) {
    std::string text = nb::cast<std::string>(options[name]), names;
    for (const Named<T> &each : namesOf<T>()) {
      names += (names.empty() ? "" : ", ") + each.name.str();
      if (each.name == text) {
        value = each.value;
        return true;
      }
    }
    raiseError(makeError(llvm::Twine(name) + ": found '" + text + "', expected one of " + names));
  } else if constexpr (std::is_same_v<T, WeightSource>) {
    value.checkpoint = nb::cast<std::string>(options[name]);
  } else if constexpr (std::is_same_v<T, std::optional<uint64_t>>) {
    value = nb::cast<uint64_t>(options[name]);
  } else if constexpr (std::is_same_v<T, decltype(ModelOptions::parameters)>) {
    auto list = nb::cast<std::vector<std::string>>(options[name]);
    value.assign(list.begin(), list.end());
  } else {
    value = nb::cast<T>(options[name]);
  }
  return true;
}

static Engine engineOf(const nb::dict &options, bool onGpu) {
  std::string text = "compiled";
  given(options, "engine", text);
  if (text == "reference")
    return Engine::Reference;
  if (text != "compiled")
    raiseError(makeError("engine: found '" + text + "', expected one of compiled, reference"));
  return onGpu ? Engine::Gpu : Engine::Compiled;
}

static PromptProducts promptProductsOf(const nb::dict &options) {
  bool isSplit = false, isRounded = false;
  given(options, "split_prompts", isSplit);
  given(options, "round_prompts", isRounded);
  if (isSplit && isRounded)
    raiseError(makeError("split_prompts is exact and round_prompts is not; leave one of them out"));
  return isSplit     ? PromptProducts::Split
         : isRounded ? PromptProducts::Rounded
                     : PromptProducts::Exact;
}

LoadOptions BoundModel::read(const nb::dict &options) {
  LoadOptions result;
  given(options, "need_weights", result.needWeights);
#define CTXC_OPTION(NAME, WORDS, COMMANDS, FIELD, FLAG, VALUE, NAMES, HELP, PYTHON, PYTHON_HELP)   \
  given(options, PYTHON, result.FIELD);
#include "ctxc/Session/Options.def"
  result.engine = engineOf(options, !result.gpu.empty());
  result.prompts = promptProductsOf(options);
  result.diagnostics = [this](const ModelDiagnostic &each) { diagnostics.push_back(each); };
  result.interrupt = [this] { return asksToStop(); };
  result.progress = [this](int64_t done, int64_t all) { callBack(progress, done, all); };
  return result;
}

//===----------------------------------------------------------------------===//
// Errors and signals
//===----------------------------------------------------------------------===//

/// Python runs a signal's handler when it is asked to; a call is asked far more often than that is
/// worth the lock.
bool BoundModel::asksToStop() {
  if (pending || unlockedCalls.isEnding)
    return true;
  auto now = std::chrono::steady_clock::now();
  if (now - asked < std::chrono::milliseconds(100))
    return false;
  asked = now;
  nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0)
    pending = std::make_unique<nb::python_error>();
  return bool(pending);
}

void BoundModel::interruptWith(nb::python_error &error) {
  if (!pending)
    pending = std::make_unique<nb::python_error>(std::move(error));
}

void BoundModel::raisePending() {
  stayWhileInterpreterEnds();
  if (!pending)
    return;
  nb::python_error raised = std::move(*pending);
  pending.reset();
  takeDiagnostics();
  throw raised;
}

void BoundModel::raise(llvm::Error error) {
  if (pending)
    llvm::consumeError(std::move(error));
  raisePending();
  raiseError(std::move(error), takeDiagnostics());
}

std::shared_ptr<BoundModel> BoundModel::load(const std::string &path, const nb::dict &options) {
  std::shared_ptr<BoundModel> result(new BoundModel());
  LoadOptions settings = result->read(options);
  result->model = result->take(unlocked([&] { return Model::load(path, std::move(settings)); }));
  return result;
}

std::shared_ptr<const AdapterModel> BoundModel::adapter() {
  if (!adapterOfModel && model->checkpoint())
    adapterOfModel = std::make_shared<const AdapterModel>(take(adapterModel(*model)));
  return adapterOfModel;
}

/// (name, dtype, shape, address, owner) of each tensor.
std::shared_ptr<BoundModel> BoundModel::fromTensors(const std::string &name,
                                                    const std::string &config,
                                                    const nb::list &tensors,
                                                    const nb::dict &options) {
  std::shared_ptr<BoundModel> result(new BoundModel());
  std::vector<MemoryTensor> all;
  for (nb::handle each : tensors) {
    auto tensor = nb::cast<nb::tuple>(each);
    auto shape = nb::cast<std::vector<int64_t>>(tensor[2]);
    std::string type = nb::cast<std::string>(tensor[1]);
    std::optional<DType> dtype = dtypeNamed(type);
    if (!dtype)
      raiseError(makeError(name + ": tensor " + nb::cast<std::string>(tensor[0]) +
                           ": found type '" + type + "', which no checkpoint has"));
    all.push_back({nb::cast<std::string>(tensor[0]),
                   *dtype,
                   {shape.begin(), shape.end()},
                   reinterpret_cast<const void *>(nb::cast<uintptr_t>(tensor[3]))});
    result->kept.push_back(nb::borrow(tensor[4]));
  }
  LoadOptions settings = result->read(options);
  result->model =
      result->take(unlocked([&] { return Model::load(name, config, all, std::move(settings)); }));
  return result;
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

namespace {

/// The verdicts of a model: JSON, text or a page, as `ctxc check` gives them.
struct Verdicts {
  std::vector<VerdictGroup> groups;
  std::optional<ModelVerdict> whole;

  CheckReportOptions options(bool plans) const {
    CheckReportOptions options;
    options.model = whole ? &*whole : nullptr;
    options.plans = plans;
    return options;
  }
  bool isPatchable() const { return ctxc::isPatchable(groups) && (!whole || whole->isSuccess()); }
};

Verdicts verdictsOf(BoundModel &model) {
  Verdicts result;
  result.groups = model.take(unlocked([&] { return model.get().check(); }));
  result.whole = model.take(unlocked([&] { return model.get().judge(result.groups); }));
  return result;
}

std::string textOf(const llvm::json::Value &value) { return llvm::formatv("{0}", value).str(); }

std::string checkJson(BoundModel &model, bool plans) {
  Verdicts verdicts = verdictsOf(model);
  auto severities = Severities::parse({});
  auto findings = collectFindings(verdicts.groups, model.take(std::move(severities)));
  llvm::json::Value report = checkReportJson(verdicts.groups, findings, verdicts.options(plans));
  report.getAsObject()->insert({"patchable", verdicts.isPatchable()});
  return textOf(report);
}

/// The report, and before it what `ctxc check` says in messages: why a verdict is against, at which
/// line, and what to do. Diagnostics that nobody has taken are lost.
std::string checkText(BoundModel &model, bool plans) {
  Verdicts verdicts = verdictsOf(model);
  auto severities = Severities::parse({});
  auto findings = collectFindings(verdicts.groups, model.take(std::move(severities)));
  model.takeDiagnostics();
  emitFindings(verdicts.groups, findings);
  if (verdicts.whole)
    (void)emitVerdict(*verdicts.whole); // its causes are in the report
  std::string said;
  llvm::raw_string_ostream os(said);
  for (const ModelDiagnostic &each : model.takeDiagnostics())
    os << text(each);
  printCheckReport(os, verdicts.groups, verdicts.options(plans));
  return said;
}

std::string checkSarif(BoundModel &model) {
  Verdicts verdicts = verdictsOf(model);
  auto severities = Severities::parse({});
  auto findings = collectFindings(verdicts.groups, model.take(std::move(severities)));
  CheckReportOptions options = verdicts.options(/*plans=*/false);
  options.notCompared = model.get().notCompared();
  return textOf(sarifLog(verdicts.groups, findings, verdicts.isPatchable() ? 0 : 1, options));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// What verify and inspect take beside the tokens.
RunRequest requestOf(BoundModel &model, const std::vector<int64_t> &tokens,
                     const std::vector<int64_t> &kept) {
  RunRequest request;
  request.headless = model.get().isHeadless();
  request.tokens = python::toInputs(tokens);
  request.kept = kept;
  return request;
}

std::string verifyJsonOf(BoundModel &model, VerifySettings settings, const VerifyResult &result) {
  TokenName name = model.get().tokenName();
  llvm::json::Value report = verifyJson(result, settings, model.get().times(), name);
  report.getAsObject()->insert({"verified", isVerified(summarize(result.steps), settings)});
  return textOf(report);
}

std::string verifyTokens(BoundModel &model, const std::vector<int64_t> &tokens,
                         const std::vector<int64_t> &kept, int64_t generate, bool materialize,
                         const std::vector<int64_t> &positions, const nb::object &progress) {
  VerifySettings settings = model.take(model.get().verifySettings());
  settings.generate = generate;
  settings.request = requestOf(model, tokens, kept);
  settings.request.materialize = materialize;
  settings.request.positions = positions;
  int64_t done = 0;
  auto observe = [&](const VerifyStep &) { model.callBack(progress, ++done); };
  auto result =
      model.take(unlocked([&] { return model.get().verify(settings.request, generate, observe); }));
  return verifyJsonOf(model, std::move(settings), result);
}

std::string verifyPatchOf(BoundModel &model, const BoundPatch &patch) {
  if (!model.get().checkpoint())
    raiseError(makeError("the model has no checkpoint, and a patch belongs to one"));
  model.check(checkAgainst(*model.get().checkpoint(), *patch.patch, patch.metadata));
  VerifySettings settings = model.take(model.get().verifySettings());
  settings.request = requestOf(model, patch.metadata.tokens, patch.metadata.kept);
  auto result =
      model.take(unlocked([&] { return model.get().verify(settings.request, *patch.patch); }));
  return verifyJsonOf(model, std::move(settings), result);
}

/// JSON and the page of an inspection.
std::pair<std::string, std::string> inspectTokens(BoundModel &model,
                                                  const std::vector<int64_t> &tokens,
                                                  const std::vector<int64_t> &kept,
                                                  int64_t generate, std::optional<int64_t> subject,
                                                  const std::string &by, int64_t nearest) {
  InspectSettings settings;
  settings.run = model.take(model.get().verifySettings());
  settings.run.request = requestOf(model, tokens, kept);
  settings.hasNames = model.get().hasTokenizer();
  settings.grain = by == "sentence" ? Grain::Sentence : Grain::Token;
  TokenName name = model.get().tokenName();
  InspectRequest request;
  request.run = settings.run.request;
  request.generate = generate;
  request.subject = subject;
  request.nearest = nearest;
  request.grain = settings.grain;
  request.text = [&](int64_t token) { return name.bytes(token); };
  settings.times = model.get().times();
  auto inspection = model.take(unlocked([&] { return model.get().inspect(std::move(request)); }));
  std::string page;
  llvm::raw_string_ostream os(page);
  writeInspectPage(os, inspection, settings, name);
  return {textOf(inspectionJson(inspection, settings, name)), page};
}

/// The patches of `positions`, made in one pass, each handed to `sink` as (patch, full logits).
void patchPositions(BoundModel &model, const std::vector<int64_t> &tokens,
                    const std::vector<int64_t> &kept, const std::vector<int64_t> &positions,
                    const nb::object &sink) {
  RunRequest request = requestOf(model, tokens, kept);
  request.positions = positions;
  auto give = [&](const TokenPatch &given) -> llvm::Error {
    auto patch = given.patch();
    if (!patch)
      return patch.takeError();
    auto metadata = model.get().metadata(request, given.position);
    if (!metadata)
      return metadata.takeError();
    nb::gil_scoped_acquire acquire;
    try {
      sink(BoundPatch{std::make_shared<const Patch>(std::move(*patch)), std::move(*metadata),
                      model.adapter()});
    } catch (nb::python_error &error) {
      model.interruptWith(error);
      return llvm::make_error<Cancelled>();
    }
    return llvm::Error::success();
  };
  model.check(unlocked([&] { return model.get().positions(request, give); }));
}

} // namespace

std::vector<Input> python::toInputs(const std::vector<int64_t> &tokens) {
  return ctxc::toInputs(tokens);
}

/// (name, meaning) of each option.
static std::vector<std::pair<std::string, std::string>> loadOptionsOfPython() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const OptionText &text : optionTexts())
    if (!text.python.empty())
      all.emplace_back(text.python, text.pythonHelp);
  return all;
}

/// (name, formula) of each activation.
static std::vector<std::pair<std::string, std::string>> functionsOfPython() {
  return {
#define CTXC_FUNCTION(NAME, SHAPE, LEAST, FORMULA) {#NAME, #FORMULA},
#include "dialects/XF/Functions.def"
  };
}

void python::addModel(nb::module_ &m) {
  m.def("functions", &functionsOfPython);
  m.def("load_options", &loadOptionsOfPython);
  nb::class_<BoundModel> model(m, "Model");
  addGraph(model);
  addBatch(model, m);
  addKept(model);
  model.def_static("load", &BoundModel::load)
      .def_static("from_tensors", &BoundModel::fromTensors)
      .def_prop_ro("name", [](BoundModel &self) { return self.get().name().str(); })
      .def_prop_ro("storage", [](BoundModel &self) { return self.get().storage().str(); })
      .def_prop_ro("headless", [](BoundModel &self) { return self.get().isHeadless(); })
      .def_prop_ro("has_tokenizer", [](BoundModel &self) { return self.get().hasTokenizer(); })
      .def("hash",
           [](BoundModel &self) { return self.take(unlocked([&] { return self.get().hash(); })); })
      .def("layers",
           [](BoundModel &self) {
             return self.take(unlocked([&] { return self.get().verifySettings(); })).layers;
           })
      .def("check_json", &checkJson)
      .def("check_text", &checkText)
      .def("check_sarif", &checkSarif)
      .def("tokenize", [](BoundModel &self,
                          const std::string &text) { return self.take(self.get().tokenize(text)); })
      .def("decode",
           [](BoundModel &self, const std::vector<int64_t> &tokens) {
             Tokenizer &tokenizer = self.take(self.get().tokenizer());
             return self.take(tokenizer.decode(tokens));
           })
      .def("piece",
           [](BoundModel &self, int64_t token) {
             return llvm::json::fixUTF8(self.get().tokenName().piece(token));
           })
      .def("token_text",
           [](BoundModel &self, int64_t token) { return self.get().tokenName().text(token); })
      .def("verify_json", &verifyTokens, nb::arg("tokens"), nb::arg("kept"), nb::arg("generate"),
           nb::arg("materialize"), nb::arg("positions"), nb::arg("progress").none())
      .def("verify_patch_json", &verifyPatchOf)
      .def("inspect", &inspectTokens, nb::arg("tokens"), nb::arg("kept"), nb::arg("generate"),
           nb::arg("subject").none(), nb::arg("by"), nb::arg("nearest"))
      .def("chat",
           [](BoundModel &self, const std::vector<std::pair<std::string, std::string>> &turns) {
             std::vector<ChatMessage> messages;
             for (const auto &[role, content] : turns)
               messages.push_back({role, content});
             return self.take(self.get().chat(messages));
           })
      .def("patch_positions", &patchPositions)
      .def("set_progress", &BoundModel::setProgress, nb::arg("told").none())
      .def("check_patch",
           [](BoundModel &self, const BoundPatch &patch) {
             if (!self.get().checkpoint())
               raiseError(makeError("the model has no checkpoint, and a patch belongs to one"));
             self.check(checkAgainst(*self.get().checkpoint(), *patch.patch, patch.metadata));
           })
      .def("take_diagnostics", [](BoundModel &self) {
        nb::list all;
        for (const ModelDiagnostic &each : self.takeDiagnostics())
          all.append(toDict(each));
        return all;
      });
}
