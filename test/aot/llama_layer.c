/* A layer and the head of a Llama model, called from C and compared with their equations.
 * With one token, attention gives that token's values whatever queries and keys are:
 *   v = Wv (n(x) m1),  y = x + Wo v(g(h)),  z = n(y) m2,  out = y + Wd (silu(Wg z) Wu z)
 * and with no token before it, its keys and values are all of the state. */
#include "arguments.h"
#include "kernels.h"
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 54, HEADS = 6, GROUPS = 2, E = 18, M = 62, VOCABULARY = 97, ROWS = 3 };
#define EPS 1e-05 /* rms_norm_eps of the model */

typedef void kernel_function(const ctxc_call *);
typedef int64_t workspace_function(int64_t, int64_t, int64_t);

/* Ranges in no particular order. */
static int64_t ranges;
static void backwards(void *context, int64_t count, void (*body)(void *, int64_t, int64_t),
                      void *data) {
  ++*(int64_t *)context;
  for (int64_t i = count; i > 0; --i)
    body(data, i - 1, i);
}

static uint64_t state = 1;
static float number(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(state >> 40) / (1 << 24) - 0.5);
}
static float *numbers(int64_t count) {
  float *x = malloc(count * sizeof(float));
  for (int64_t i = 0; i < count; ++i)
    x[i] = number();
  return x;
}

static void normed(const double *x, const float *scale, double *y) {
  double squares = 0;
  for (int i = 0; i < D; ++i)
    squares += x[i] * x[i];
  for (int i = 0; i < D; ++i)
    y[i] = x[i] / sqrt(squares / D + EPS) * scale[i];
}
static void times(const float *w, const double *x, int rows, int columns, double *y) {
  for (int i = 0; i < rows; ++i) {
    y[i] = 0;
    for (int j = 0; j < columns; ++j)
      y[i] += (double)w[i * columns + j] * x[j];
  }
}

static int failures;
static void expect_near(const char *what, const float *found, const double *expected, int count) {
  for (int i = 0; i < count; ++i)
    if (!(fabs(found[i] - expected[i]) <= 1e-5 * fmax(1, fabs(expected[i])))) {
      fprintf(stderr, "%s %d: found %.9g, expected %.9g\n", what, i, found[i], expected[i]);
      ++failures;
      return;
    }
}

/* Calls a kernel whose workspace is surrounded by marks that must stay. */
static void run(void *library, const char *name, void *const *arguments, int64_t rows,
                int64_t visible) {
  char size_name[64];
  snprintf(size_name, sizeof size_name, "%s_workspace", name);
  kernel_function *kernel = (kernel_function *)(uintptr_t)dlsym(library, name);
  workspace_function *size = (workspace_function *)(uintptr_t)dlsym(library, size_name);
  if (!kernel || !size) {
    fprintf(stderr, "%s is not in the library\n", name);
    exit(1);
  }
  int64_t bytes = (size(rows, visible, 0) + 63) / 64 * 64;
  unsigned char *memory = aligned_alloc(64, bytes + 128);
  memset(memory, 0x5a, bytes + 128);
  ctxc_call call = {rows, {visible, 0}, arguments, memory + 64, backwards, &ranges};
  kernel(&call);
  for (int i = 0; i < 64; ++i)
    if (memory[i] != 0x5a || memory[64 + bytes + i] != 0x5a) {
      fprintf(stderr, "%s wrote beside its workspace of %lld bytes\n", name, (long long)bytes);
      ++failures;
      break;
    }
  free(memory);
}

