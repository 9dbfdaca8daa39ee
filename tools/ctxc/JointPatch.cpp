#include "JointPatch.h"
#include "JointRidge.h"
#include "ctxc/Export/LastingAdapter.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Report/JointReport.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "ctxc/Support/Timer.h"
#include "ctxc/Tokenizer/TokenName.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/TokenProgress.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// What a joint patch takes of the options that ctxc patch has beside its own.
static constexpr llvm::StringLiteral shared[] = {"-o",        "--format", "--keep",
                                                 "--chat",    "--system", "--tokenizer",
                                                 "--threads", "--target", "--shard"};

std::vector<OptionSpec> driver::jointOptions() {
  std::vector<OptionSpec> options = {
      {"--joint", "",
       "one patch that is exact for every token of --text behind --context, where those of\n"
       "a single token hold for it alone. Its rank is the number of tokens; ctxc check says\n"
       "how many there can be"},
      reads({"--context", "FILE", "with --joint, the text that the patch replaces"}),
      {"--context-tokens", "IDS", "the same as token ids, with those in front; or @FILE"},
      reads({"--text", "FILE",
             "with --joint, the text for which the patch is exact; several, separated by\n"
             "lines of dashes or in JSON lines, as for `ctxc distil`"}),
      {"--generate", "N",
       "with --joint, the model first continues each text by N tokens, the likeliest ones\n"
       "behind the context; the patch is exact for these too. Default 0"}};
  llvm::append_range(options, ridgeOptions());
  return options;
}

static bool isGguf(const Arguments &arguments) {
  return arguments.positional(0).ends_with(".gguf");
}

/// That of --format: by default what runs the model loads.
static StringRef formatOf(const Arguments &arguments) {
  return arguments.get("--format", isGguf(arguments) ? "gguf-lora" : "peft");
}

Error driver::checkJointOptions(const Arguments &arguments, llvm::ArrayRef<OptionSpec> all) {
  const std::vector<OptionSpec> own = jointOptions();
  auto isIn = [](StringRef name, const auto &options) {
    return llvm::any_of(options, [&](const OptionSpec &each) { return each.name == name; });
  };
  if (!arguments.has("--joint")) {
    for (const OptionSpec &option : own)
      if (arguments.has(option.name))
        return makeError(option.name + ": applies to --joint, which is not given");
    return Error::success();
  }
  if (arguments.has("--prompt") || arguments.has("--tokens"))
    return makeError("--prompt and --tokens end in the one token of a patch; with --joint expected "
                     "--context FILE or --context-tokens IDS, and --text FILE");
  for (const OptionSpec &option : all)
    if (arguments.has(option.name) && !isIn(option.name, own) &&
        !llvm::is_contained(shared, StringRef(option.name)))
      return makeError(option.name + ": does not go with --joint; leave it out");
  if (StringRef system = arguments.get("--system", "@"); !system.starts_with("@"))
    return makeError("--system: with --joint expected @FILE, a file with the system message");
  if (Error error = checkContextOptions(arguments))
    return error;
  if (!arguments.has("--text"))
    return makeError("--joint: for which text is not said; expected --text FILE");
  if (arguments.has("--held-out") && isGguf(arguments))
    return makeError("--held-out: other text is judged with the change added to the weights, and "
                     "those of a GGUF file stay as they are; expected a Hugging Face directory as "
                     "the model, or leave it out");
  for (StringRef elsewhere : {"--target", "--shard"})
    if (arguments.has("--held-out") && arguments.has(elsewhere))
      return makeError("--held-out: does not go with " + elsewhere +
                       "; other text is judged with the change added to the weights, in one "
                       "process on this processor; leave one of the two out");
  if (Error error = Ridges::parse(arguments).takeError())
    return error;
  StringRef path = arguments.get("-o", ""), format = formatOf(arguments);
  if (format == "peft" && isGguf(arguments))
    return makeError("--format: found peft, which names a directory's modules, and a GGUF file as "
                     "the model; expected gguf-lora, which llama.cpp loads beside it");
  if (format == "peft" && arguments.has("--format") && isProgramFile(arguments.positional(0)))
    return makeError("--format: found peft, which names a directory's modules, and an exported "
                     "program as the model; leave it out: the directory then has changes by the "
                     "names of parameters");
  if (format == "patch")
    return makeError("--format: a file of ctxc's own holds changes of rank 1, and a joint patch is "
                     "of a higher rank; expected peft or gguf-lora");
  if (format == "peft" && llvm::sys::fs::exists(path))
    return makeError("-o: " + path + " already exists; name a directory that does not");
  return format == "peft" ? Error::success() : checkWritable(path);
}

