// How the patch of each prompt's last token changes other tokens (Specificity.h), and how fast it
// goes stale.
#include "Experiments.h"
#include "ctxc/Experiments/Specificity.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Verify/Verify.h"
#include "dialects/Patch/Patch.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;

namespace {

/// At most this many tokens of a prompt are evaluated: together, and each alone.
constexpr int64_t mostInContext = 16, mostAlone = 4;

constexpr std::pair<const char *, PatchPart> parts[] = {{"whole", PatchPart::Whole},
                                                        {"matrices", PatchPart::Matrices},
                                                        {"vectors", PatchPart::Vectors}};

/// At most `most` of 1 … count − 1, evenly, the last among them.
std::vector<int64_t> spread(int64_t count, int64_t most) {
  std::vector<int64_t> positions;
  int64_t n = std::min(most, count - 1);
  for (int64_t i = 1; i <= n; ++i)
    positions.push_back(i * (count - 1) / n);
  return positions;
}

/// A setting in which patches are made.
struct Way {
  std::string update, planName, plan;
};

Object changeJson(const AnswerChange &change) {
  return Object{{"totalVariation", number(change.totalVariation)},
                {"divergence", number(change.divergence)},
                {"linf", number(change.linf)},
                {"sameToken", change.sameToken}};
}

class SpecificityExperiment {
public:
  explicit SpecificityExperiment(Lab &lab) : lab(lab) {}

  Error run() {
    if (lab.dtypes.size() != 1)
      return makeError(
          "specificity: found " + llvm::Twine(lab.dtypes.size()) +
          " types of the weights, expected one: a patch is compared with others of its type");
    if (Error error = chooseWays())
      return error;
    lab.progress.expect(ways.size() * lab.prompts.size() * (1 + lab.prompts.size()));
    for (const Way &way : ways)
      if (Error error = run(way))
        return error;
    return Error::success();
  }

private:
  /// The default plan, and where that patches F too, G alone: one matrix in place of three.
  Error chooseWays() {
    auto model = lab.open({lab.dtypes.front(), lab.updates.front()});
    if (!model)
      return model.takeError();
    const Program &program = (*model)->program();
    std::string alone;
    for (ProgramStep step : program.steps) {
      if (!step.applied)
        continue;
      const auto &outputs = program.outputs[*step.index];
      llvm::StringSet<> loaded;
      for (patch::LoadOp load : step.applied.getBody().getOps<patch::LoadOp>())
        loaded.insert(load.getParameter());
      std::string names = loaded.size() > outputs.size() ? llvm::join(outputs, ",") : "";
      if (alone.empty())
        alone = names;
      if (names != alone) {
        alone.clear(); // several kinds of blocks: no names fit all
        break;
      }
    }
    for (const std::string &update : lab.updates) {
      ways.push_back({update, "default", ""});
      if (!alone.empty())
        ways.push_back({update, "output", alone});
    }
    return Error::success();
  }

  std::string keyOf(const Way &way, size_t source, StringRef part, StringRef view, int64_t target,
                    int64_t position) const {
    return key({{"source", std::to_string(source)},
                {"update", way.update},
                {"plan", way.planName},
                {"part", part.str()},
                {"view", view.str()},
                {"target", std::to_string(target)},
                {"position", std::to_string(position)}});
  }

  Object settings(const Way &way, size_t source, StringRef kind) const {
    return Object{{"kind", kind},
                  {"source", int64_t(source)},
                  {"update", way.update},
                  {"plan", way.planName}};
  }

  Error run(const Way &way) {
    lab.progress.begin(way.update + (way.plan.empty() ? "" : ", output alone"));
    Setting setting{lab.dtypes.front(), way.update};
    setting.plan = way.plan;
    auto model = lab.open(setting);
    if (!model)
      return model.takeError();
    Executor &executor = (*model)->executor();
    std::vector<Patch> patches;
    for (size_t source = 0; source < lab.prompts.size(); ++source) {
      RunRequest request;
      request.tokens = toInputs(lab.prompts[source].tokens);
      RunTimes times;
      auto step = makePatch(executor, request, times);
      if (!step)
        return step.takeError();
      patches.push_back(std::move(step->patch));
      if (Error error = writeNorms(way, source, patches.back(), **model))
        return error;
      if (Error error = followStale(way, source, patches.back(), executor))
        return error;
      lab.progress.advance();
    }
    for (size_t target = 0; target < lab.prompts.size(); ++target)
      if (Error error = lookAt(way, target, patches, executor))
        return error;
    return Error::success();
  }

