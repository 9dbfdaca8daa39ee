//===- SupportFunctions.h - the C functions that kernels call -------------===//
//
// What kernel.call, the lowering and the linker of kernels know of the functions of
// ctxc/Numerics/SupportFunctions.def. The parameters are those of the C declarations: `const`
// memory is read, other memory is read and written.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_DIALECTS_KERNEL_SUPPORTFUNCTIONS_H
#define CTXC_DIALECTS_KERNEL_SUPPORTFUNCTIONS_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <variant>

namespace ctxc::kernel {

enum class SupportFunction {
#define CTXC_SUPPORT_FUNCTION(name) name,
#include "ctxc/Numerics/SupportFunctions.def"
};

struct Parameter {
  mlir::Type type; ///< of the number, or of the memory's elements; i8 where C has no number
  bool isMemory = false, isWritten = false;
  bool isShared = false; ///< memory that is the same for all rows
};

struct Signature {
  llvm::StringRef name;
  llvm::SmallVector<Parameter> parameters;
  bool returnsAddress = false;
  bool isOfRows = false; ///< whether kernel.call calls it

  /// The parameters that are numbers come first in a function of rows. Both are parts of this
  /// signature, which is to be kept.
  llvm::ArrayRef<Parameter> numbers() const &;
  llvm::ArrayRef<Parameter> memory() const &;
  void numbers() const && = delete;
  void memory() const && = delete;
};
Signature signatureOf(SupportFunction function, mlir::MLIRContext *context);

/// None where there is no such function.
std::optional<SupportFunction> supportFunctionOf(llvm::StringRef name);

/// A number that is passed to a support function.
using Number = std::variant<int64_t, double>;

} // namespace ctxc::kernel

#endif // CTXC_DIALECTS_KERNEL_SUPPORTFUNCTIONS_H
