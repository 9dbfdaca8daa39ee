//===- SlotOrder.h - whether the order of what is selected matters ---------===//
#ifndef CTXC_IMPORT_SLOTORDER_H
#define CTXC_IMPORT_SLOTORDER_H

#include "ctxc/Analysis/TokenAxes.h"

namespace ctxc::pt2 {

/// Whether no result of the program depends on the order in which `topk`, a selection along the
/// last axis, gives what it selects: all that is computed of it goes slot by slot, or sums over the
/// slots.
bool ignoresSlotOrder(graph::CallOp topk, const TokenAxes &axes);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_SLOTORDER_H
