#include "ctxc/Report/JointReport.h"
#include <cmath>

using namespace ctxc;
using llvm::json::Array;
using llvm::json::Object;

/// JSON has neither infinity nor NaN.
static llvm::json::Value finiteJson(double value) {
  return std::isfinite(value) ? llvm::json::Value(value) : llvm::json::Value(nullptr);
}

Array ctxc::jointSitesJson(const JointPatch &patch, size_t directions) {
  Array sites;
  for (const JointSite &site : patch.sites) {
    Object about{{"matrix", site.matrix},
                 {"layer", site.layer},
                 {"capacity", site.capacity},
                 {"left", site.left},
                 {"change", finiteJson(site.change)},
                 {"independence", site.independence},
                 {"replayError", finiteJson(site.replayError)},
                 {"spectrum", Array(site.spectrum)}};
    if (directions) {
      Array tokens;
      for (const std::vector<double> &shares : site.shares)
        tokens.push_back(
            Array(llvm::ArrayRef(shares).take_front(std::min(directions, shares.size()))));
      about["shares"] = std::move(tokens);
    }
    sites.push_back(std::move(about));
  }
  return sites;
}

Object ctxc::jointCheckJson(const JointCheck &check) {
  return Object{{"tokens", check.tokens},
                {"difference", finiteJson(check.difference)},
                {"difference_unpatched", finiteJson(check.control)},
                {"same_token", check.agree},
                {"same_token_unpatched", check.agreeControl}};
}

llvm::json::Value ctxc::jointJson(const JointVerification &result, const VerifySettings &settings,
                                  const SetupTimes &setup, const TokenName &name,
                                  size_t directions) {
  // Steps and settings are those of every verification.
  VerifyResult steps;
  steps.steps = result.steps;
  steps.times = result.times;
  steps.ended = result.ended;
  llvm::json::Value whole = verifyJson(steps, settings, setup, name);
  Object &all = *whole.getAsObject();
  (*all.getObject("summary"))["verified"] = isVerified(result);
  all.erase("replay"); // that of patches for one token
  all["joint"] = Object{{"inFront", int64_t(settings.request.kept.size())},
                        {"tokens", result.patch.tokens},
                        {"exact", result.exact},
                        {"reread", jointCheckJson(result.reread)},
                        {"sites", jointSitesJson(result.patch, directions)}};
  return whole;
}
