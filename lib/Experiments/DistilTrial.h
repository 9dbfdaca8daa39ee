// A context, what follows it, and the ways to do without it that the distil experiment compares.
#ifndef CTXC_LIB_EXPERIMENTS_DISTILTRIAL_H
#define CTXC_LIB_EXPERIMENTS_DISTILTRIAL_H

#include "ctxc/Session/ContextsFile.h"
#include "ctxc/Session/TextsFile.h"

namespace ctxc::experiments {

/// How many tokens the model writes.
struct TrialSizes {
  int64_t fitted = 1000, judged = 200, length = 40; ///< the last: of an answer
};

/// A context with the texts of one seed.
struct Trial {
  ContextTexts context;
  std::vector<TextSequence> fitted, isProtected;
  EvaluateRequest about; ///< the texts that judge
  /// What the methods share: what the model says of the texts with the context, and without.
  std::unique_ptr<Judge> judge;
  /// Of the context's tokens, for what stays as text and in the cache; empty until they are needed.
  std::vector<double> tellingScores, readScores;
};

/// Reads the texts of `entry`, or has the model write them. What judges was written from other
/// prompts than what is fitted. It has prompts, or both kinds of texts.
llvm::Expected<Trial> makeTrial(Model &model, const ContextEntry &entry, const TrialSizes &sizes,
                                uint64_t seed);

/// A way to do without a context.
struct Method {
  llvm::StringRef name; ///< kept, cut, patches, closed or refined; cache or cache-closed: what
                        ///< stays is the keys and values of tokens
  double kept = 0;      ///< the share of the context's tokens that stays in front
  int64_t rank = 0;
  int64_t tokens = 0; ///< of the texts that are fitted; 0: all
  int64_t passes = 0;
};

struct Attempt {
  Card card;
  int64_t tokens = 0; ///< how many were fitted
  int64_t front = 0;  ///< how many of the context's stay in front
  double seconds = 0, processorSeconds = 0;
};

/// None where the method does not apply to the model: there is no mean of patches of single
/// experts.
llvm::Expected<std::optional<Attempt>> attempt(Model &model, Trial &trial, const Method &method);

} // namespace ctxc::experiments

#endif // CTXC_LIB_EXPERIMENTS_DISTILTRIAL_H
