// Blocks composed at random from all ops that the reference can run: residual streams with
// branches of every make, and graphs without any order. Small, so that thousands are tried.
#ifndef CTXC_TEST_UNIT_PROPERTY_RANDOMDAG_H
#define CTXC_TEST_UNIT_PROPERTY_RANDOMDAG_H

#include <cstdint>
#include <string>

namespace ctxc::test {

/// The text of one block, named "dag".
std::string randomDag(uint64_t seed);

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PROPERTY_RANDOMDAG_H
