//===- VerifyReport.h - what a verification found, as text and as JSON ----===//
//
// The text is for people and is written while tokens are verified; the JSON is for
// programs and holds everything that was measured.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_REPORT_VERIFYREPORT_H
#define CTXC_REPORT_VERIFYREPORT_H

#include "ctxc/Program/RankFacts.h"
#include "ctxc/Tokenizer/TokenName.h"
#include "ctxc/Verify/Verify.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace ctxc {

/// How a verification was set up.
struct VerifySettings {
  std::string model;     ///< as the user named it
  std::string modelHash; ///< of the weights
  /// Why nothing says that an exported program was read rightly (Model::notCompared); else empty.
  std::string notCompared;
  int64_t layers = 0;
  int64_t vocabulary = 0; ///< how many numbers the output has: a model without a head has no logits
  std::string update, dtype, backend, plan;
  bool updateApplies = true;  ///< some plan patches a post-norm scale
  std::string replay = "f32"; ///< the activations' type of the program that patches are made for
  int64_t patchedLayers = 0;  ///< layers that have a plan
  int64_t threads = 0;        ///< 0: the backend's own choice
  RunRequest request;
  std::string whyKept; ///< why request.kept is kept, where nobody asked for it (KeptTokens::why)
  std::optional<Sink> sink; ///< that the token is where nothing is kept (KeptTokens::sink)
  int64_t generate = 1;
  std::string embeddingsFile; ///< of the embeddings in place of tokens; empty if there are none
  std::string patchFile;      ///< empty if patches are computed
  std::string patchFactors;   ///< the type of its numbers, unless that is float32
  double patchRounding = 0;   ///< the relative error of rounding to that type (roundingOf)
  std::optional<double> tolerance; ///< L∞ above which a token counts as a mismatch
  std::vector<RankFacts> ranks;    ///< after the run, if several ranks share the model
};

/// Seconds before the first token.
struct SetupTimes {
  double import = 0, plan = 0, compile = 0;
};

/// A line that says why nothing shows that the model was read rightly; empty where something does.
std::string notComparedLine(const VerifySettings &settings);

/// "512 tokens in the vocabulary", or that there is no head.
std::string outputText(const VerifySettings &settings, bool hasHead);

/// `text` on one line in at most `columns` columns: control characters and bytes
/// that are not UTF-8 become \xNN, a longer text is cut with "…", a shorter one is padded
/// with spaces if `pad`.
std::string fitColumns(llvm::StringRef text, unsigned columns, bool pad = true);

/// Why tokens are kept that nobody asked for, on lines that begin with `indent`; empty where none
/// are.
std::string whyKeptText(const VerifySettings &settings, llvm::StringRef indent);

/// Ascending positions as people write them: "0-3, 7".
std::string positionsText(llvm::ArrayRef<int64_t> positions);

/// Writes the text report piece by piece; at most 100 columns.
class VerifyText {
public:
  VerifyText(llvm::raw_ostream &os, const VerifySettings &settings, TokenName name)
      : os(os), settings(settings), name(std::move(name)) {}

  void begin();
  void step(const VerifyStep &step);
  /// `text`: the generated text, empty if there is no tokenizer.
  void end(const VerifyResult &result, const SetupTimes &times, llvm::StringRef text);

private:
  void mark(bool good);
  void outcome(const VerifySummary &summary);
  void states(const VerifyResult &result, const VerifySummary &summary);
  llvm::raw_ostream &os;
  const VerifySettings &settings;
  TokenName name;
  int64_t count = 0;
};

/// Whether the run is a success: every token is the full run's, and none is
/// beyond the settings' tolerance.
bool isVerified(const VerifySummary &summary, const VerifySettings &settings);

/// The whole report. Numbers that are not finite are null.
llvm::json::Value verifyJson(const VerifyResult &result, const VerifySettings &settings,
                             const SetupTimes &times, const TokenName &name);

} // namespace ctxc

#endif // CTXC_REPORT_VERIFYREPORT_H
