//===- AttentionTiles.h - how attention divides its KV slots ---------------===//
#ifndef CTXC_LOWERING_ATTENTIONTILES_H
#define CTXC_LOWERING_ATTENTIONTILES_H

#include <cstdint>

namespace ctxc {

/// Attention on the processor sums over tiles of this many KV slots, from the first slot of the
/// state on. A tile of which a row sees no slot does not change the result, so a state may begin
/// with the first tile that its rows see.
constexpr int64_t slotsOfTile = 128;

} // namespace ctxc

#endif // CTXC_LOWERING_ATTENTIONTILES_H
