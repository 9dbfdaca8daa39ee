// The name of an op in a drawing.
#ifndef CTXC_LIB_REPORT_OPTEXT_H
#define CTXC_LIB_REPORT_OPTEXT_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace ctxc {

/// Names of values as the user wrote them: an importer's, or those of the .mlir file, which
/// MLIR forgets and this reads again at the op's place.
class ValueNames {
public:
  /// "down_proj"; empty where none is known.
  std::string name(mlir::Operation *op);

private:
  llvm::StringRef line(llvm::StringRef file, unsigned number);
  llvm::StringMap<std::string> files; ///< their content, empty where there is none
};

/// "normalize rms", "softcap at 30", "contextual attention": the op's name and those of its
/// words that distinguish it from others, as it is printed.
std::string opText(mlir::Operation *op);

/// "8×16" of a tensor, empty for a number.
std::string shapeText(mlir::Value value);

} // namespace ctxc

#endif // CTXC_LIB_REPORT_OPTEXT_H
