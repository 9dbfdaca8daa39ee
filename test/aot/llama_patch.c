/* A layer's patch: the dual kernel after a context, the applied kernel without the context. The
 * patched layer gives the full run's result. The applied kernel gives the same bits as the dual
 * kernel, whatever the number of threads, and when several threads call at the same time. Where the
 * patch cannot be exact, the status says so. */
#include "harness.h"

enum { CONTEXT = 5, VISIBLE = CONTEXT + 1, STATE = GROUPS * E };

/* The layer's weights, and the residual stream of context and token; the same for all runs. */
static weight m1, m2, wq, wk, wv, wo, wg, wu, wd;
static float *rotary, *stream;
static const int32_t slots[VISIBLE] = {0, 1, 2, 3, 4, 5}, tokens[VISIBLE];

static void make_layer(void) {
  m1 = weights(D), m2 = weights(D), wq = weights(HEADS * E * D), wk = weights(STATE * D);
  wv = weights(STATE * D), wo = weights(D * HEADS * E), wg = weights(M * D), wu = weights(M * D);
  wd = weights(D * M), rotary = numbers(E / 2), stream = numbers(VISIBLE * D);
  stream[CONTEXT * D] = 0.25f; // not zero, even where D is 1
}

/* The results of a run. */
typedef struct {
  float *keys, *values, *reduced_keys, *reduced_values, *context_out, *full, *reduced, *applied,
      *plain, *gate_u, *gate_v, *up_u, *up_v, *down_u, *down_v;
  int64_t counts[3][2];
  double replay;
  int32_t status;
} results;

static float *floats(int64_t count) { return slice(count, sizeof(float)); }
static results make_results(void) {
  results r = {floats(VISIBLE * STATE),
               floats(VISIBLE * STATE),
               floats(STATE),
               floats(STATE),
               floats(CONTEXT * D),
               floats(D),
               floats(D),
               floats(D),
               floats(D),
               floats(M),
               floats(D),
               floats(M),
               floats(D),
               floats(D),
               floats(M),
               {{0}},
               0,
               0};
  return r;
}

