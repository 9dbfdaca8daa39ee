//===- RankFacts.h - what a rank of a sharded model holds and has sent ----===//
#ifndef CTXC_PROGRAM_RANKFACTS_H
#define CTXC_PROGRAM_RANKFACTS_H

#include <cstdint>

namespace ctxc {

struct RankFacts {
  int64_t firstLayer = 0,
          endLayer = 0;      ///< its layers, [first, end); empty if it has only the head
  int64_t weightBytes = 0;   ///< that a token reads
  int64_t residentBytes = 0; ///< of its process, mapped files included; 0 if not known
  int64_t streamBytes = 0;   ///< of the values that it sent to the next stage
  int64_t sharedBytes = 0;   ///< of the values that it sent to the ranks that share its layers
  int64_t sentBytes = 0;     ///< of all its messages
};

} // namespace ctxc

#endif // CTXC_PROGRAM_RANKFACTS_H
