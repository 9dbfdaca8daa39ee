//===- BlockBuilder.h - writes a family's equations as xf ops -------------===//
//
// The functions with which a family's file builds its block. Each function's
// first argument is the result's name in the printed IR; parameters are named
// as the checkpoint does, without the layer's prefix, and get their types from
// what is stored. Every op's location is its result's name, then the
// checkpoint's module it comes from, then config.json.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_BLOCKBUILDER_H
#define CTXC_IMPORT_BLOCKBUILDER_H

#include "StoredTensors.h"
#include "dialects/XF/XF.h"
#include "mlir/IR/Builders.h"

namespace ctxc::hf {

/// (offset + w) ⊙ x / √(mean x² + eps) for rms, and (offset + w) ⊙ (x − mean x) / √(var x + eps)
/// for layer, along the last dimension; w where `scale`, + b where `bias`.
struct Norm {
  xf::NormKind kind = xf::NormKind::rms;
  double eps = 0, offset = 0;
  bool scale = true, bias = false;

  static Norm rms(double eps, double offset = 0) { return {xf::NormKind::rms, eps, offset}; }
  static Norm layer(double eps, bool bias = true) {
    return {xf::NormKind::layer, eps, /*offset=*/0, /*scale=*/true, bias};
  }
};

class BlockBuilder {
public:
  using Value = mlir::Value;
  using StringRef = llvm::StringRef;

  /// Builds at `builder`'s place. `prefix` leads the names of parameters in the
  /// checkpoint but not in the IR when `relative`, as in a block that layers share.
  BlockBuilder(mlir::OpBuilder &builder, StoredTensors &tensors, std::string prefix, bool relative,
               mlir::Location file)
      : builder(builder), tensors(tensors), prefix(std::move(prefix)), relative(relative),
        file(file) {}

  /// Whether the checkpoint stores it; false where there are no weights.
  bool has(StringRef name) const { return tensors.has(prefix + name.str()); }
  /// Whether the checkpoint stores it in a quantised format; false where there are no weights.
  bool isQuantized(StringRef name) const { return tensors.isQuantized(prefix + name.str()); }
  /// A stored parameter, named after its module ("mlp.up_proj.weight": %up_proj). With a `*` in its
  /// name it is one stored tensor for each entry of its first dimension. No patch changes it where
  /// it is `frozen`.
  Value param(StringRef name, llvm::ArrayRef<int64_t> shape, bool frozen = false);
  Value embed(StringRef as, Value table, Value id);
  /// The token's absolute position plus `offset`, an id for `embed`; `id` for every token.
  Value position(StringRef as, int64_t offset = 0);
  Value constant(StringRef as, int32_t id);

  /// W x + b with W = MODULE.weight, (out, in), and b = MODULE.bias where `bias`.
  Value linear(StringRef as, StringRef module, int64_t out, Value x, bool bias = false);
  Value linear(StringRef as, Value weight, Value x);
  /// Whether rows of q, k and v in one matrix are ordered by these three before heads.
  bool hasQueriesFirst() const { return tensors.conventions().queriesFirst; }

  /// The same where MODULE.weight is stored as (in, out), as GPT-2's Conv1D stores it.
  Value conv1d(StringRef as, StringRef module, int64_t out, Value x, bool bias = true);

  /// w = MODULE.weight, b = MODULE.bias (or gamma and beta, where stored so), of x's last
  /// dimension.
  Value norm(StringRef as, StringRef module, const Norm &norm, Value x);
  Value rmsNorm(StringRef as, StringRef module, Value x, double eps, double offset = 0) {
    return norm(as, module, Norm::rms(eps, offset), x);
  }
  Value layerNorm(StringRef as, StringRef module, Value x, double eps) {
    return norm(as, module, Norm::layer(eps), x);
  }
  Value bias(StringRef as, Value x, Value b);
  Value scale(StringRef as, Value x, Value w);

  Value add(StringRef as, Value a, Value b);
  Value mul(StringRef as, Value a, Value b);
  Value times(StringRef as, Value x, double factor);
  Value activation(StringRef as, xf::ActivationKind kind, Value x);
  Value softmax(StringRef as, Value x);
  Value softcap(StringRef as, Value x, double cap);
  /// x with its entries cut off at ±limit; at limit only.
  Value clamp(StringRef as, Value x, double limit);
  Value clampAbove(StringRef as, Value x, double limit);

