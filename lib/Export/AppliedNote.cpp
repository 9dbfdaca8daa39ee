#include "AppliedNote.h"
#include "ChangedCheckpoint.h"
#include "PatchMetadata.h"
#include "ctxc/Export/ApplyPatch.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SHA256.h"

using namespace ctxc;

/// SHA-256 of the context's ids as a patch file writes them: "2,818,5279".
static std::string contextDigest(const PatchMetadata &metadata) {
  PatchMetadata context = metadata;
  context.tokens.resize(metadata.position);
  llvm::SHA256 sum;
  sum.update(metadataStrings(context).at("tokens"));
  return llvm::toHex(sum.final(), /*LowerCase=*/true);
}

/// The patched token's id; "row" for an embedding.
static std::string tokenText(const PatchMetadata &metadata) {
  int64_t token = metadata.tokens[metadata.position];
  return token == -1 ? "row" : std::to_string(token);
}

std::map<std::string, std::string> ctxc::appliedMetadata(const PatchMetadata &metadata) {
  std::map<std::string, std::string> strings = {
      {"ctxc_patched_token", tokenText(metadata)},
      {"ctxc_patched_position", std::to_string(metadata.position)},
      {"ctxc_context_sha256", contextDigest(metadata)},
      {"ctxc_original_model", metadata.modelHash}};
  std::string kept = metadataStrings(metadata).at("kept");
  if (!kept.empty())
    strings["ctxc_kept_positions"] = kept;
  return strings;
}

std::string ctxc::staleness(const PatchMetadata &metadata) {
  return llvm::formatv(
      "the patch holds for token {0} at position {1} alone, and is stale for every "
      "other",
      tokenText(metadata), metadata.position);
}

std::string ctxc::appliedReadme(const PatchMetadata &metadata, double relativeRounding,
                                bool hasOriginalReadme) {
  std::string kept = metadataStrings(metadata).at("kept");
  std::string readme = llvm::formatv(
      R"(# A patched checkpoint

ctxc made this copy of a model. It added a patch to the weights: a change that stands for a context. The patch holds for
**one token at its position**:

| | |
|---|---|
| token | {0} |
| position | {1}, counted from 0 |
| context | {1} tokens; SHA-256 of their ids, written with commas: `{2}` |
| context that is still needed | {3} |
| original weights | SHA-256 `{4}` |
| lost by rounding | {5} % of the patch |

Run that one token at that position, {6}. The logits are those
that the original model has with the whole context, but for rounding.

For every other token the patch is stale, the next one included: the model then answers neither as with the context nor as
without it. Do not generate text with these weights, and do not train them further.
)",
      tokenText(metadata), metadata.position, contextDigest(metadata),
      kept.empty() ? "none" : "the tokens at positions " + kept, metadata.modelHash,
      llvm::formatv("{0:f2}", 100 * relativeRounding).str(),
      kept.empty() ? "with nothing before it"
                   : "after the tokens that are still needed, run through the original weights");
  if (hasOriginalReadme)
    readme += "\nThe original model's own page is [" + originalReadme.str() + "](" +
              originalReadme.str() + ").\n";
  return readme;
}
