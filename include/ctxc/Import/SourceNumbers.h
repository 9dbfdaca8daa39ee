//===- SourceNumbers.h - what PyTorch computes by an exported program ------===//
//
// `python -m ctxc.export` runs the module that it exports, and keeps the numbers in the file
// (python/ctxc/_source_numbers.py). They are compared with ctxc's own full run of what it has read
// (Session/SelfCheck.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_SOURCENUMBERS_H
#define CTXC_IMPORT_SOURCENUMBERS_H

#include <cstdint>
#include <string>
#include <vector>

namespace ctxc {

/// Of each of some tokens `count` numbers of `width`, evenly from the first to the last.
struct SampledRows {
  int64_t width = 0, count = 0;
  std::vector<float> numbers; ///< tokens × count

  /// The place of number `i` in a row.
  int64_t place(int64_t i) const { return i * width / count; }
};

struct SourceRun {
  struct Layer {
    std::string path; ///< "model.layers.0"
    SampledRows rows;
  };
  std::vector<int64_t> tokens;
  SampledRows logits;
  std::vector<Layer> layers;
  double rounding = 0; ///< how much float32 changes a logit; 0 where it is not known
};

struct SourceNumbers {
  /// Why there is nothing to compare; empty where there are runs.
  std::string why;
  std::vector<SourceRun> runs;
  /// Whether parameters without numbers had those of selfCheckWeights.
  bool random = false;
  /// Identifies the whole file, by sizes and checksums.
  std::string file;
  /// Identifies the stored numbers that the runs were made with (ImportedModel::weightsDigest).
  std::string weights;
};

} // namespace ctxc

#endif // CTXC_IMPORT_SOURCENUMBERS_H
