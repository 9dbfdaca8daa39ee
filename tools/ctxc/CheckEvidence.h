//===- CheckEvidence.h - what `ctxc check` shows in numbers ---------------===//
//
// --try: each plan executed by the reference on random activations, and on random
// weights where the model has none.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_CTXC_CHECKEVIDENCE_H
#define CTXC_TOOLS_CTXC_CHECKEVIDENCE_H

#include "Session.h"
#include "ctxc/Evidence/Trial.h"

namespace ctxc::driver {

OptionSpec tryOption();

class CheckEvidence {
public:
  /// Does what the options ask for, for every group with a plan. Errors: a bad seed.
  static llvm::Expected<CheckEvidence> gather(const Arguments &arguments, Session &session,
                                              llvm::ArrayRef<VerdictGroup> groups);

  /// Adds "trial" to each of the report's groups that has one.
  void addTo(llvm::json::Value &report) const;
  void print(llvm::raw_ostream &os, llvm::ArrayRef<VerdictGroup> groups) const;
  /// Whether every plan that was tried is exact.
  bool isGood() const;

private:
  struct GroupTrial {
    Trial trial;
    std::string failure; ///< why there are no numbers; empty where there are
  };
  std::vector<std::optional<GroupTrial>> trials; ///< one a group
  std::string weights;                           ///< whose they are, in words
  uint64_t seed = 1;
};

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_CHECKEVIDENCE_H