namespace {

struct JointTask {
  JointRequest request;
  int64_t generated = 0;
  std::string whyKept; ///< the line that says what is kept, where nobody asked for it
};

} // namespace

/// Continues each text by the likeliest tokens behind the context.
static Error generate(Model &model, int64_t count, JointTask &task) {
  SampleRequest request;
  request.context = task.request.context;
  request.length = count;
  request.temperature = 0;
  request.written = progressOnTerminal();
  if (Error error = model.stopTokens().moveInto(request.stops))
    return error;
  for (const TextSequence &text : task.request.texts)
    request.prompts.push_back(text.tokens);
  auto written = model.sample(request);
  if (!written)
    return written.takeError();
  task.request.texts = std::move(written->texts);
  task.generated = written->tokens;
  return Error::success();
}

/// The positions of the context that stay in front of each text: those that are asked for, or where
/// nothing stands there, what other patches keep as well.
static Expected<std::vector<int64_t>> keptOf(const Arguments &arguments, Model &model,
                                             JointTask &task) {
  auto given = keptPositions(arguments);
  if (!given)
    return given.takeError();
  if (*given || !task.request.prefix.empty() || task.request.texts.empty())
    return given->value_or(std::vector<int64_t>());
  std::vector<int64_t> tokens = task.request.context;
  llvm::append_range(tokens, task.request.texts.front().tokens);
  auto kept = model.keptByDefault(toInputs(tokens));
  if (!kept)
    return kept.takeError();
  // Of a text that is shorter than what is kept, nothing is left.
  llvm::erase_if(kept->positions,
                 [&](int64_t place) { return place >= int64_t(task.request.context.size()); });
  VerifySettings about;
  about.whyKept = kept->why;
  if (!kept->positions.empty())
    task.whyKept = "in front   of each text: what the context has at " +
                   positionsText(kept->positions) + whyKeptText(about, "           ") + "\n";
  return std::move(kept->positions);
}

static Expected<JointTask> taskOf(const Arguments &arguments, Opened &opened) {
  JointTask task;
  task.request.context = opened.context.context;
  task.request.prefix = opened.context.front;
  task.request.fitted = progressOnTerminal("matrices");
  auto count = arguments.integer("--generate", 0, 1 << 20, 0);
  if (!count)
    return count.takeError();
  if (Error error = readTexts(arguments, "--text", *opened.model, opened.context)
                        .moveInto(task.request.texts))
    return std::move(error);
  auto kept = keptOf(arguments, *opened.model, task);
  if (!kept)
    return kept.takeError();
  if (arguments.has("--keep"))
    task.request.prefix.clear();
  for (int64_t place : *kept) {
    if (place >= int64_t(task.request.context.size()))
      return makeError("--keep: found position " + llvm::Twine(place) +
                       ", expected one of the context's " +
                       llvm::Twine(task.request.context.size()) + " tokens, counted from 0");
    task.request.prefix.push_back(task.request.context[place]);
  }
  if (*count > 0)
    if (Error error = generate(*opened.model, *count, task))
      return std::move(error);
  if (opened.model->hasTokenizer()) {
    auto tokenizer = opened.model->tokenizer();
    if (!tokenizer)
      return tokenizer.takeError();
    task.request.nameOf = [name = TokenName(*tokenizer)](int64_t token) {
      return "'" + name(token) + "'";
    };
  }
  return task;
}

