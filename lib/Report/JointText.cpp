#include "ctxc/Report/JointReport.h"
#include "ctxc/Support/Count.h"
#include "llvm/Support/Format.h"

using namespace ctxc;

size_t ctxc::directionsOfHalf(const JointSite &site) {
  double all = 0, sum = 0;
  for (double value : site.spectrum)
    all += value * value;
  size_t half = 0;
  while (half < site.spectrum.size() && sum < all / 2)
    sum += site.spectrum[half] * site.spectrum[half], ++half;
  return half;
}

const JointSite &ctxc::largestChange(const JointPatch &patch) {
  return *llvm::max_element(
      patch.sites, [](const JointSite &a, const JointSite &b) { return a.change < b.change; });
}

std::string ctxc::jointNeedsText(const JointVerification &found, int64_t inFront,
                                 const TokenName &name) {
  constexpr size_t most = 8;
  const JointSite &site = largestChange(found.patch);
  const size_t columns = std::min(site.spectrum.size(), most);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "layer " << site.layer
     << " changes most; of what it writes for each token, the part in its "
     << "first directions, in percent\n"
     << std::string(18, ' ');
  for (size_t i = 0; i < columns; ++i)
    os << llvm::format("%6zu", i + 1);
  os << "\n";
  for (auto [i, step] : llvm::enumerate(found.steps)) {
    os << fitColumns(name(step.token), 18);
    for (double share : llvm::ArrayRef(site.shares[inFront + i]).take_front(columns))
      os << llvm::format("%6.1f", 100 * share);
    os << "\n";
  }
  return text;
}

std::string ctxc::jointSitesText(const JointPatch &patch) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "layer  rank  change  independence  replay   directions of half the change\n";
  const size_t step = std::max<size_t>(1, patch.sites.size() / 10);
  for (size_t i = 0; i < patch.sites.size(); ++i) {
    if (i % step != 0 && i + 1 != patch.sites.size())
      continue;
    const JointSite &site = patch.sites[i];
    os << llvm::format("%5lld  %4zu  %6.3f  %12.1e  %7.1e  %zu\n", (long long)site.layer,
                       site.spectrum.size(), site.change, site.independence, site.replayError,
                       directionsOfHalf(site));
  }
  return text;
}

std::string ctxc::jointCheckText(const JointCheck &check, int64_t generated) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << counted(check.tokens, "token") << " without the context";
  if (generated)
    os << ", " << generated << " of them generated";
  os << ":\n"
     << llvm::format("  patched    largest difference of a logit %.2g; likeliest token the same at "
                     "%lld of %lld\n",
                     check.difference, (long long)check.agree, (long long)check.tokens)
     << llvm::format("  unpatched  largest difference of a logit %.2g; likeliest token the same at "
                     "%lld of %lld\n",
                     check.control, (long long)check.agreeControl, (long long)check.tokens);
  return text;
}

/// The site whose `value` is the worst, as `isWorse` says.
template <typename Value, typename Worse>
static const JointSite &worst(const JointPatch &patch, Value value, Worse isWorse) {
  return *std::max_element(
      patch.sites.begin(), patch.sites.end(),
      [&](const JointSite &a, const JointSite &b) { return isWorse(b.*value, a.*value); });
}

std::string ctxc::jointObligationsText(const JointPatch &patch, int64_t inFront) {
  if (patch.sites.empty())
    return "";
  const JointSite &least = worst(patch, &JointSite::capacity, std::less<>()),
                  &nearest = worst(patch, &JointSite::independence, std::less<>()),
                  &largest = worst(patch, &JointSite::replayError, std::greater<>());
  std::string text;
  llvm::raw_string_ostream os(text);
  const JointSite &most = worst(patch, &JointSite::left, std::greater<>());
  const int64_t leaving =
      llvm::count_if(patch.sites, [](const JointSite &s) { return s.left > 0; });
  os << "capacity   " << counted(patch.tokens + inFront, "token") << " of at most "
     << least.capacity << ", which " << least.matrix << " reads as numbers\n"
     << "states     independent: at least "
     << llvm::format("%.1e of its length from the span of those before it, in layer %lld\n",
                     nearest.independence, (long long)nearest.layer);
  if (leaving)
    os << "left       " << counted(leaving, "layer") << " to the next one: " << "at most "
       << counted(most.left, "token") << ", in layer " << most.layer
       << ", whose states are combinations of others'\n";
  os << "collisions none: no two tokens read the same and should write different things\n"
     << "replay     predicted error in another program in float32: at most "
     << llvm::format("%.1e of a product, in layer %lld\n", largest.replayError,
                     (long long)largest.layer);
  return text;
}

