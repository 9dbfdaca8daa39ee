#include "SelfCheck.h"
#include "CompletedWeights.h"
#include "Use.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Lowering/KernelCache.h"
#include "ctxc/Program/Program.h"
#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Runtime/Shard/Ranks.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/UserCache.h"
#include "ctxc/Transforms/BuildProgram.h"
#include "dialects/Graph/Graph.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SHA256.h"
#include <cmath>
#include <map>

using namespace ctxc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Numbers that both sides can make
//===----------------------------------------------------------------------===//

namespace {
class SelfCheckWeights : public Weights {
public:
  Expected<const void *> get(StringRef name, mlir::RankedTensorType type) override {
    DType dtype = storageOf(type.getElementType());
    std::string key = (name + " " + nameOf(dtype)).str();
    auto [known, isNew] = made.try_emplace(key);
    if (!isNew)
      return known->second.data();
    int64_t count = type.getNumElements();
    llvm::SmallVector<int64_t> sizes;
    llvm::copy_if(type.getShape(), std::back_inserter(sizes),
                  [](int64_t size) { return size > 1; });
    const double width = sizes.size() > 1 ? std::sqrt(3.0 / double(sizes.back())) : 0.5;
    uint64_t state = 0xcbf29ce484222325u ^ seed;
    for (char byte : name)
      state = (state ^ uint8_t(byte)) * 0x100000001b3u;
    std::vector<float> numbers(count);
    for (int64_t i = 0; i < count; ++i) {
      uint64_t mixed = mix(uint64_t(i + 1) * 0x9e3779b97f4a7c15u + state);
      numbers[i] = float((double(mixed >> 11) * 0x1p-52 - 1) * width);
    }
    known->second.resize(bytesOf(dtype, count));
    writeFloats(dtype, numbers, known->second.data());
    return known->second.data();
  }
  Expected<std::string> hash() override { return "self-check"; }

private:
  static constexpr uint64_t seed = 1;
  /// SplitMix64's.
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::map<std::string, std::vector<uint8_t>> made;
};
} // namespace

std::unique_ptr<Weights> ctxc::selfCheckWeights() { return std::make_unique<SelfCheckWeights>(); }

//===----------------------------------------------------------------------===//
// The comparison
//===----------------------------------------------------------------------===//

/// The op that nothing computes; empty where all can be run.
static std::string withoutNumerics(mlir::ModuleOp module) {
  std::string found;
  module.walk([&](mlir::Operation *op) {
    bool isInside = llvm::isa_and_nonnull<xf::BlockOp, xf::ModelOp>(op->getParentOp());
    if (!found.empty() || !isInside || op->hasTrait<mlir::OpTrait::IsTerminator>() ||
        llvm::isa<xf::LayerOp, reference::ReferenceOpInterface>(op) || graph::FunctionOp::ofOp(op))
      return;
    auto opaque = llvm::dyn_cast<graph::OpaqueOp>(op);
    auto why = op->getAttrOfType<mlir::StringAttr>(graph::FunctionOp::whyName);
    found = (opaque ? opaque.getTarget()
             : why  ? why.getValue()
                    : op->getName().getStringRef())
                .str();
  });
  return found;
}

namespace {
/// By how much rows of ctxc differ from its source's, and the largest number of these.
struct Difference {
  double most = 0, largest = 0;

  void add(const SampledRows &rows, llvm::ArrayRef<double> found, int64_t tokens) {
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t i = 0; i < rows.count; ++i) {
        double expected = rows.numbers[t * rows.count + i];
        double difference = std::abs(found[t * rows.width + rows.place(i)] - expected);
        largest = std::max(largest, std::abs(expected));
        most = std::isfinite(difference) ? std::max(most, difference) : INFINITY;
      }
  }
  /// What rounding explains: PyTorch has computed in float32 or, then with how much that changes,
  /// in float64; ctxc rounds constants alone.
  double explained(double rounding) const { return 8 * rounding + 2e-5 * largest; }
};

std::string shown(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g", number);
  return text;
}

/// One run, and the layers that differ in it.
class Comparison {
public:
  Comparison(const Program &program, Executor &executor, const SourceRun &run)
      : program(program), executor(executor), run(run) {}

  /// Text: why there is nothing to compare.
  Expected<std::string> compare(StringRef name);

private:
  void hear(int64_t index, llvm::ArrayRef<double> rows);

  const Program &program;
  Executor &executor;
  const SourceRun &run;
  int64_t compared = 0;
  std::string first, before; ///< the first layer that differs, and the last one before it
};
} // namespace

void Comparison::hear(int64_t index, llvm::ArrayRef<double> rows) {
  for (ProgramStep step : program.steps) {
    if (step.index != index || !first.empty())
      continue;
    StringRef path = step.layer.getPrefix();
    path.consume_back(".");
    for (const SourceRun::Layer &layer : run.layers) {
      const int64_t tokens = run.tokens.size();
      if (layer.path != path || layer.rows.width * tokens != int64_t(rows.size()))
        continue;
      Difference difference;
      difference.add(layer.rows, rows, tokens);
      ++compared;
      // How much rounding changes a layer's output is not known.
      (difference.most > 1e-4 * difference.largest ? first : before) = layer.path;
    }
  }
}

