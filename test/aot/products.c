/* Calls y = W x of two libraries, whose targets have different instructions for it, with the same
 * numbers: y must be the same to the last bit, because sums of bytes are exact, and so are those of
 * the multiples of 1/64 in a W of bfloat16. Compiled with BYTES, the size of W, of 70 rows of 256
 * numbers, and with WEIGHT, which is BF16, or F32 for blocks. */
#include "harness.h"

enum { ROWS = 21, INPUTS = 256, OUTPUTS = 70 };

static void on_this_thread(void *context, int64_t count, range_body *body, void *data) {
  (void)context;
  body(data, 0, count);
}

int main(int count, char **names) {
  if (count != 3)
    return 2;
  int32_t zeros[ROWS] = {0};
  float *x = numbers(ROWS * INPUTS), *y[2];
  unsigned char *w = WEIGHT == BF16 ? weights(OUTPUTS * INPUTS).stored : slice(BYTES, 1);
  for (int64_t i = 0; i < BYTES && WEIGHT != BF16; ++i)
    w[i] = (unsigned char)((int)(64 * number()) + 32) & 0x3f; /* a float16 of such bytes is finite */
  for (int i = 0; i < 2; ++i) {
    y[i] = slice(ROWS * OUTPUTS, sizeof(float));
    open_library(2, (char *[]){names[0], names[i + 1]});
    void *arguments[ctxc_one_ARGS] = {
        [ctxc_one_ARG_positions] = zeros,
        [ctxc_one_ARG_tokens] = zeros,
        [ctxc_one_ARG_input_0] = x,
        [ctxc_one_ARG_output_0] = y[i],
        [ctxc_one_ARG_w] = w,
    };
    if (call_kernel("ctxc_one", arguments, ROWS, 0, 0, on_this_thread, NULL) != CTXC_GOOD)
      return 1;
    check_margins("y", y[i], ROWS * OUTPUTS, sizeof(float));
  }
  double size = 0;
  for (int64_t i = 0; i < ROWS * OUTPUTS; ++i)
    size += fabs(y[0][i]);
  if (!(size > 1 && size < 1e30) || memcmp(y[0], y[1], ROWS * OUTPUTS * sizeof(float))) {
    fprintf(stderr, "the libraries differ, or compute nothing: %g\n", size);
    ++failures;
  }
  return failures != 0;
}
