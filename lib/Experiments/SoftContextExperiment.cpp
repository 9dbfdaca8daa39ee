// Contexts that are not tokens: rows in place of a prompt's tokens, which are the tokens' own
// embeddings, the same with noise, between those of two prompts, or out of a file.
#include "Experiments.h"
#include "ctxc/Checkpoint/Npy.h"
#include "ctxc/Experiments/Specificity.h"
#include "ctxc/Program/StepChecks.h"
#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Transforms/BuildPatch.h"
#include "ctxc/Verify/Verify.h"
#include <cmath>
#include <random>

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::json::Object;

namespace {

/// Noise in units of a row's root mean square; and how far rows go from one prompt's to another's.
constexpr double noises[] = {0.03, 0.1, 0.3, 1, 3}, mixtures[] = {0.25, 0.5, 0.75, 1};

using Rows = std::vector<std::vector<double>>;

/// The rows that stand for tokens: their embeddings.
Expected<Rows> rowsOf(const Program &program, Weights &weights, llvm::ArrayRef<int64_t> tokens) {
  ProgramStep step = program.steps.front();
  std::vector<int64_t> positions(tokens.size());
  for (auto [i, position] : llvm::enumerate(positions))
    position = i;
  reference::Environment environment{weights, step.layer, tokens, positions};
  reference::Evaluation evaluation(environment);
  auto outputs = reference::evaluateBlock(step.block, {}, evaluation);
  if (!outputs)
    return outputs.takeError();
  const reference::Matrix &values = evaluation.rows(valueOfToken(step.block));
  Rows rows;
  for (int64_t i = 0; i < values.rows(); ++i)
    rows.emplace_back(values.row(i).data(), values.row(i).data() + values.cols());
  return rows;
}

/// Adds noise of `amount` times the row's root mean square, the same at every call.
void addNoise(Rows &rows, double amount) {
  std::mt19937_64 random(1);
  // std::normal_distribution is not the same everywhere; this is.
  auto uniform = [&] { return (double(random() >> 11) + 0.5) * 0x1p-53; };
  for (std::vector<double> &row : rows) {
    double square = 0;
    for (double x : row)
      square += x * x;
    double size = amount * std::sqrt(square / row.size());
    for (double &x : row)
      x += size * std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform());
  }
}

/// The way from `rows` to `others`, as far as there are both.
void mix(Rows &rows, const Rows &others, double part) {
  for (auto [row, other] : llvm::zip(rows, others))
    for (auto [x, y] : llvm::zip(row, other))
      x = (1 - part) * x + part * y;
}

class SoftContextExperiment {
public:
  explicit SoftContextExperiment(Lab &lab) : lab(lab) {}

  Error run() {
    if (Error error = readFile())
      return error;
    contexts = {{"own", 0}};
    for (double amount : noises)
      contexts.push_back({"noise", amount});
    for (double amount : mixtures)
      if (lab.prompts.size() > 1)
        contexts.push_back({"mix", amount});
    if (!file.empty())
      contexts.push_back({"file", 0});
    lab.progress.expect(lab.dtypes.size() * lab.updates.size() * lab.prompts.size() *
                        contexts.size());
    for (const std::string &dtype : lab.dtypes)
      for (const std::string &update : lab.updates)
        if (Error error = run(dtype, update))
          return error;
    return Error::success();
  }

private:
  struct Context {
    StringRef kind;
    double amount;
  };

  Error readFile() {
    StringRef path = lab.option("--embeddings", "");
    if (path.empty())
      return Error::success();
    auto matrix = readNpyMatrix(path);
    if (!matrix)
      return matrix.takeError();
    for (int64_t i = 0; i < matrix->rows; ++i)
      file.push_back(matrix->row(i).vec());
    return Error::success();
  }

  std::string keyOf(const std::string &dtype, const std::string &update, size_t prompt,
                    const Context &context) const {
    return key({{"dtype", dtype},
                {"update", update},
                {"prompt", std::to_string(prompt)},
                {"rows", context.kind.str()},
                {"amount", std::to_string(context.amount)}});
  }

