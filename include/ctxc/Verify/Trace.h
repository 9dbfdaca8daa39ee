//===- Trace.h - the layer at which two runs begin to differ --------------===//
//
// If logits differ, a trace shows at which layer the difference starts: it compares the outputs of
// every layer in two runs of one token, layer after layer. The pairs are (full, patched) and (full,
// control). If a second executor is given, each run of the first is also compared with the same run
// of the second: (compiled full, reference full), (compiled patched, reference patched).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_VERIFY_TRACE_H
#define CTXC_VERIFY_TRACE_H

#include "ctxc/Program/Executor.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

namespace ctxc {

/// The outputs of a run's layers for one token, by layer; −1 is the embedding.
class LayerRecord {
public:
  /// Records the last token's output of each layer. The record must outlive the observer.
  LayerObserver observer();
  const std::map<int64_t, std::vector<double>> &outputs() const { return rows; }

private:
  std::map<int64_t, std::vector<double>> rows;
};

/// One layer of two runs.
struct TraceLine {
  int64_t layer = 0;
  double linf = 0;      ///< max |a − b|; infinite if one of them is not finite
  double magnitude = 0; ///< max |a|, finite entries
  bool apart = false;   ///< linf > tolerance · magnitude
};

/// Compares the layers that both records have, in order.
std::vector<TraceLine> compareLayers(const LayerRecord &a, const LayerRecord &b, double tolerance);

/// Collects comparisons as they are made; written out at the end.
class Trace {
public:
  /// `tolerance` is relative to a layer's largest output. `second`, which may be
  /// null, is another executor of the same program and weights.
  explicit Trace(double tolerance, std::string firstName = "", Executor *second = nullptr,
                 std::string secondName = "")
      : tolerance(tolerance), firstName(std::move(firstName)), secondName(std::move(secondName)),
        other(second) {}

  /// The second executor; null if there is none.
  Executor *second() const { return other; }
  const std::string &first() const { return firstName; }
  const std::string &secondExecutor() const { return secondName; }

  /// Adds the comparison of one step's runs `a` and `b`.
  void add(int64_t position, std::string a, const LayerRecord &recordA, std::string b,
           const LayerRecord &recordB);

  /// One line for each layer, a JSON object: position, runs, layer, linf, magnitude, apart.
  void write(llvm::raw_ostream &os) const;

  /// One line for each pair: `full | patched: together in all 18 layers (worst 3.1e-07 in
  /// layer 4)` or `full | control: part at layer 0 (L∞ 1.2, largest 3.4)`, for the first step at
  /// which they differ, or, if they never do, for the worst step.
  void summarize(llvm::raw_ostream &os) const;

private:
  struct Entry {
    int64_t position;
    std::string a, b;
    std::vector<TraceLine> lines;
  };
  double tolerance;
  std::string firstName, secondName;
  Executor *other;
  std::vector<Entry> entries;
};

} // namespace ctxc

#endif // CTXC_VERIFY_TRACE_H