  Error writeNorms(const Way &way, size_t source, const Patch &patch, ReadyModel &model) {
    auto table = measure(patch, lab.layers, model.norms());
    if (!table)
      return table.takeError();
    Object record = settings(way, source, "patch");
    merge(record, normJson(table->total));
    return lab.records.add(keyOf(way, source, "whole", "norms", source, 0), std::move(record));
  }

  Error followStale(const Way &way, size_t source, const Patch &patch, Executor &executor) {
    int64_t position = lab.prompts[source].tokens.size() - 1;
    if (lab.records.has(keyOf(way, source, "whole", "stale", source, position + lab.generate - 1)))
      return Error::success();
    continued.resize(lab.prompts.size());
    if (!continued[source]) {
      auto tokens = continueGreedily(executor, lab.prompts[source], lab.generate);
      if (!tokens)
        return tokens.takeError();
      std::vector<int64_t> positions;
      for (int64_t at = position; at < int64_t(tokens->size()); ++at)
        positions.push_back(at);
      auto full = answersInContext(executor, *tokens, positions, nullptr);
      if (!full)
        return full.takeError();
      continued[source].emplace(std::move(*tokens), std::move(*full));
    }
    const auto &[tokens, full] = *continued[source];
    auto steps = staleness(executor, tokens, position, patch, full);
    if (!steps)
      return steps.takeError();
    for (const StaleStep &step : *steps) {
      Object record = settings(way, source, "stale");
      merge(record,
            tokenJson(lab, step.position, tokens[step.position],
                      step.position + 1 < int64_t(tokens.size()) ? tokens[step.position + 1] : -1));
      record["distance"] = step.distance;
      record["alone"] = changeJson(step.alone);
      record["following"] = changeJson(step.following);
      record["aloneControl"] = changeJson(step.aloneControl);
      record["followingControl"] = changeJson(step.followingControl);
      if (Error error = lab.records.add(keyOf(way, source, "whole", "stale", source, step.position),
                                        std::move(record)))
        return error;
    }
    return Error::success();
  }

  /// Every patch on the tokens of one prompt.
  Error lookAt(const Way &way, size_t target, llvm::ArrayRef<Patch> patches, Executor &executor) {
    llvm::ArrayRef<int64_t> tokens = lab.prompts[target].tokens;
    std::vector<int64_t> together = spread(tokens.size(), mostInContext),
                         alone = spread(tokens.size(), mostAlone);
    std::optional<Answers> before[2];
    for (size_t source = 0; source < patches.size(); ++source) {
      for (const auto &part : parts) {
        const char *name = part.first;
        Patch taken = partOf(patches[source], part.second);
        if (taken.parameters.empty())
          continue;
        for (bool context : {true, false}) {
          llvm::ArrayRef<int64_t> positions = context ? together : alone;
          StringRef view = context ? "context" : "alone";
          if (llvm::all_of(positions, [&](int64_t position) {
                return lab.records.has(keyOf(way, source, name, view, target, position));
              }))
            continue;
          auto answers = context ? answersInContext : answersAlone;
          if (!before[context]) {
            auto made = answers(executor, tokens, positions, nullptr);
            if (!made)
              return made.takeError();
            before[context] = std::move(*made);
          }
          auto after = answers(executor, tokens, positions, &taken);
          if (!after)
            return after.takeError();
          for (auto [i, position] : llvm::enumerate(positions)) {
            Object record = settings(way, source, "elsewhere");
            record["part"] = name;
            record["view"] = view;
            record["target"] = int64_t(target);
            record["position"] = position;
            // The patch's own token, for which, alone, the patch was made.
            record["itself"] = source == target && position == int64_t(tokens.size()) - 1;
            merge(record, changeJson(changeOf(before[context]->logits[i], after->logits[i])));
            if (Error error = lab.records.add(keyOf(way, source, name, view, target, position),
                                              std::move(record)))
              return error;
          }
        }
      }
      lab.progress.advance();
    }
    return Error::success();
  }

  Lab &lab;
  std::vector<Way> ways;
  /// Of each prompt: its tokens with those that the full run adds, and the full run's answers from
  /// the prompt's last on.
  std::vector<std::optional<std::pair<std::vector<int64_t>, Answers>>> continued;
};

Error runSpecificity(Lab &lab) { return SpecificityExperiment(lab).run(); }

} // namespace

Experiment experiments::specificityExperiment() {
  Experiment experiment;
  experiment.name = "specificity";
  experiment.paper = "not in the paper; its limitation \"token-dependent equivalence\"";
  experiment.summary = "what the patch of a token does to other tokens and prompts: matrices\n"
                       "against vectors, one matrix against three; and how fast it goes stale\n"
                       "over the next tokens";
  experiment.generate = 16;
  experiment.dtypes = {"f32"};
  experiment.updates = {"least", "stable"};
  experiment.run = runSpecificity;
  return experiment;
}
