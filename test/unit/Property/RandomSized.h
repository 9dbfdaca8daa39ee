// Blocks too large for trials with whole matrices, with numbers that make an identity of their
// sizes: a factor is zero at the block's own sizes, and at no others.
#ifndef CTXC_TEST_UNIT_PROPERTY_RANDOMSIZED_H
#define CTXC_TEST_UNIT_PROPERTY_RANDOMSIZED_H

#include <cstdint>
#include <string>

namespace ctxc::test {

/// The text of one block, named "sized".
std::string randomSized(uint64_t seed);

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PROPERTY_RANDOMSIZED_H