  /// (n) as (n / dim, dim): one row a head; and back.
  Value heads(StringRef as, Value x, int64_t dim);
  Value flat(StringRef as, Value x);
  Value reshape(StringRef as, Value x, llvm::ArrayRef<int64_t> shape);
  /// Columns as rows.
  Value transpose(StringRef as, Value x);
  /// Rows [from, from + size); of the dimension `along`, where it is not the first.
  Value slice(StringRef as, Value x, int64_t from, int64_t size, int64_t along = 0);

  /// One after the other along the dimension `along`.
  Value concat(StringRef as, llvm::ArrayRef<Value> parts, int64_t along = 0);
  /// x, whose first dimension is 1, `count` times.
  Value broadcast(StringRef as, Value x, int64_t count);

  /// A rotation of each head's first 2n entries by n `frequencies`, pairing i with i + n (half),
  /// times `amplitude`.
  Value rotary(StringRef as, Value x, Value frequencies,
               xf::RotaryStyle style = xf::RotaryStyle::half, double amplitude = 1);

  /// The parts of an attention's scores, as the op describes them; null: without that part.
  struct Scores {
    double scale = 1;
    std::optional<double> cap = std::nullopt;
    Value window = {}, slopes = {}, sinks = {};
    bool rounded = false, bidirectional = false;
  };
  Value attention(StringRef as, Value q, Value k, Value v, const Scores &scores);

  /// A causal convolution of each channel, with K (channels, taps).
  Value conv(StringRef as, StringRef module, Value K, Value x);
  /// Attention without a softmax (xf.linear_attention); `delta` may be null.
  Value linearAttention(StringRef as, StringRef module, Value q, Value k, Value v, Value decay,
                        Value rates, Value delta = {});

  /// The entries of MODULE.weight z as probabilities: one for each of `count` experts.
  Value router(StringRef as, StringRef module, int64_t count, Value z);
  /// The indices of the `count` largest scores, ascending, of the best `keep` of `groups`; the
  /// entries that they select, rows where x is a matrix.
  Value topK(StringRef as, Value scores, int64_t count, int64_t groups = 1, int64_t keep = 1);
  Value gather(StringRef as, Value x, Value selected);
  /// w / (Σ w + eps).
  Value sumToOne(StringRef as, Value w, double eps = 0);
  /// W_e x, a row for each selected expert e, of `count`: W_e = MODULE.weight, (out, in), with e
  /// for the `*` in MODULE. x has a row for each of them too, or is one for all.
  Value expertLinear(StringRef as, StringRef module, int64_t count, int64_t out, Value selected,
                     Value x);
  Value expertLinear(StringRef as, StringRef module, Value bank, Value selected, Value x,
                     bool transposed = false);
  /// Σ_j w_j y_j over y's rows.
  Value combine(StringRef as, Value w, Value y);

  /// The frequencies that rotate `dims` entries: a constant of the block.
  Value rope(StringRef as, int64_t dims, mlir::Attribute value);
  /// Numbers, a constant of the block.
  Value numbers(StringRef as, llvm::ArrayRef<float> values);
  /// Settings: values that each layer gives to the block that it shares; this layer gives `value`.
  /// Frequencies, an integer, a number (one that `mul` takes).
  Value layerRope(StringRef as, int64_t dims, mlir::Attribute value);
  Value layerIndex(StringRef as, int64_t value);
  Value layerNumber(StringRef as, double value);
  /// This layer's settings by name; null where there are none.
  mlir::DictionaryAttr settings() const;

  mlir::MLIRContext *context() const { return builder.getContext(); }
  mlir::Location at(StringRef as, StringRef what = "") const;
  mlir::OpBuilder &builder;

private:
  Value product(StringRef as, StringRef module, Value weight, Value x, bool transposed, int64_t out,
                bool bias);
  Value setting(StringRef as, mlir::Type type, mlir::Attribute value);

  StoredTensors &tensors;
  std::string prefix;
  bool relative;
  mlir::Location file;
  mlir::NamedAttrList layerSettings;
};

/// The length of a vector, or of a matrix's rows.
int64_t width(mlir::Value value);
/// How many rows a matrix has.
int64_t rows(mlir::Value matrix);

} // namespace ctxc::hf

#endif // CTXC_IMPORT_BLOCKBUILDER_H
