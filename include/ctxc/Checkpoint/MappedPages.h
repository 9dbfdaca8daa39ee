//===- MappedPages.h - releases memory of mapped files --------------------===//
#ifndef CTXC_CHECKPOINT_MAPPEDPAGES_H
#define CTXC_CHECKPOINT_MAPPEDPAGES_H

#include <cstdint>

namespace ctxc {

/// Gives the pages of these bytes back to the system if they belong to a mapped file: if they are
/// read again, the system maps them again from its page cache. Other memory is left alone.
void giveBackMappedPages(const uint8_t *data, uint64_t bytes);

/// Keeps the neighbours of these bytes in a mapped file out of memory until they are read: the
/// large pages at the two ends are mapped as small pages, the others stay large. Other memory is
/// left alone.
void mapWithoutNeighbours(const uint8_t *data, uint64_t bytes);

} // namespace ctxc

#endif // CTXC_CHECKPOINT_MAPPEDPAGES_H
