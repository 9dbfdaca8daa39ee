#include "ctxc/Verify/Replay.h"
#include "ctxc/Verify/AllowedError.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;

double ctxc::roundoffOf(llvm::StringRef type) {
  return llvm::StringSwitch<double>(type)
      .Case("bf16", bfloat16UnitRoundoff)
      .Case("f16", float16UnitRoundoff)
      .Default(float32UnitRoundoff);
}

ReplayError ctxc::replayErrorIn(llvm::StringRef type, llvm::ArrayRef<double> errors,
                                llvm::ArrayRef<double> outputNorms,
                                const std::optional<Sink> &sink) {
  const double roundoff = roundoffOf(type);
  ReplayError largest;
  for (auto [layer, error, norm] : llvm::enumerate(errors, outputNorms)) {
    double all = error * (roundoff / float32UnitRoundoff) +
                 (roundoff > float32UnitRoundoff ? 2 * roundoff * norm : 0) +
                 (sink && sink->layer == int64_t(layer) ? roundoff * sink->times * norm : 0);
    largest = larger(largest, {all, norm > 0 ? all / norm : 0, int64_t(layer)});
  }
  return largest;
}

ReplayError ctxc::larger(const ReplayError &a, const ReplayError &b) {
  return b.relative > a.relative ? b : a;
}

std::string ctxc::replayWarning(llvm::StringRef type, const ReplayError &error) {
  if (!(error.relative > mostReplayError))
    return "";
  return llvm::formatv("in a program whose activations are {0}, roundings are predicted to change "
                       "layer {1}'s output by {2:P0}, so that it may choose other tokens",
                       type, error.layer, error.relative)
      .str();
}