#define WEIGHTS(KERNEL)                                                                            \
  [KERNEL##_ARG_input_layernorm_weight] = m1.stored,                                               \
  [KERNEL##_ARG_self_attn_q_proj_weight] = wq.stored,                                              \
  [KERNEL##_ARG_self_attn_k_proj_weight] = wk.stored,                                              \
  [KERNEL##_ARG_self_attn_v_proj_weight] = wv.stored,                                              \
  [KERNEL##_ARG_self_attn_o_proj_weight] = wo.stored,                                              \
  [KERNEL##_ARG_post_attention_layernorm_weight] = m2.stored,                                      \
  [KERNEL##_ARG_mlp_gate_proj_weight] = wg.stored, [KERNEL##_ARG_mlp_up_proj_weight] = wu.stored,  \
  [KERNEL##_ARG_mlp_down_proj_weight] = wd.stored, [KERNEL##_ARG_rotary] = rotary
#define PATCH(KERNEL, R)                                                                           \
  [KERNEL##_ARG_mlp_gate_proj_weight_u] = R->gate_u,                                               \
  [KERNEL##_ARG_mlp_gate_proj_weight_v] = R->gate_v,                                               \
  [KERNEL##_ARG_mlp_up_proj_weight_u] = R->up_u, [KERNEL##_ARG_mlp_up_proj_weight_v] = R->up_v,    \
  [KERNEL##_ARG_mlp_down_proj_weight_u] = R->down_u,                                               \
  [KERNEL##_ARG_mlp_down_proj_weight_v] = R->down_v

/* Runs the ordinary layer for `rows` tokens from `first` on. */
static int32_t plain(results *r, int first, int rows, float *keys, float *values, int visible,
                     float *out, int threads) {
  void *arguments[ctxc_llama_ARGS] = {
      WEIGHTS(ctxc_llama),
      [ctxc_llama_ARG_positions] = (void *)(slots + first),
      [ctxc_llama_ARG_tokens] = (void *)tokens,
      [ctxc_llama_ARG_input_0] = stream + first * D,
      [ctxc_llama_ARG_output_0] = out,
      [ctxc_llama_ARG_state_0] = keys,
      [ctxc_llama_ARG_state_1] = values,
      [ctxc_llama_ARG_slots] = (void *)(slots + first + rows - visible),
  };
  (void)r;
  return call_kernel("ctxc_llama", arguments, rows, visible, 0, on_threads, &threads);
}

static int32_t dual(results *r, int threads) {
  float *x = stream + CONTEXT * D;
  void *arguments[ctxc_llama_dual_ARGS] = {
      WEIGHTS(ctxc_llama_dual),
      PATCH(ctxc_llama_dual, r),
      [ctxc_llama_dual_ARG_positions] = (void *)(slots + CONTEXT),
      [ctxc_llama_dual_ARG_tokens] = (void *)tokens,
      [ctxc_llama_dual_ARG_input_0] = x,
      [ctxc_llama_dual_ARG_input_1] = x,
      [ctxc_llama_dual_ARG_output_0] = r->full,
      [ctxc_llama_dual_ARG_output_1] = r->reduced,
      [ctxc_llama_dual_ARG_state_0] = r->keys,
      [ctxc_llama_dual_ARG_state_1] = r->values,
      [ctxc_llama_dual_ARG_state_2_reduced] = r->reduced_keys,
      [ctxc_llama_dual_ARG_state_3_reduced] = r->reduced_values,
      [ctxc_llama_dual_ARG_slots] = (void *)slots,
      [ctxc_llama_dual_ARG_slots_reduced] = (void *)(slots + CONTEXT),
      [ctxc_llama_dual_ARG_counts] = r->counts,
      [ctxc_llama_dual_ARG_replay] = &r->replay,
  };
  return call_kernel("ctxc_llama_dual", arguments, 1, VISIBLE, 1, on_threads, &threads);
}

static int32_t applied(results *r, int threads) {
  float keys[STATE], values[STATE];
  void *arguments[ctxc_llama_applied_ARGS] = {
      WEIGHTS(ctxc_llama_applied),
      PATCH(ctxc_llama_applied, r),
      [ctxc_llama_applied_ARG_positions] = (void *)(slots + CONTEXT),
      [ctxc_llama_applied_ARG_tokens] = (void *)tokens,
      [ctxc_llama_applied_ARG_input_0] = stream + CONTEXT * D,
      [ctxc_llama_applied_ARG_output_0] = r->applied,
      [ctxc_llama_applied_ARG_state_0] = keys,
      [ctxc_llama_applied_ARG_state_1] = values,
      [ctxc_llama_applied_ARG_slots] = (void *)(slots + CONTEXT),
  };
  return call_kernel("ctxc_llama_applied", arguments, 1, 1, 0, on_threads, &threads);
}

static void run(results *r, int threads) {
  float keys[STATE], values[STATE];
  r->status = plain(r, 0, CONTEXT, r->keys, r->values, CONTEXT, r->context_out, threads);
  r->status |= dual(r, threads);
  r->status |= applied(r, threads);
  r->status |= plain(r, CONTEXT, 1, keys, values, 1, r->plain, threads);
}

static void expect(int holds, const char *what) {
  if (!holds) {
    fprintf(stderr, "%s\n", what);
    ++failures;
  }
}

static double distance(const float *a, const float *b) {
  double largest = 0;
  for (int i = 0; i < D; ++i)
    largest = fmax(largest, fabs(a[i] - b[i]) / fmax(1, fabs(b[i])));
  return largest;
}

static int same(const float *a, const float *b, int64_t count) {
  return memcmp(a, b, count * sizeof *a) == 0;
}

static int same_results(const results *a, const results *b) {
  return same(a->keys, b->keys, VISIBLE * STATE) && same(a->values, b->values, VISIBLE * STATE) &&
         same(a->reduced_keys, b->reduced_keys, STATE) &&
         same(a->reduced_values, b->reduced_values, STATE) &&
         same(a->context_out, b->context_out, CONTEXT * D) && same(a->full, b->full, D) &&
         same(a->reduced, b->reduced, D) && same(a->applied, b->applied, D) &&
         same(a->plain, b->plain, D) && same(a->gate_u, b->gate_u, M) &&
         same(a->gate_v, b->gate_v, D) && same(a->up_u, b->up_u, M) && same(a->up_v, b->up_v, D) &&
         same(a->down_u, b->down_u, D) && same(a->down_v, b->down_v, M) && a->replay == b->replay &&
         a->status == b->status && memcmp(a->counts, b->counts, sizeof a->counts) == 0;
}

static void check_slices(const results *r) {
  check_margins("keys", r->keys, VISIBLE * STATE, 4);
  check_margins("values", r->values, VISIBLE * STATE, 4);
  check_margins("reduced keys", r->reduced_keys, STATE, 4);
  check_margins("full output", r->full, D, 4);
  check_margins("reduced output", r->reduced, D, 4);
  check_margins("applied output", r->applied, D, 4);
  check_margins("u of gate", r->gate_u, M, 4);
  check_margins("v of gate", r->gate_v, D, 4);
  check_margins("u of down", r->down_u, D, 4);
  check_margins("v of down", r->down_v, M, 4);
}

static void *run_alone(void *argument) {
  for (int i = 0; i < 20; ++i) {
    memset(((results *)argument)->counts, 0, sizeof((results *)argument)->counts);
    run(argument, 2);
  }
  return NULL;
}

int main(int count, char **names) {
  open_library(count, names);
  make_layer();
  results first = make_results();
  run(&first, 1);
  expect(first.status == CTXC_GOOD, "a call did not return CTXC_GOOD");
  expect(first.counts[0][1] + first.counts[1][1] + first.counts[2][1] == 0, "a condition failed");
  expect(distance(first.reduced, first.full) <= 1e-5, "the patched output is not the full run's");
  expect(D == 1 || distance(first.plain, first.full) > 1e-3, "the context changes nothing here");
  expect(same(first.applied, first.reduced, D), "applied and dual differ in their bits");
  check_slices(&first);

  for (int threads = 2; threads <= 4; threads *= 2) {
    results other = make_results();
    run(&other, threads);
    expect(same_results(&first, &other), "the number of threads changes the results");
  }
  pthread_t callers[4];
  results theirs[4];
  for (int i = 0; i < 4; ++i) {
    theirs[i] = make_results();
    pthread_create(&callers[i], NULL, run_alone, &theirs[i]);
  }
  for (int i = 0; i < 4; ++i) {
    pthread_join(callers[i], NULL);
    expect(same_results(&first, &theirs[i]), "calls at the same time change the results");
  }

  // With a scale of zero after the norm, the MLP's input is zero, and no change of a matrix helps.
  memset(m2.stored, 0, D * (WEIGHT == F32 ? 4 : 2));
  results zero = make_results();
  run(&zero, 1);
  expect(zero.status == CTXC_INEXACT, "a failed condition is not in the status");
  expect(zero.counts[0][1] == 1, "a failed condition is not counted");
  return failures != 0;
}
