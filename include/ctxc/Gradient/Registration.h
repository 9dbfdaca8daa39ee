//===- Registration.h - gives ops their gradients -------------------------===//
#ifndef CTXC_GRADIENT_REGISTRATION_H
#define CTXC_GRADIENT_REGISTRATION_H

#include "mlir/IR/DialectRegistry.h"

namespace ctxc {

/// Gives the ops of xf their gradients (DifferentiableOpInterface). Those of mixtures, convolutions
/// and scans have none.
void registerGradientModels(mlir::DialectRegistry &registry);

} // namespace ctxc

#endif // CTXC_GRADIENT_REGISTRATION_H
