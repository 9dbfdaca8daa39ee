// A layer written in Eigen takes its patch from a kernel. Nothing of ctxc is here but layer.h and
// layer.so, which it generated; the kernel works on the memory that Eigen's maps and matrices work
// on.
#include "call.h"
#include <Eigen/Dense>
#include <cmath>
#include <cstdio>

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;

/// Its weights are maps of one buffer, as of a checkpoint in memory.
struct Layer {
  explicit Layer(float *weights)
      : q(weights, 48, 48), k(q.data() + q.size(), 48, 48), v(k.data() + k.size(), 48, 48),
        up(v.data() + v.size(), 96, 48), down(up.data() + up.size(), 48, 96) {}
  static constexpr int size = 3 * 48 * 48 + 2 * 96 * 48;
  Eigen::Map<Matrix> q, k, v, up, down;

  static Vector normed(const Vector &x) {
    return x / std::sqrt(x.squaredNorm() / x.size() + 1e-6f);
  }

  /// The layer's output for a token x behind the tokens that these keys and values are of.
  Vector forward(const Matrix &keys, const Matrix &values, const Vector &x) const {
    Vector n = normed(x);
    Matrix allKeys(keys.rows() + 1, 48), allValues(keys.rows() + 1, 48);
    allKeys << keys, (k * n).transpose();
    allValues << values, (v * n).transpose();
    Vector scores = allKeys * (q * n) * 0.125f;
    Vector weights = (scores.array() - scores.maxCoeff()).exp();
    Vector y = x + allValues.transpose() * weights / weights.sum();
    Vector u = up * normed(y);
    return y + down * (u.array() / (1 + (-u.array()).exp())).matrix();
  }
};

int main() {
  if (const char *reason = ctxc_refusal(CTXC_KERNEL_ABI_VERSION)) {
    std::fprintf(stderr, "layer.so: %s\n", reason);
    return 1;
  }
  const int context = 7;
  Vector weights = Vector::Random(Layer::size) * 0.3f;
  Layer layer(weights.data());
  Matrix tokens = Matrix::Random(context, 48);
  Vector x = Vector::Random(48);
  // Row `context` is for the token itself; the kernel writes it.
  Matrix keys(context + 1, 48), values(context + 1, 48), none(0, 48);
  for (int i = 0; i < context; ++i) {
    keys.row(i) = layer.k * Layer::normed(tokens.row(i));
    values.row(i) = layer.v * Layer::normed(tokens.row(i));
  }
  Vector wanted = layer.forward(keys.topRows(context), values.topRows(context), x);
  Vector unpatched = layer.forward(none, none, x);

  Vector full(48), reduced(48), ownKey(48), ownValue(48), upU(96), upV(48), downU(48), downV(96);
  Eigen::Matrix<int32_t, Eigen::Dynamic, 1> slots =
      Eigen::Matrix<int32_t, Eigen::Dynamic, 1>::LinSpaced(context + 1, 0, context);
  int32_t token = 0;
  int64_t counts[2][2] = {};
  double replay;
  Caller caller;
  int32_t status = caller(ctxc_mine_dual, ctxc_mine_dual_workspace, /*rows=*/1, context + 1, 1,
                          {{ctxc_mine_dual_ARG_positions, &slots[context]},
                           {ctxc_mine_dual_ARG_tokens, &token},
                           {ctxc_mine_dual_ARG_input_0, x.data()},
                           {ctxc_mine_dual_ARG_input_1, x.data()},
                           {ctxc_mine_dual_ARG_output_0, full.data()},
                           {ctxc_mine_dual_ARG_output_1, reduced.data()},
                           {ctxc_mine_dual_ARG_q_weight, layer.q.data()},
                           {ctxc_mine_dual_ARG_k_weight, layer.k.data()},
                           {ctxc_mine_dual_ARG_v_weight, layer.v.data()},
                           {ctxc_mine_dual_ARG_up_weight, layer.up.data()},
                           {ctxc_mine_dual_ARG_down_weight, layer.down.data()},
                           {ctxc_mine_dual_ARG_state_0, keys.data()},
                           {ctxc_mine_dual_ARG_state_1, values.data()},
                           {ctxc_mine_dual_ARG_state_2_reduced, ownKey.data()},
                           {ctxc_mine_dual_ARG_state_3_reduced, ownValue.data()},
                           {ctxc_mine_dual_ARG_slots, slots.data()},
                           {ctxc_mine_dual_ARG_slots_reduced, &slots[context]},
                           {ctxc_mine_dual_ARG_up_weight_u, upU.data()},
                           {ctxc_mine_dual_ARG_up_weight_v, upV.data()},
                           {ctxc_mine_dual_ARG_down_weight_u, downU.data()},
                           {ctxc_mine_dual_ARG_down_weight_v, downV.data()},
                           {ctxc_mine_dual_ARG_counts, counts},
                           {ctxc_mine_dual_ARG_replay, &replay}});

  // The patch, in Eigen.
  layer.up += upU * upV.transpose();
  layer.down += downU * downV.transpose();
  Vector patched = layer.forward(none, none, x);
  auto error = [&](const Vector &y) { return (y - wanted).lpNorm<Eigen::Infinity>(); };
  std::printf("status %d\n", int(status));
  std::printf("the kernel's full run      %.2g from Eigen's, with the context\n", error(full));
  std::printf("without it, unpatched      %.2f\n", error(unpatched));
  std::printf("without it, patched        %.2g; predicted %.2g\n", error(patched), replay);
  return status == CTXC_GOOD && error(patched) < 1e-5 ? 0 : 1;
}
