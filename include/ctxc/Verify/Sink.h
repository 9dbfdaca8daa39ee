//===- Sink.h - does attention rest on the first token of a run? -----------===//
//
// In many models attention rests on the first token of a run where there is nothing to read: its
// state becomes up to hundreds of times as long as all others, whatever token it is. Where a text
// begins with a token that every text has, the models of such texts were trained with it there. A
// reduced run of the last token alone makes that token the first, and its patch takes the giant
// back: exactly, but a program that rounds to bfloat16 rounds most of the rest away. So a run
// should keep the first token of its text (Model::keptByDefault).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_VERIFY_SINK_H
#define CTXC_VERIFY_SINK_H

#include "ctxc/Program/Executor.h"
#include <optional>

namespace ctxc {

/// A first token on which attention rests.
struct Sink {
  int64_t layer = 0; ///< whose output shows it most
  double times = 0;  ///< how often its state there is as long as the middle one of the others
};

/// The sink of a run: `lengths[l][t]` is the norm of layer l's output for its t-th token. None
/// where no layer's first is more than `longer` times as long as the middle one of the others.
std::optional<Sink> findSink(llvm::ArrayRef<std::vector<double>> lengths);

/// The norms of each layer's output for each token of a run, as findSink takes them.
using MeasureLengths = llvm::function_ref<llvm::Expected<std::vector<std::vector<double>>>(
    llvm::ArrayRef<int64_t> tokens)>;

/// The least sink of a few made-up texts, which all must have one: then the first token of every
/// run is one, and not a word of some text. Ids are below `vocabulary`, and texts have at most
/// `positions` tokens.
llvm::Expected<std::optional<Sink>> findSink(MeasureLengths measure, int64_t vocabulary,
                                             std::optional<int64_t> positions);
/// Measured by an executor.
llvm::Expected<std::vector<std::vector<double>>> lengthsOf(Executor &executor,
                                                           llvm::ArrayRef<int64_t> tokens);

} // namespace ctxc

#endif // CTXC_VERIFY_SINK_H
