/*===- ExpertGroups.h - the rows of a mixture, ordered by expert --------------===*
 *
 * A mixture multiplies each vector with the experts that are selected for it. Vectors that have an
 * expert in common are multiplied together, so that the expert's matrix is read once for them all.
 *
 *===----------------------------------------------------------------------===*/
#ifndef CTXC_NUMERICS_EXPERTGROUPS_H
#define CTXC_NUMERICS_EXPERTGROUPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Orders `count` products by their experts, `selected` (0 ≤ selected[i] < experts); products of
 * the same expert keep their order. Product i gets the place `places[i]`, and `products` is the
 * inverse: products[places[i]] = i. The products of expert e have the places from `begins[e]` to
 * begins[e + 1] - 1; `begins` has experts + 1 entries. Plain C, no state. */
void ctxc_group_by_expert(const int32_t *selected, int64_t count, int64_t experts,
                          int64_t *products, int64_t *places, int64_t *begins);

#ifdef __cplusplus
}
#endif

#endif /* CTXC_NUMERICS_EXPERTGROUPS_H */
