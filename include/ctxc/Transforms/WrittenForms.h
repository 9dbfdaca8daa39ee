//===- WrittenForms.h - functions that are written out, as one op ----------===//
//
// Several ops may be one function that an output chain is solved through, while it stops at each of
// them: x |x| and x³ are powers, relu(x) − c relu(−x) is leaky, silu(x) − silu(−x) is x itself. A
// parameter that is read twice, in a sum, is read once by another form of it: W a + W b is
// W (a + b), and x + b + b is 2 (x / 2 + b).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TRANSFORMS_WRITTENFORMS_H
#define CTXC_TRANSFORMS_WRITTENFORMS_H

#include "mlir/IR/BuiltinOps.h"

namespace ctxc {

/// Replaces each such form in a block of `module` and erases what nothing reads any more. Values
/// stay the same but for roundings. Returns the number of replaced values.
unsigned recognizeForms(mlir::ModuleOp module);

} // namespace ctxc

#endif // CTXC_TRANSFORMS_WRITTENFORMS_H
