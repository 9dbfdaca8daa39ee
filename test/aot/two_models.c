/* The objects of two models in one program, with two prefixes: their headers and symbols do not
 * clash, and no shared library is needed. A row of the embedding table is returned unchanged. */
#include "first.h"
#include "second.h"
#include <stdio.h>
#include <string.h>

static void serial(void *context, int64_t count, void (*body)(void *, int64_t, int64_t),
                   void *data) {
  (void)context;
  body(data, 0, count);
}

static float table[VOCABULARY * D], out[D];
static _Alignas(64) char workspace[1 << 16];
static int32_t position = 0, token = VOCABULARY - 1;

static int check(int32_t (*kernel)(const ctxc_call *), int64_t bytes, void *const *arguments) {
  ctxc_call call = {1, {0, 0}, arguments, workspace, serial, NULL};
  memset(out, 0, sizeof out);
  if (bytes > (int64_t)sizeof workspace || kernel(&call) != CTXC_GOOD ||
      memcmp(out, table + token * D, sizeof out)) {
    fprintf(stderr, "an embedding's row is not the table's\n");
    return 1;
  }
  return 0;
}

int main(void) {
  for (int i = 0; i < VOCABULARY * D; ++i)
    table[i] = (float)i;
  if (first_refusal(CTXC_KERNEL_ABI_VERSION) || second_refusal(CTXC_KERNEL_ABI_VERSION))
    return 1;
  void *ofFirst[first_model_embed_ARGS] = {
      [first_model_embed_ARG_positions] = &position,
      [first_model_embed_ARG_tokens] = &token,
      [first_model_embed_ARG_output_0] = out,
      [first_model_embed_ARG_model_embed_tokens_weight] = table,
  };
  void *ofSecond[second_model_embed_ARGS] = {
      [second_model_embed_ARG_positions] = &position,
      [second_model_embed_ARG_tokens] = &token,
      [second_model_embed_ARG_output_0] = out,
      [second_model_embed_ARG_model_embed_tokens_weight] = table,
  };
  return check(first_model_embed, first_model_embed_workspace(1, 0, 0), ofFirst) +
         check(second_model_embed, second_model_embed_workspace(1, 0, 0), ofSecond);
}