  Error run(const std::string &dtype, const std::string &update) {
    auto model = lab.open({dtype, update});
    if (!model)
      return model.takeError();
    if (!embeddingWidth((*model)->program()))
      return makeError("soft-context: the model has no place for rows: it reads the token for more "
                       "than its embedding");
    // All but the first token, of which models make more than of others, and the last.
    std::vector<Rows> own;
    for (const Prompt &prompt : lab.prompts) {
      auto rows = rowsOf((*model)->program(), (*model)->weights(),
                         llvm::ArrayRef(prompt.tokens).drop_front().drop_back());
      if (!rows)
        return rows.takeError();
      own.push_back(std::move(*rows));
    }
    for (size_t prompt = 0; prompt < lab.prompts.size(); ++prompt) {
      lab.progress.begin(dtype + " " + update);
      for (const Context &context : contexts) {
        bool there = lab.records.has(keyOf(dtype, update, prompt, context));
        if (!there)
          if (Error error = run(**model, dtype, update, prompt, context, own))
            return error;
        lab.progress.advance(1, there);
      }
    }
    return Error::success();
  }

  std::vector<Input> inputsOf(size_t prompt, const Context &context,
                              llvm::ArrayRef<Rows> own) const {
    llvm::ArrayRef<int64_t> tokens = lab.prompts[prompt].tokens;
    std::vector<Input> inputs = toInputs(tokens);
    if (context.kind == "file") {
      std::vector<Input> rows;
      for (const std::vector<double> &row : file)
        rows.push_back(Input::ofEmbedding(row));
      inputs.insert(inputs.begin() + 1, rows.begin(), rows.end());
      return inputs;
    }
    Rows rows = own[prompt];
    if (context.kind == "noise")
      addNoise(rows, context.amount);
    if (context.kind == "mix")
      mix(rows, own[(prompt + 1) % own.size()], context.amount);
    for (auto [i, row] : llvm::enumerate(rows))
      inputs[i + 1] = Input::ofEmbedding(row);
    return inputs;
  }

  Error run(ReadyModel &model, const std::string &dtype, const std::string &update, size_t prompt,
            const Context &context, llvm::ArrayRef<Rows> own) {
    llvm::ArrayRef<int64_t> tokens = lab.prompts[prompt].tokens;
    auto ofTokens = answersInContext(model.executor(), tokens, int64_t(tokens.size() - 1), nullptr);
    if (!ofTokens)
      return ofTokens.takeError();
    RunRequest request;
    request.tokens = inputsOf(prompt, context, own);
    std::vector<double> full;
    request.logits = [&](llvm::ArrayRef<double> logits, llvm::ArrayRef<double>,
                         llvm::ArrayRef<double>) { full = logits.vec(); };
    auto result = verify(model.executor(), request, 1, model.norms(), [](const VerifyStep &) {});
    if (!result)
      return result.takeError();
    const VerifyStep &step = result->steps.front();
    Object record = tokenJson(lab, step.position, step.token, step.next);
    record["dtype"] = dtype;
    record["update"] = update;
    record["prompt"] = int64_t(prompt);
    record["rows"] = context.kind;
    record["amount"] = context.amount;
    merge(record, metricsJson(step.patched));
    record["control"] = metricsJson(step.control);
    merge(record, normJson(step.norm));
    AnswerChange change = changeOf(ofTokens->logits.front(), full);
    record["fromTokens"] = Object{{"totalVariation", number(change.totalVariation)},
                                  {"divergence", number(change.divergence)},
                                  {"linf", number(change.linf)},
                                  {"sameToken", change.sameToken}};
    return lab.records.add(keyOf(dtype, update, prompt, context), std::move(record));
  }

  Lab &lab;
  std::vector<Context> contexts;
  Rows file;
};

Error runSoftContext(Lab &lab) { return SoftContextExperiment(lab).run(); }

} // namespace

Experiment experiments::softContextExperiment() {
  Experiment experiment;
  experiment.name = "soft-context";
  experiment.paper = "not in the paper: its equations ask nothing of where a context comes from";
  experiment.summary = "contexts that are not tokens: rows in place of a prompt's tokens, their\n"
                       "own embeddings, with noise, between two prompts, or out of a file";
  experiment.generate = 1;
  experiment.dtypes = {"f32", "bf16"};
  experiment.updates = {"least"};
  experiment.options = {{"--embeddings", "FILE.npy",
                         "soft-context: rows, as of `ctxc verify`, that come in behind each\n"
                         "prompt's first token"}};
  experiment.run = runSoftContext;
  return experiment;
}
