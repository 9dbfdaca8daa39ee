// The layout of a quantised matrix's blocks.
#ifndef CTXC_LIB_LOWERING_STOREDLAYOUT_H
#define CTXC_LIB_LOWERING_STOREDLAYOUT_H

#include "ctxc/Support/BlockLayouts.h"
#include "dialects/XF/XF.h"

namespace ctxc {

inline const blocks::Layout &layoutOf(xf::QuantizedType type) {
  return blocks::layouts[static_cast<size_t>(type.getFormat())];
}

/// In a GPU's memory, where blocks have their scales.
inline blocks::Layout deviceLayoutOf(xf::QuantizedType type) {
  const blocks::Layout &stored = layoutOf(type);
  return {stored.scale != blocks::Apart    ? stored
          : stored.numbers == blocks::E4M3 ? blocks::fieldsDeviceF8E4M3
                                           : blocks::fieldsBlockMXFP4,
          type.getDeviceBlockElements(), type.getDeviceBlockBytes()};
}

} // namespace ctxc

#endif // CTXC_LIB_LOWERING_STOREDLAYOUT_H
