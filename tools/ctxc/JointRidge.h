//===- JointRidge.h - from exact on a text to lasting: ctxc patch --ridge -===//
#ifndef CTXC_TOOLS_CTXC_JOINTRIDGE_H
#define CTXC_TOOLS_CTXC_JOINTRIDGE_H

#include "OpenedContext.h"
#include "ctxc/Distil/Joint.h"

namespace ctxc::driver {

/// --ridge and --held-out.
std::vector<OptionSpec> ridgeOptions();

/// One change of those between exact and lasting, and how it reads the text that it was made for
/// and other text.
struct RidgeRow {
  double ridge = 0; ///< 0: exact
  JointCheck own;
  std::optional<TokenGroup> other; ///< with --held-out
};

/// What --ridge asks for.
class Ridges {
public:
  /// Errors: a value that is no strength; `best` without other text to choose by.
  static llvm::Expected<Ridges> parse(const Arguments &arguments);

  const std::vector<double> &strengths() const { return all; }

  /// Judges the exact change and those with a ridge. The texts of --held-out are read here. Errors:
  /// those of Model::checkJointly and Model::evaluate.
  llvm::Expected<std::vector<RidgeRow>> judge(const Arguments &arguments, Opened &opened,
                                              const JointPatch &patch,
                                              const JointRequest &request) const;
  /// Which row is written.
  size_t choose(llvm::ArrayRef<RidgeRow> rows) const;

private:
  std::vector<double> all;          ///< above 0, ascending
  std::optional<double> chosen = 0; ///< none: the best of all
};

std::string ridgesText(llvm::ArrayRef<RidgeRow> rows, size_t chosen);
llvm::json::Array ridgesJson(llvm::ArrayRef<RidgeRow> rows);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_JOINTRIDGE_H
