#include "ctxc/Numerics/ExpertGroups.h"
#include <algorithm>

void ctxc_group_by_expert(const int32_t *selected, int64_t count, int64_t experts,
                          int64_t *products, int64_t *places, int64_t *begins) {
  // First the number of products of each expert, one entry further on; then where they begin. An
  // entry counts up while places are given, from its expert's beginning to the next one's.
  std::fill_n(begins, experts + 1, 0);
  for (int64_t i = 0; i < count; ++i)
    ++begins[selected[i] + 1];
  for (int64_t e = 0; e < experts; ++e)
    begins[e + 1] += begins[e];
  for (int64_t i = 0; i < count; ++i) {
    places[i] = begins[selected[i]]++;
    products[places[i]] = i;
  }
  std::copy_backward(begins, begins + experts, begins + experts + 1);
  begins[0] = 0;
}