static void check_layer(void *library) {
  int32_t position = 0, token = 0;
  float *x = numbers(D), *m1 = numbers(D), *m2 = numbers(D), *wq = numbers(HEADS * E * D),
        *wk = numbers(GROUPS * E * D), *wv = numbers(GROUPS * E * D), *wo = numbers(D * HEADS * E),
        *wg = numbers(M * D), *wu = numbers(M * D), *wd = numbers(D * M), *rotary = numbers(E / 2);
  float out[D], keys[GROUPS * E], values[GROUPS * E];
  void *arguments[ARG_LLAMA_count] = {
      [ARG_LLAMA_positions] = &position,
      [ARG_LLAMA_tokens] = &token,
      [ARG_LLAMA_input_0] = x,
      [ARG_LLAMA_output_0] = out,
      [ARG_LLAMA_input_layernorm_weight] = m1,
      [ARG_LLAMA_self_attn_q_proj_weight] = wq,
      [ARG_LLAMA_self_attn_k_proj_weight] = wk,
      [ARG_LLAMA_self_attn_v_proj_weight] = wv,
      [ARG_LLAMA_self_attn_o_proj_weight] = wo,
      [ARG_LLAMA_post_attention_layernorm_weight] = m2,
      [ARG_LLAMA_mlp_gate_proj_weight] = wg,
      [ARG_LLAMA_mlp_up_proj_weight] = wu,
      [ARG_LLAMA_mlp_down_proj_weight] = wd,
      [ARG_LLAMA_rotary] = rotary,
      [ARG_LLAMA_state_0] = keys,
      [ARG_LLAMA_state_1] = values,
      [ARG_LLAMA_slots] = &position,
  };
  run(library, "ctxc_llama", arguments, 1, 1);

  double wide[D], n[D], k[GROUPS * E], v[GROUPS * E], heads[HEADS * E], y[D], gate[M], up[M],
      down[D];
  for (int i = 0; i < D; ++i)
    wide[i] = x[i];
  normed(wide, m1, n);
  times(wk, n, GROUPS * E, D, k);
  times(wv, n, GROUPS * E, D, v);
  for (int h = 0; h < HEADS; ++h)
    for (int i = 0; i < E; ++i)
      heads[h * E + i] = v[h * GROUPS / HEADS * E + i];
  times(wo, heads, D, HEADS * E, y);
  for (int i = 0; i < D; ++i)
    y[i] += wide[i];
  normed(y, m2, n);
  times(wg, n, M, D, gate);
  times(wu, n, M, D, up);
  for (int i = 0; i < M; ++i)
    up[i] *= gate[i] / (1 + exp(-gate[i]));
  times(wd, up, D, M, down);
  for (int i = 0; i < D; ++i)
    y[i] += down[i];
  expect_near("layer output", out, y, D);
  expect_near("keys at position 0", keys, k, GROUPS * E);
  expect_near("values", values, v, GROUPS * E);
}

static void check_head(void *library) {
  int32_t zeros[ROWS] = {0};
  float *x = numbers(ROWS * D), *m = numbers(D), *w = numbers(VOCABULARY * D),
        logits[ROWS * VOCABULARY];
  void *arguments[ARG_MODEL_HEAD_count] = {
      [ARG_MODEL_HEAD_positions] = zeros,     [ARG_MODEL_HEAD_tokens] = zeros,
      [ARG_MODEL_HEAD_input_0] = x,           [ARG_MODEL_HEAD_output_0] = logits,
      [ARG_MODEL_HEAD_model_norm_weight] = m, [ARG_MODEL_HEAD_lm_head_weight] = w,
  };
  run(library, "ctxc_model_head", arguments, ROWS, 0);
  for (int r = 0; r < ROWS; ++r) {
    double wide[D], n[D], expected[VOCABULARY];
    for (int i = 0; i < D; ++i)
      wide[i] = x[r * D + i];
    normed(wide, m, n);
    times(w, n, VOCABULARY, D, expected);
    expect_near("logits", logits + r * VOCABULARY, expected, VOCABULARY);
  }
}

int main(int count, char **names) {
  void *library = count == 2 ? dlopen(names[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    fprintf(stderr, "no library: %s\n", count == 2 ? dlerror() : "expected its path");
    return 2;
  }
  check_layer(library);
  check_head(library);
  if (ranges != 8) {
    fprintf(stderr, "%lld matrices went through parallel_for, expected 8\n", (long long)ranges);
    ++failures;
  }
  return failures != 0;
}
