//===- MappedPages.h - memory that mapped files take ----------------------===//
#ifndef CTXC_CHECKPOINT_MAPPEDPAGES_H
#define CTXC_CHECKPOINT_MAPPEDPAGES_H

#include <cstdint>

namespace ctxc {

/// Gives the pages of these bytes back to the system where they are a mapped file's: what is read
/// again is mapped anew, from the system's cache. Other memory is left alone.
void giveBackMappedPages(const uint8_t *data, uint64_t bytes);

/// Has what lies beside these bytes of a mapped file left out of memory where it is not read: the
/// large pages on their two ends are mapped as small ones, others whole as before. Other memory is
/// left alone.
void mapWithoutNeighbours(const uint8_t *data, uint64_t bytes);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_MAPPEDPAGES_H
