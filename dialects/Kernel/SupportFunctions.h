//===- SupportFunctions.h - the C functions that kernels call -------------===//
//
// Describes the functions of ctxc/Numerics/SupportFunctions.def to kernel.call, to the lowering and
// to the linker of kernels. The parameters follow from the C declarations: `const` memory is read,
// other memory is read and written.
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
  mlir::Type type; ///< of the number, or of the memory's elements; i8 if these are no numbers in C
  bool isMemory = false, isWritten = false;
  bool isShared = false; ///< memory that is the same for all rows
};

struct Signature {
  llvm::StringRef name;
  llvm::SmallVector<Parameter> parameters;
  bool returnsAddress = false;
  bool isOfRows = false; ///< whether kernel.call calls it

  /// In a function of rows, the numbers come before the memory. Both results point into this
  /// signature, which must outlive them.
  llvm::ArrayRef<Parameter> numbers() const &;
  llvm::ArrayRef<Parameter> memory() const &;
  void numbers() const && = delete;
  void memory() const && = delete;
};
Signature signatureOf(SupportFunction function, mlir::MLIRContext *context);

/// None if there is no such function.
std::optional<SupportFunction> supportFunctionOf(llvm::StringRef name);

/// A number that is passed to a support function.
using Number = std::variant<int64_t, double>;

} // namespace ctxc::kernel

#endif // CTXC_DIALECTS_KERNEL_SUPPORTFUNCTIONS_H
