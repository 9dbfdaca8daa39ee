// ctxc verify --joint and ctxc inspect --joint: one patch that grows while the model generates.
#include "JointPatch.h"
#include "Prompt.h"
#include "ctxc/InspectPage/InspectPage.h"
#include "ctxc/Report/JointReport.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/Streams.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// What it takes of the command's options.
static constexpr llvm::StringLiteral taken[] = {
    "--joint",   "--tokens", "--prompt", "--chat",  "--system",    "--absorb",
    "--keep",    "--go-on",  "--json",   "--html",  "--tokenizer", "--generate",
    "--threads", "--dtype",  "--target", "--shard", "--weights"};

OptionSpec driver::goOnOption() {
  return {"--go-on", "",
          "with --joint, a text with more tokens than one patch can be exact for goes on with the\n"
          "change for the first ones, and the report says where exactness ends"};
}

Error driver::checkJointRun(const Arguments &arguments, llvm::ArrayRef<OptionSpec> all) {
  for (const OptionSpec &option : all)
    if (arguments.has(option.name) && !llvm::is_contained(taken, StringRef(option.name)))
      return makeError(option.name + ": does not go with --joint; leave it out");
  return Error::success();
}

static JointRequest requestOf(const RunRequest &run) {
  JointRequest request;
  std::vector<int64_t> tokens = tokensOf(run.tokens);
  request.texts = {{{tokens.back()}, 0}};
  tokens.pop_back();
  request.kept = run.kept;
  for (int64_t position : run.kept)
    request.prefix.push_back(tokens[position]);
  request.context = std::move(tokens);
  return request;
}

/// Generates while one patch grows. `observe` may be the first to print.
static Expected<JointVerification> grow(const Arguments &arguments, Model &model,
                                        const VerifySettings &settings, const TokenName &name,
                                        StepObserver observe) {
  JointRequest request = requestOf(settings.request);
  request.goesOn = arguments.has("--go-on");
  if (Error error = model.stopTokens().moveInto(request.stops))
    return std::move(error);
  if (model.hasTokenizer())
    request.nameOf = [&](int64_t token) { return "'" + name(token) + "'"; };
  return model.verifyJointly(request, settings.generate, observe);
}

static Error writeJson(const Arguments &arguments, const llvm::json::Value &json) {
  StringRef path = arguments.get("--json", "");
  if (path.empty())
    return Error::success();
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    os << llvm::formatv("{0:2}\n", json);
    return Error::success();
  });
}

Expected<int> driver::verifyJoint(const Arguments &arguments, Model &model,
                                  VerifySettings &settings) {
  auto capacity = model.jointCapacity();
  if (!capacity)
    return capacity.takeError();
  settings.updateApplies = false;
  settings.plan =
      "one patch for up to " + counted(*capacity, "token") + ", which grows by a rank with each";
  const TokenName name = model.tokenName();
  VerifyText text(out(), settings, name);
  bool isBegun = false; // what cannot be is said before anything is printed
  auto result = grow(arguments, model, settings, name, [&](const VerifyStep &step) {
    if (!std::exchange(isBegun, true))
      text.begin();
    text.step(step);
  });
  if (!result)
    return result.takeError();
  writeJointEnd(out(), *result, settings, model.times(), generatedText(model, result->steps));
  if (Error error = writeJson(arguments, jointJson(*result, settings, model.times(), name)))
    return std::move(error);
  return isVerified(*result) ? ExitGood : ExitAgainst;
}

Expected<int> driver::inspectJoint(const Arguments &arguments, Model &model,
                                   VerifySettings &settings) {
  constexpr size_t written = 16; // directions of each token
  const TokenName name = model.tokenName();
  auto found = grow(arguments, model, settings, name, [](const VerifyStep &) {});
  if (!found)
    return found.takeError();
  const int64_t inFront = settings.request.kept.size();
  if (Error error = writeJson(arguments, jointJson(*found, settings, model.times(), name, written)))
    return std::move(error);
  if (StringRef path = arguments.get("--html", ""); !path.empty())
    if (Error error = writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
          writeJointPage(os, *found, settings, name);
          return Error::success();
        }))
      return std::move(error);
  out() << jointSitesText(found->patch) << "\n"
        << jointNeedsText(*found, inFront, name) << "\n"
        << jointObligationsText(found->patch, inFront) << jointCheckText(found->reread, 0);
  return isVerified(*found) ? ExitGood : ExitAgainst;
}
