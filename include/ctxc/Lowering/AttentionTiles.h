//===- AttentionTiles.h - how attention divides its KV slots ---------------===//
#ifndef CTXC_LOWERING_ATTENTIONTILES_H
#define CTXC_LOWERING_ATTENTIONTILES_H

#include <cstdint>

namespace ctxc {

/// Attention on the processor sums tile by tile of so many KV slots, from the first slot of the
/// state on. A tile of which a row sees nothing changes nothing: a state may begin with any tile
/// that its rows see.
constexpr int64_t slotsOfTile = 128;

} // namespace ctxc

#endif // CTXC_LOWERING_ATTENTIONTILES_H
