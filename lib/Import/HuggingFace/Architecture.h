//===- Architecture.h - what a checkpoint was trained for -------------------===//
#ifndef CTXC_IMPORT_ARCHITECTURE_H
#define CTXC_IMPORT_ARCHITECTURE_H

#include "StoredTensors.h"

namespace ctxc::hf {

enum class Task {
  Unknown,
  Tokens, ///< it has a head that gives logits of tokens
  Base,   ///< it ends with the last hidden state
  Other   ///< it has a head that gives something else, such as classes
};

/// The task of the class that config.json's `architectures` names first.
Task taskOf(const llvm::json::Object &config);

/// Whether a model is read with the head that gives logits of tokens: where one `isStored`, where
/// the checkpoint's class has one, and where that is not known, if the head `isEmbedding` or there
/// are no files to look at. Where the class has one that is not stored, it is missing.
bool readsHead(Task task, const StoredTensors &tensors, bool isStored, bool isEmbedding);

/// The tensors of a head of another task, which is left out: those that do not have the base
/// model's prefix.
class OtherHead {
public:
  OtherHead(Task task, bool readsHead, llvm::StringRef prefix)
      : prefix(prefix), isThere(task == Task::Other && !readsHead && !prefix.empty()) {}
  /// Whether it is one of them; they are counted.
  bool takes(llvm::StringRef name);
  /// What a user should know of it; empty where there is none.
  std::string warning(const llvm::json::Object &config, llvm::StringRef path) const;

private:
  std::string prefix, one;
  bool isThere;
  size_t count = 0;
};

/// What a user should know of a tied head that is stored, and is another matrix.
std::string ownHeadWarning(llvm::StringRef path);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_ARCHITECTURE_H