bool ctxc::isVerified(const JointVerification &result) {
  const VerifySummary summary = summarize(llvm::ArrayRef(result.steps).take_front(result.exact));
  return summary.steps > 0 && summary.finite && summary.matches == summary.steps &&
         summary.worstLinf <= 0.01 * summary.worstControlLinf && result.reread.verified();
}

void ctxc::writeJointEnd(llvm::raw_ostream &os, const JointVerification &result,
                         const VerifySettings &settings, const SetupTimes &setup,
                         llvm::StringRef text) {
  const auto [exact, beyond] =
      std::make_pair(llvm::ArrayRef(result.steps).take_front(result.exact),
                     llvm::ArrayRef(result.steps).drop_front(result.exact));
  const VerifySummary summary = summarize(exact);
  const JointCheck &reread = result.reread;
  auto figure = [](double value) { return llvm::format("%.3g", value); };
  auto seconds = [](double value) { return llvm::format("%.2f s", value); };
  os << "\n";
  if (!text.empty())
    os << "text       " << fitColumns(text, 88, false) << "\n";
  if (result.ended)
    os << "end        the model ends its text after " << counted(result.steps.size(), "token")
       << " of at most " << settings.generate << "\n";
  os << "tokens     patched " << summary.matches << " of " << summary.steps << " match; unpatched "
     << summary.controlMatches << " of " << summary.steps << "\n"
     << "logits     L∞ patched at most " << figure(summary.worstLinf) << ", unpatched "
     << figure(summary.leastControlLinf) << " to " << figure(summary.worstControlLinf) << "\n";
  if (!beyond.empty()) {
    const VerifySummary rest = summarize(beyond);
    os << "beyond     the " << counted(beyond.size(), "token")
       << " that follow get the change for those before them: " << rest.matches
       << " match; unpatched " << rest.controlMatches << "\n           L∞ at most "
       << figure(rest.worstLinf) << ", unpatched " << figure(rest.worstControlLinf)
       << "\n           " << result.whyInexact << "\n";
  }
  os << "again      the final weights alone read the text: " << reread.agree << " of "
     << reread.tokens << " match, L∞ at most " << figure(reread.difference)
     << "\n           without them " << reread.agreeControl << " of " << reread.tokens
     << " match, L∞ at most " << figure(reread.control) << "\n"
     << jointObligationsText(result.patch, settings.request.kept.size());
  double change = 0;
  for (const JointSite &site : result.patch.sites)
    change = std::max(change, site.change);
  const RunTimes &times = result.times;
  os << "patch      " << result.patch.sites.size() << " matrices changed, by rank "
     << result.patch.adapter.rank() << ", at most " << figure(100 * change)
     << " % of a matrix's own\n"
     << "time       import " << seconds(setup.import) << ", plan " << seconds(setup.plan)
     << ", compile " << seconds(setup.compile) << ", prefill " << seconds(times.prefill) << "\n"
     << "           patch " << seconds(times.patch) << ", verify " << seconds(times.verify)
     << ", control " << seconds(times.control) << "\n\n";
  if (isVerified(result) && beyond.empty())
    os << "verified: one patch that grew with the text gives every token of the model with the "
          "context,\n          and again from the first one\n";
  else if (isVerified(result))
    os << "verified: one patch that grew with the text gives the first " << result.exact
       << " tokens of the model with the\n          context, and again from the first one\n";
  else if (summary.matches < summary.steps || !summary.finite)
    os << "not verified: " << summary.steps - summary.matches << " of "
       << counted(summary.steps, "token") << " differ while the patch grows\n";
  else if (reread.agree < reread.tokens)
    os << "not verified: " << reread.tokens - reread.agree << " of "
       << counted(reread.tokens, "token") << " differ when the final weights read them again\n";
  else
    os << "not verified: a logit differs by more than a hundredth of what the context changes\n";
}