/// joint.json: the same and the whole spectra, for programs.
static std::string jsonOf(const JointTask &task, const JointPatch &patch, const JointCheck &check,
                          llvm::ArrayRef<RidgeRow> ridges) {
  llvm::json::Object all = jointCheckJson(check);
  all["format"] = "ctxc-joint";
  all["format_version"] = 1;
  all["context_tokens"] = task.request.context.size();
  all["prefix"] = llvm::json::Array(task.request.prefix);
  all["generated"] = task.generated;
  all["sites"] = jointSitesJson(patch);
  if (!ridges.empty())
    all["ridges"] = ridgesJson(ridges);
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(all)));
}

static Error write(const Arguments &arguments, const Model &model, const Adapter &adapter,
                   llvm::ArrayRef<AdapterFile> files) {
  StringRef path = arguments.get("-o", "");
  if (formatOf(arguments) == "peft")
    return writeLastingAdapter(path, adapter, *model.checkpoint(), files);
  auto bytes = lastingGguf(adapter, *model.checkpoint());
  if (!bytes)
    return bytes.takeError();
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    os << *bytes;
    return Error::success();
  });
}

/// Whether the change that is to be written does what it is for; why not is said.
static bool isGood(const JointCheck &check, llvm::ArrayRef<RidgeRow> ridges, size_t chosen) {
  std::string why;
  if (chosen == 0 && !check.verified())
    why = "the patched model does not read the text as the model with the context does, so that "
          "nothing is written; ctxc check says which layers take a context";
  else if (chosen > 0 && check.agree <= check.agreeControl && check.agree < check.tokens)
    why = "with this ridge penalty no more tokens of the text are those of the model with the "
          "context than without a patch, so that nothing is written; a smaller one changes more";
  else if (chosen > 0 && ridges[chosen].other && ridges[chosen].other->share() <= 0)
    why = "the change recovers nothing of the context's effect on other text, so that nothing is "
          "written; the exact one serves this text, and ctxc distil fits others";
  if (why.empty())
    return true;
  out().flush();
  err() << "ctxc: error: " << why << "\n";
  return false;
}

Expected<int> driver::runJoint(const Arguments &arguments) {
  auto ridges = Ridges::parse(arguments);
  if (!ridges)
    return ridges.takeError();
  // Other text is judged with the changes in the weights.
  auto opened =
      openContext(arguments.has("--system")
                      ? arguments.with("--system", arguments.get("--system", "").drop_front())
                      : arguments,
                  /*isAddedTo=*/arguments.has("--held-out"));
  if (!opened)
    return opened.takeError();
  Model &model = *opened->model;
  auto task = taskOf(arguments, *opened);
  if (!task)
    return task.takeError();
  task->request.ridges = ridges->strengths();
  double seconds = 0;
  auto patch = [&] {
    Timer timer(seconds);
    return model.patchJointly(task->request);
  }();
  if (!patch)
    return patch.takeError();
  std::vector<RidgeRow> rows;
  if (Error error = ridges->judge(arguments, *opened, *patch, task->request).moveInto(rows))
    return std::move(error);
  const size_t chosen = ridges->choose(rows);
  const JointCheck check = rows[chosen].own;
  const bool isAlone = rows.size() == 1 && !rows.front().other; // nothing but the exact change
  const std::string report = task->whyKept + jointSitesText(*patch) +
                             jointObligationsText(*patch, task->request.prefix.size()) +
                             jointCheckText(check, task->generated) +
                             (isAlone ? "" : ridgesText(rows, chosen));
  out() << report;
  if (!isGood(check, rows, chosen))
    return ExitAgainst;
  const Adapter &adapter = chosen == 0 ? patch->adapter : patch->ridged[chosen - 1];
  if (isAlone)
    rows.clear();
  if (Error error =
          write(arguments, model, adapter,
                {{"joint.txt", report}, {"joint.json", jsonOf(*task, *patch, check, rows)}}))
    return std::move(error);
  out() << (chosen == 0 ? "verified" : "approximate, not exact") << "; written to "
        << printableLine(arguments.get("-o", "")) << llvm::format(" (%.1f s)\n", seconds);
  return ExitGood;
}
