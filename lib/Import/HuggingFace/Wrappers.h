//===- Wrappers.h - models of text and of something else ------------------===//
//
// A model of text and of images or sounds consists of towers for these, and of a text model that
// stands alone elsewhere. What it does with a text is what its text model does. wrappers.json,
// which tools/describe/wrappers.py makes, says of each model type of transformers for which text
// models this holds.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_WRAPPERS_H
#define CTXC_IMPORT_WRAPPERS_H

#include "ctxc/Checkpoint/ConfigReader.h"
#include "ctxc/Import/Import.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>
#include <vector>

namespace ctxc::hf {

/// The config of the text model within `config`, as a model of that type alone has it; none where
/// `config` is no such model's, or after a problem. `around` reads what stands beside it.
std::optional<llvm::json::Object> textModelOf(const llvm::json::Object &config,
                                              ConfigReader &around);

/// Where the tensors of a text model stand in a model of the type `wrapper`, and what they would be
/// called if it stood alone: the first part of a name, such as "model.", is `first` there, and what
/// has another one, as the head, has `others` in front.
class TextPart {
public:
  TextPart() = default; ///< a model that stands alone
  TextPart(llvm::StringRef wrapper, llvm::function_ref<bool(llvm::StringRef)> anyBeginsWith);

  std::string stored(llvm::StringRef own) const;
  /// None for a tensor that is not the text model's.
  std::optional<std::string> own(llvm::StringRef stored) const;
  /// Whether it belongs to what stands beside the text model.
  bool isBeside(llvm::StringRef stored) const;
  /// Names the parameters of a module as they are stored.
  void rename(mlir::ModuleOp module) const;

private:
  std::string wrapper; ///< empty: it stands alone
  std::string first, others;
};

} // namespace ctxc::hf

#endif // CTXC_IMPORT_WRAPPERS_H
