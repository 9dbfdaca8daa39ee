/* Calls a layer and the head of a Llama model from C, and compares them with their equations.
 * With a single token, attention gives that token's values, whatever its queries and keys are:
 *   v = Wv (n(x) m1),  y = x + Wo v(g(h)),  z = n(y) m2,  out = y + Wd (silu(Wg z) Wu z)
 * and since there is no token before it, its keys and values are the whole state. */
#include "harness.h"

enum { ROWS = 3 };

/* Ranges in no particular order. */
static int64_t ranges;
static void backwards(void *context, int64_t count, range_body *body, void *data) {
  ++*(int64_t *)context;
  for (int64_t i = count; i > 0; --i)
    body(data, i - 1, i);
}

static void normed(const double *x, const float *scale, double *y) {
  double squares = 0;
  for (int i = 0; i < D; ++i)
    squares += x[i] * x[i];
  for (int i = 0; i < D; ++i)
    y[i] = x[i] / sqrt(squares / D + EPS) * scale[i];
}
static void times(weight w, const double *x, int rows, int columns, double *y) {
  for (int i = 0; i < rows; ++i) {
    y[i] = 0;
    for (int j = 0; j < columns; ++j)
      y[i] += (double)w.values[i * columns + j] * x[j];
  }
}

static void expect_near(const char *what, const float *found, const double *expected, int count) {
  for (int i = 0; i < count; ++i)
    if (!(fabs(found[i] - expected[i]) <= 1e-5 * fmax(1, fabs(expected[i])))) {
      fprintf(stderr, "%s %d: found %.9g, expected %.9g\n", what, i, found[i], expected[i]);
      ++failures;
      return;
    }
}

static void run(const char *name, void *const *arguments, int64_t rows, int64_t visible) {
  int32_t status = call_kernel(name, arguments, rows, visible, 0, backwards, &ranges);
  if (status != CTXC_GOOD) {
    fprintf(stderr, "%s: status %d\n", name, (int)status);
    ++failures;
  }
}

static void check_layer(void) {
  int32_t position = 0, token = 0;
  float *x = numbers(D), *rotary = numbers(E / 2), *out = slice(D, sizeof(float)),
        *keys = slice(GROUPS * E, sizeof(float)), *values = slice(GROUPS * E, sizeof(float));
  weight m1 = weights(D), m2 = weights(D), wq = weights(HEADS * E * D),
         wk = weights(GROUPS * E * D), wv = weights(GROUPS * E * D), wo = weights(D * HEADS * E),
         wg = weights(M * D), wu = weights(M * D), wd = weights(D * M);
  void *arguments[ctxc_llama_ARGS] = {
      [ctxc_llama_ARG_positions] = &position,
      [ctxc_llama_ARG_tokens] = &token,
      [ctxc_llama_ARG_input_0] = x,
      [ctxc_llama_ARG_output_0] = out,
      [ctxc_llama_ARG_input_layernorm_weight] = m1.stored,
      [ctxc_llama_ARG_self_attn_q_proj_weight] = wq.stored,
      [ctxc_llama_ARG_self_attn_k_proj_weight] = wk.stored,
      [ctxc_llama_ARG_self_attn_v_proj_weight] = wv.stored,
      [ctxc_llama_ARG_self_attn_o_proj_weight] = wo.stored,
      [ctxc_llama_ARG_post_attention_layernorm_weight] = m2.stored,
      [ctxc_llama_ARG_mlp_gate_proj_weight] = wg.stored,
      [ctxc_llama_ARG_mlp_up_proj_weight] = wu.stored,
      [ctxc_llama_ARG_mlp_down_proj_weight] = wd.stored,
      [ctxc_llama_ARG_rotary] = rotary,
      [ctxc_llama_ARG_state_0] = keys,
      [ctxc_llama_ARG_state_1] = values,
      [ctxc_llama_ARG_slots] = &position,
  };
  run("ctxc_llama", arguments, 1, 1);

  double wide[D], n[D], k[GROUPS * E], v[GROUPS * E], heads[HEADS * E], y[D], gate[M], up[M],
      down[D];
  for (int i = 0; i < D; ++i)
    wide[i] = x[i];
  normed(wide, m1.values, n);
  times(wk, n, GROUPS * E, D, k);
  times(wv, n, GROUPS * E, D, v);
  for (int h = 0; h < HEADS; ++h)
    for (int i = 0; i < E; ++i)
      heads[h * E + i] = v[h * GROUPS / HEADS * E + i];
  times(wo, heads, D, HEADS * E, y);
  for (int i = 0; i < D; ++i)
    y[i] += wide[i];
  normed(y, m2.values, n);
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
  check_margins("layer output", out, D, sizeof *out);
  check_margins("keys", keys, GROUPS * E, sizeof *keys);
  check_margins("values", values, GROUPS * E, sizeof *values);
}

static void check_head(void) {
  int32_t zeros[ROWS] = {0};
  float *x = numbers(ROWS * D), *logits = slice(ROWS * VOCABULARY, sizeof(float));
  weight m = weights(D), w = weights(VOCABULARY * D);
  void *arguments[ctxc_model_head_ARGS] = {
      [ctxc_model_head_ARG_positions] = zeros,
      [ctxc_model_head_ARG_tokens] = zeros,
      [ctxc_model_head_ARG_input_0] = x,
      [ctxc_model_head_ARG_output_0] = logits,
      [ctxc_model_head_ARG_model_norm_weight] = m.stored,
      [ctxc_model_head_ARG_lm_head_weight] = w.stored,
  };
  run("ctxc_model_head", arguments, ROWS, 0);
  for (int r = 0; r < ROWS; ++r) {
    double wide[D], n[D], expected[VOCABULARY];
    for (int i = 0; i < D; ++i)
      wide[i] = x[r * D + i];
    normed(wide, m.values, n);
    times(w, n, VOCABULARY, D, expected);
    expect_near("logits", logits + r * VOCABULARY, expected, VOCABULARY);
  }
  check_margins("logits", logits, ROWS * VOCABULARY, sizeof *logits);
}

int main(int count, char **names) {
  open_library(count, names);
  check_layer();
  check_head();
  if (ranges != 8) {
    fprintf(stderr, "%lld matrices went through parallel_for, expected 8\n", (long long)ranges);
    ++failures;
  }
  return failures != 0;
}
