// How large patches are, layer by layer and token by token: "the required patches are generally
// sparse and low-magnitude".
#include "Experiments.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::json::Array;
using llvm::json::Object;

namespace {

/// The smallest share of a vector's entries that has 90 % of its squared norm: 0.9 where all have
/// the same size, near 0 where a few entries dominate.
double share(ArrayRef<double> vector) {
  std::vector<double> squares;
  double total = 0, sum = 0;
  for (double entry : vector)
    squares.push_back(entry * entry), total += entry * entry;
  llvm::sort(squares, std::greater<double>());
  size_t count = 0;
  while (count < squares.size() && sum < 0.9 * total)
    sum += squares[count++];
  return squares.empty() ? 0 : double(count) / double(squares.size());
}

/// Sums of one layer, and how many there are of each.
struct Shares {
  double outputs = 0, inputs = 0, vectors = 0;
  int64_t matrixCount = 0, vectorCount = 0;
};

class Norms {
public:
  explicit Norms(Lab &lab) : lab(lab) {}

  Error run() {
    lab.progress.expect(lab.dtypes.size() * lab.updates.size() * lab.prompts.size() * lab.generate);
    for (const std::string &dtype : lab.dtypes) {
      continued.assign(lab.prompts.size(), {});
      for (const std::string &update : lab.updates)
        if (Error error = run(dtype, update))
          return error;
    }
    return Error::success();
  }

private:
  std::string keyOf(size_t prompt, llvm::StringRef dtype, llvm::StringRef update,
                    int64_t step) const {
    return key({{"prompt", std::to_string(prompt)},
                {"dtype", dtype.str()},
                {"update", update.str()},
                {"step", std::to_string(step)}});
  }

  Error run(const std::string &dtype, const std::string &update) {
    lab.progress.begin(dtype + " " + update);
    std::unique_ptr<ReadyModel> model;
    for (size_t prompt = 0; prompt < lab.prompts.size(); ++prompt) {
      if (llvm::all_of(llvm::seq<int64_t>(0, lab.generate), [&](int64_t step) {
            return lab.records.has(keyOf(prompt, dtype, update, step));
          })) {
        lab.progress.advance(lab.generate, /*skipped=*/true);
        continue;
      }
      if (!model) {
        auto opened = lab.open({dtype, update});
        if (!opened)
          return opened.takeError();
        model = std::move(*opened);
      }
      if (Error error = run(*model, dtype, update, prompt))
        return error;
    }
    return Error::success();
  }

  Error run(ReadyModel &model, const std::string &dtype, const std::string &update, size_t prompt) {
    // The full run does not depend on the update. One more token names the last prediction.
    std::vector<int64_t> &tokens = continued[prompt];
    if (tokens.empty()) {
      auto made = continueGreedily(model.executor(), lab.prompts[prompt], lab.generate + 1);
      if (!made)
        return made.takeError();
      tokens = std::move(*made);
    }
    int64_t first = lab.prompts[prompt].tokens.size() - 1;
    int64_t count = std::min<int64_t>(lab.generate, tokens.size() - first);
    return patchLast(
        model.executor(), ArrayRef(tokens).take_front(first + count), lab.prompts[prompt].kept,
        count,
        [&](int64_t position, const Patch &patch, ArrayRef<LayerObligations> obligations,
            ArrayRef<double> replayError) -> Error {
          int64_t next = position + 1 < int64_t(tokens.size()) ? tokens[position + 1] : -1;
          Object record = tokenJson(lab, position, tokens[position], next);
          record["prompt"] = static_cast<int64_t>(prompt);
          record["step"] = position - first;
          record["dtype"] = dtype;
          record["update"] = update;
          if (Error error = describe(record, model, patch))
            return error;
          Array replay;
          for (double each : replayError)
            replay.push_back(number(each));
          record["replayError"] = std::move(replay);
          int64_t harmful = 0;
          for (const LayerObligations &layer : obligations)
            harmful += layer.harmful;
          record["harmful"] = harmful;
          lab.progress.advance();
          return lab.records.add(keyOf(prompt, dtype, update, position - first), std::move(record));
        });
  }

  /// Norms of each layer and of all; shares of each layer.
  Error describe(Object &record, ReadyModel &model, const Patch &patch) {
    int64_t layers = lab.layers;
    auto table = measure(patch, layers, model.norms());
    if (!table)
      return table.takeError();
    merge(record, normJson(table->total));
    Array matrix, matrixRelative, vector, vectorRelative;
    for (const PatchNorm &norm : table->layers) {
      matrix.push_back(number(norm.matrix));
      matrixRelative.push_back(number(norm.matrixRelative));
      vector.push_back(number(norm.vector));
      vectorRelative.push_back(number(norm.vectorRelative));
    }
    std::vector<Shares> shares(layers);
    for (const ParameterPatch &each : patch.parameters) {
      int64_t layer = model.norms().layerOf(each.parameter);
      if (layer >= 0)
        add(shares[layer], each);
    }
    Array outputs, inputs, vectors;
    for (const Shares &each : shares) {
      outputs.push_back(each.matrixCount ? number(each.outputs / each.matrixCount) : nullptr);
      inputs.push_back(each.matrixCount ? number(each.inputs / each.matrixCount) : nullptr);
      vectors.push_back(each.vectorCount ? number(each.vectors / each.vectorCount) : nullptr);
    }
    record["layers"] =
        Object{{"matrix", std::move(matrix)},      {"matrixRelative", std::move(matrixRelative)},
               {"vector", std::move(vector)},      {"vectorRelative", std::move(vectorRelative)},
               {"shareU", std::move(outputs)},     {"shareV", std::move(inputs)},
               {"shareVector", std::move(vectors)}};
    return Error::success();
  }

  static void add(Shares &shares, const ParameterPatch &patch) {
    if (patch.kind == ParameterPatch::Kind::Rank1) {
      shares.outputs += share(patch.u);
      shares.inputs += share(patch.v);
      ++shares.matrixCount;
    } else {
      shares.vectors += share(patch.delta);
      ++shares.vectorCount;
    }
  }

  Lab &lab;
  std::vector<std::vector<int64_t>> continued; ///< of each prompt, with this dtype's weights
};

Error runNorms(Lab &lab) { return Norms(lab).run(); }

} // namespace

Experiment experiments::normsExperiment() {
  Experiment experiment;
  experiment.name = "norms";
  experiment.paper = "appendix, extended metrics: update norms";
  experiment.summary = "matrix and vector norms of each token's patch, layer by layer, absolute\n"
                       "and relative to the parameters; how few entries carry them";
  experiment.run = runNorms;
  return experiment;
}
