// Models composed at random: layers of several blocks, streams and side values, and a body that
// reads the context by itself, before, beside and behind its layers.
#ifndef CTXC_TEST_UNIT_PROPERTY_RANDOMMODEL_H
#define CTXC_TEST_UNIT_PROPERTY_RANDOMMODEL_H

#include <cstdint>
#include <string>

namespace ctxc::test {

/// Ops do not stand between layers, which no executor runs. Every other way from the context to the
/// logits is taken now and then.
struct RandomModel {
  std::string text;
  int64_t layers = 0;
  int64_t vocabulary = 0;
};
RandomModel randomModel(uint64_t seed);

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_PROPERTY_RANDOMMODEL_H
