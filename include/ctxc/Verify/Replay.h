//===- Replay.h - what a patch's roundings are in another program ----------===//
//
// A patch is made with activations in float32. Whoever replays it in a program whose activations
// have a narrower type rounds what the patched layers compute, and most where the patch takes a
// large part of it back.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_VERIFY_REPLAY_H
#define CTXC_VERIFY_REPLAY_H

#include "ctxc/Verify/Sink.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace ctxc {

/// The predicted error of the layer whose output it changes most, relative to that output.
struct ReplayError {
  double error = 0, relative = 0;
  int64_t layer = 0;
};

/// Above this share of a layer's output, a program may well choose other tokens.
constexpr double mostReplayError = 0.05;

/// The unit roundoff of activations in "f32", "bf16" or "f16".
double roundoffOf(llvm::StringRef type);

/// From each layer's predicted error in float32 and its output's norm. A narrower type also rounds
/// the output itself, in either program. `sink` is what the token is in a reduced run that keeps
/// nothing: the patch takes that giant back, and its roundings stay.
ReplayError replayErrorIn(llvm::StringRef type, llvm::ArrayRef<double> errors,
                          llvm::ArrayRef<double> outputNorms,
                          const std::optional<Sink> &sink = std::nullopt);
ReplayError larger(const ReplayError &a, const ReplayError &b);

/// Why a replay with activations of that type may be wrong, as a clause; empty where it will not.
std::string replayWarning(llvm::StringRef type, const ReplayError &error);

} // namespace ctxc

#endif // CTXC_VERIFY_REPLAY_H