Expected<std::string> Comparison::compare(StringRef name) {
  const int64_t tokens = run.tokens.size();
  if (program.positions && tokens > *program.positions)
    return "its source's numbers are for " + std::to_string(tokens) +
           " tokens, and it is read for at most " + std::to_string(*program.positions);
  std::vector<int64_t> positions(tokens);
  for (int64_t i = 0; i < tokens; ++i)
    positions[i] = i;
  auto state = executor.start(tokens);
  ForwardOptions options;
  options.allLogits = true;
  options.observer = [&](int64_t index, llvm::ArrayRef<double> rows, int64_t) {
    hear(index, rows);
  };
  auto logits = executor.forward(*state, llvm::ArrayRef<int64_t>(run.tokens), positions, options);
  std::string what = (name + ": was not read rightly: ").str();
  if (!logits)
    return "it cannot be run: " + llvm::toString(logits.takeError());
  if (int64_t(logits->size()) != tokens * run.logits.width)
    return makeError(what + "ctxc gives " + llvm::Twine(logits->size() / tokens) +
                     " logits for a token, and its source " + llvm::Twine(run.logits.width));
  Difference difference;
  difference.add(run.logits, *logits, tokens);
  if (difference.most <= difference.explained(run.rounding))
    return "";
  std::string where;
  if (!first.empty())
    where = "; the first layer whose output differs is '" + first + "'";
  else if (compared)
    where = "; the layers' outputs are its source's up to '" + before + "'";
  return makeError(
      what + "of " + llvm::Twine(tokens) + " tokens a logit differs by " + shown(difference.most) +
      " from its source's, of which the largest is " + shown(difference.largest) +
      ", and rounding explains " + shown(difference.explained(run.rounding)) + where +
      ". This is an error of ctxc, which would make its verdicts and patches wrong: "
      "please report it. Without the comparison with its source it is used all the same");
}

Expected<std::string> ctxc::compareWithSource(StringRef name, mlir::ModuleOp module,
                                              Weights &weights, const SourceNumbers &numbers) {
  if (std::string lacking = withoutNumerics(module); !lacking.empty())
    return "nothing here computes '" + lacking + "'";
  mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
  std::string said;
  mlir::ScopedDiagnosticHandler handler(module.getContext(), [&](mlir::Diagnostic &diagnostic) {
    said = diagnostic.str();
    return mlir::success();
  });
  auto noPlan = [](xf::LayerOp, xf::BlockOp, int64_t) { return std::optional<BlockPlan>(); };
  mlir::FailureOr<Program> program = buildProgram(*copy, noPlan, patch::UpdateKind::least);
  if (mlir::failed(program))
    return "it cannot be made ready to run: " + said;
  std::unique_ptr<Executor> executor = createReferenceExecutor(*program, weights);
  for (const SourceRun &run : numbers.runs) {
    Expected<std::string> why = Comparison(*program, *executor, run).compare(name);
    if (!why || !why->empty())
      return why;
  }
  return "";
}

std::string ctxc::keyOfComparison(mlir::ModuleOp module, const SourceNumbers &numbers) {
  std::string text = "ctxc numbers 1\n" + numbers.file + "\n";
  llvm::raw_string_ostream os(text);
  module.print(os);
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

/// The comparisons that succeeded, beside the kernels that were compiled; off if these are.
static UserCache comparisons() {
  return UserCache(KernelCache::ofUser().isOn() ? userCacheDirectory() + "/comparisons" : "");
}

Error Model::compareWithSource(const ImportedModel &read) {
  bool isFirst = !settings.ranks || settings.ranks->rank() == 0;
  if (!read.source || isReopened || !isFirst || module().getOps<xf::ModelOp>().empty())
    return Error::success();
  auto tell = [&](const llvm::Twine &why) {
    whyNotCompared = why.str();
    handle(
        {Place(),
         mlir::DiagnosticSeverity::Warning,
         path +
             ": was not compared with its source, so that nothing says that it was read rightly: " +
             whyNotCompared,
         "",
         {}});
    return Error::success();
  };
  if (!settings.selfCheck)
    return tell("the comparison with its source was turned off");
  if (!read.source->why.empty())
    return tell("it has none of its source's numbers: " + read.source->why);
  UserCache known = comparisons();
  std::string key = keyOfComparison(module(), *read.source);
  if (known.find(key))
    return Error::success();
  // A check reads no weights, and this does.
  Expected<ImportedModel> whole = [&] {
    mlir::ScopedDiagnosticHandler heardBefore(mlirContext.get(), [](mlir::Diagnostic &diagnostic) {
      return mlir::success(diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error);
    });
    return importModel(path, *mlirContext);
  }();
  if (!whole)
    return whole.takeError();
  if (whole->weightsDigest != read.source->weights)
    return tell("its weights are not those that its source's numbers in it were computed with");
  std::unique_ptr<Weights> weights = read.source->random ? selfCheckWeights()
                                     : whole->checkpoint ? checkpointWeights(*whole->checkpoint)
                                                         : selfCheckWeights();
  if (whole->constants)
    weights = completedWeights(std::move(weights),
                               read.source->random ? nullptr : whole->checkpoint.get(),
                               *whole->constants);
  Expected<std::string> why = ctxc::compareWithSource(path, module(), *weights, *read.source);
  if (!why)
    return why.takeError();
  if (!why->empty())
    return tell(*why);
  known.insert(key, "as PyTorch's\n");
  return Error::success();
}
