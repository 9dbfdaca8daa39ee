//===- PeftSettings.h - adapter_config.json, read as PEFT reads it --------===//
#ifndef CTXC_LIB_EXPORT_PEFTSETTINGS_H
#define CTXC_LIB_EXPORT_PEFTSETTINGS_H

#include "NamePattern.h"
#include "ctxc/Checkpoint/ConfigReader.h"
#include "ctxc/Export/LastingAdapter.h"

namespace ctxc {

/// What adapter_config.json says of modules, which are named as transformers names them.
class PeftSettings {
public:
  /// `text` is the file's, messages begin with `path`.
  static llvm::Expected<PeftSettings> read(std::string text, llvm::StringRef path);

  /// The key for whose sake PEFT does not change the module; empty where it does.
  llvm::Expected<llvm::StringRef> excludedBy(llvm::StringRef module) const;
  /// Whether PEFT changes each matrix there is, so that no module is named.
  bool takesAll() const { return all; }
  /// Whether the whole weight of `module` is in the adapter.
  bool saves(llvm::StringRef module) const;
  /// The names that target_parameters has.
  llvm::ArrayRef<std::string> parameters() const { return targetParameters; }
  /// Whether target_parameters has `name`, or an end of it.
  bool takesParameter(llvm::StringRef name) const;

  /// What B A is multiplied by, of a module or parameter `name` whose factors have rank `found`.
  llvm::Expected<double> factorOf(llvm::StringRef name, int64_t found) const;

private:
  /// A number by pattern, in the file's order, of which the first that fits counts.
  using ByPattern = std::vector<std::pair<NamePattern, double>>;

  llvm::Error readModules(ConfigReader &config);
  llvm::Expected<llvm::StringRef> excludedByLayer(llvm::StringRef module) const;
  llvm::Expected<std::optional<double>> numberFor(const ByPattern &numbers,
                                                  llvm::StringRef name) const;

  std::string path;
  int64_t rank = 8;
  double alpha = 8;
  bool isRootScaled = false, all = false, hasLists = false;
  ByPattern ranks, alphas;
  std::optional<NamePattern> targetPattern, excludedPattern;
  std::vector<std::string> targets, excluded, saved, targetParameters;
  std::vector<int64_t> layers;
  std::vector<NamePattern> layerPatterns, savedPatterns;
};

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_PEFTSETTINGS_H
