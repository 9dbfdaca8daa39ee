//===- ExperimentModels.h - MODEL, opened in as many ways as one likes ----===//
#ifndef CTXC_TOOLS_CTXC_EXPERIMENTMODELS_H
#define CTXC_TOOLS_CTXC_EXPERIMENTMODELS_H

#include "Session.h"
#include "ctxc/Experiments/Lab.h"
#include <map>

namespace ctxc::driver {

/// What an experiment's models will take of memory, in bytes.
struct MemoryNeed {
  struct Weights {
    std::string dtype;
    uint64_t bytes = 0;
    bool mapped = false; ///< read where the file stores them; else a converted copy
  };
  std::vector<Weights> weights;
  uint64_t materialized = 0; ///< copies of the patched parameters, of the widest dtype
  uint64_t kernels = 0;      ///< compiler and kernels
  uint64_t total() const;
};

class ExperimentModels : public experiments::Models {
public:
  /// Plans MODEL; reads no weights yet. `options` has --weights and --threads of the command.
  static llvm::Expected<std::unique_ptr<ExperimentModels>> create(llvm::StringRef model,
                                                                  RunOptions options);

  llvm::Expected<std::unique_ptr<experiments::OpenedModel>>
  open(const experiments::Setting &setting) override;
  llvm::StringRef path() const override { return directory; }
  bool updatesDiffer() const override { return planned->settings().updateApplies; }
  int64_t layers() const override { return planned->getProgram().layers; }
  int64_t vocabulary() const override { return planned->getProgram().vocabulary; }
  bool isBidirectional() const override;
  std::string tokenText(int64_t token) override { return name(token); }
  llvm::Expected<std::vector<int64_t>> encode(llvm::StringRef text) override;
  std::string hash() const override { return modelHash; }

  bool hasTokenizer();
  /// The type in which the checkpoint stores its weights, where it is one of storageNames(); "" for
  /// .mlir models and quantised checkpoints, whose types cannot be chosen.
  llvm::StringRef storedType() const { return stored; }

  /// Of one model at a time for each of `dtypes`.
  MemoryNeed memoryNeed(llvm::ArrayRef<std::string> dtypes) const;

private:
  ExperimentModels() = default;

  std::string directory, stored, modelHash;
  RunOptions options;
  std::unique_ptr<Session> planned; ///< without weights
  TokenName name;
  std::map<std::string, std::unique_ptr<Session>> owners; ///< of the weights, by dtype
};

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_EXPERIMENTMODELS_H
