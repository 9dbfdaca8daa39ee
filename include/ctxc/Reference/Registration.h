//===- Registration.h - gives ops their meaning in the reference ----------===//
#ifndef CTXC_REFERENCE_REGISTRATION_H
#define CTXC_REFERENCE_REGISTRATION_H

#include "mlir/IR/DialectRegistry.h"

namespace ctxc {

/// Gives the ops of xf and patch their meaning (ReferenceOpInterface).
void registerReferenceModels(mlir::DialectRegistry &registry);

} // namespace ctxc

#endif // CTXC_REFERENCE_REGISTRATION_H
