// Blocks composed at random from all ops that the reference can run: residual streams with
// branches of every make, and graphs without any order. Small, so that thousands are tried.
#ifndef CTXC_TEST_UNIT_PROPERTY_RANDOMDAG_H
#define CTXC_TEST_UNIT_PROPERTY_RANDOMDAG_H

#include <cstdint>
#include <string>

namespace ctxc::test {

/// The text of one block, named "dag". `nasty`, it has what deceives an analysis: constants, values
/// that are computed twice, sums that cancel, norms of one entry, weights that add up to zero,
/// parameters that are computed.
std::string randomDag(uint64_t seed, bool nasty = false);

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PROPERTY_RANDOMDAG_H
