//===- Raise.h - what a program computes for one token, as xf --------------===//
//
// The ops of a scope (a layer, or all that is outside of layers) fall into two parts. The *tail* is
// all that leads to the scope's results without joining tokens: each of its ops becomes an op of
// xf, or a graph.opaque where no pattern knows it. What the tail reads from an op that joins tokens
// becomes an xf.contextual, which reads what the ops before it read: values of the tail, the
// scope's inputs and the parameters.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_RAISE_H
#define CTXC_IMPORT_RAISE_H

#include "AttentionPattern.h"
#include "Rotation.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Error.h"

namespace ctxc::pt2 {

/// How a scope names a stored tensor.
using Naming = llvm::function_ref<std::string(llvm::StringRef)>;

/// The parts of a scope.
struct Parts {
  llvm::SetVector<mlir::Value> inputs;    ///< data of other scopes that it reads
  llvm::DenseSet<mlir::Operation *> tail; ///< calls
  llvm::SetVector<mlir::Value> mixed; ///< what the tail, or a result, is of ops that join tokens
};

/// Divides the scope of `calls`, whose results are `results`.
Parts divide(llvm::ArrayRef<graph::CallOp> calls, llvm::ArrayRef<mlir::Value> results,
             const TokenAxes &axes);

/// What makes one mixed value of a scope.
struct MixedRegion {
  llvm::SmallVector<graph::CallOp> calls;
  llvm::SetVector<mlir::Value> data;       ///< what they read of the tail, and of other scopes
  llvm::SetVector<graph::StoredOp> stored; ///< the parameters that they read
};
MixedRegion regionOf(mlir::Value mixed, const Parts &parts,
                     const llvm::DenseSet<mlir::Operation *> &scope, const TokenAxes &axes);

/// The type of `value` that belongs to one token: without the tokens' axis and without leading axes
/// of one entry, floats as f32. An error where its size is not fixed.
llvm::Expected<mlir::RankedTensorType> tokenType(mlir::Value value, const TokenAxes &axes);

/// Of a value in xf.
inline mlir::RankedTensorType ranked(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
/// With one more axis in front.
inline mlir::RankedTensorType withRows(mlir::RankedTensorType type, int64_t rows) {
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), rows);
  return mlir::RankedTensorType::get(shape, type.getElementType());
}
inline bool isFloat(mlir::Value value) {
  return mlir::isa<mlir::FloatType>(ranked(value).getElementType());
}

/// Emits the ops of one scope.
class Raiser {
public:
  Raiser(mlir::OpBuilder &builder, const TokenAxes &axes, Naming naming, Capture &capture,
         Rotations &rotations)
      : builder(builder), axes(axes), naming(naming), capture(capture), rotations(rotations) {}

  /// What stands for `value` in xf.
  void bind(mlir::Value value, mlir::Value raised) { values[value] = raised; }
  mlir::Value lookup(mlir::Value value) const { return values.lookup(value); }

  /// Emits a call of the tail, all of whose data has been bound.
  llvm::Error raise(graph::CallOp call);
  /// Emits the contextual op for `value`, which a call of the scope's `calls` makes: attention
  /// with or without a softmax, or a convolution where it is one, in a block.
  llvm::Error raiseMixed(mlir::Value value, const Parts &parts,
                         const llvm::DenseSet<mlir::Operation *> &calls);

private:
  using Value = mlir::Value;

  /// What a call was raised to: a value for each result; empty where no pattern knows it.
  using Results = llvm::SmallVector<Value>;
  Results raiseKnown(graph::CallOp call);
  Results none(graph::CallOp) { return {}; }
  Results linear(graph::CallOp call);
  Results product(graph::CallOp call);
  Results sum(graph::CallOp call);
  Results times(graph::CallOp call);
  Results quotient(graph::CallOp call);
  Results power(graph::CallOp call);
  Results function(graph::CallOp call);
  Results logarithm(graph::CallOp call);
  Results root(graph::CallOp call);
  Results clamped(graph::CallOp call);
  Results elu(graph::CallOp call);
  Results leaky(graph::CallOp call);
  Results prelu(graph::CallOp call);
  Results limits(graph::CallOp call);
  Results reordered(graph::CallOp call);
  Results summedUp(graph::CallOp call);
  Value negated(mlir::Location loc, Value x);
  Value limited(mlir::Location loc, Value x, std::optional<double> low, std::optional<double> high);
  Value permutedByList(graph::CallOp call);
  Results withTerm(graph::CallOp call, Value x, double number);
  Results choice(graph::CallOp call);
  Results extreme(graph::CallOp call);
  Results normed(graph::CallOp call);
  Results fixedNorm(graph::CallOp call);
  Results softmax(graph::CallOp call);
  Results sameOrder(graph::CallOp call);
  Results permuted(graph::CallOp call);
  Results copied(graph::CallOp call);
  Results expanded(graph::CallOp call);
  Results part(graph::CallOp call);
  Results parts(graph::CallOp call);
  Results joined(graph::CallOp call);
  Results stacked(graph::CallOp call);
  Results placed(graph::CallOp call);
  Results written(graph::CallOp call);
  Results filled(graph::CallOp call);
  Results row(graph::CallOp call);
  Results topK(graph::CallOp call);
  Results indexed(graph::CallOp call);
  Results chosen(graph::CallOp call);
  Results gathered(graph::CallOp call);
  Results summed(graph::CallOp call);
  Results largest(graph::CallOp call);

  /// A vector with an entry for each expert: w_j for the jth of the selected ones, and 0 elsewhere.
  struct Gate {
    Value weights; ///< a vector with one for each of the selected
    xf::TopKOp selected;
    bool isFlag = false; ///< all weights are 1
  };
  /// What `call` gives where that is a gate, or an entry of one; null where it is neither.
  Value gateValue(graph::CallOp call);
  Value gateEntry(graph::CallOp call);
  Value hotRows(mlir::Location loc, xf::TopKOp selected);
  Value oneHot(graph::CallOp call);
  Value spread(mlir::Location loc, const Gate &gate);
  std::optional<Gate> gateOf(Value value);
  std::optional<Gate> findGate(graph::CallOp call);
  std::optional<Gate> scatteredGate(graph::CallOp call);
  std::optional<Gate> summedGate(graph::CallOp call);
  std::optional<Gate> scaledGate(graph::CallOp call);
  std::optional<Gate> dividedGate(graph::CallOp call);
  std::optional<Gate> softmaxGate(graph::CallOp call);
  std::optional<Gate> maskedGate(graph::CallOp call, double number);
  std::optional<Gate> takenGate(mlir::Location loc, Value of, xf::TopKOp selected);
  Gate evenGate(mlir::Location loc, xf::TopKOp selected);
  xf::TopKOp selectedOf(Value value) const;
  xf::TopKOp hotRowsOf(Value value) const;
  bool countsUp(Value value) const;
  std::optional<std::pair<xf::TopKOp, int64_t>> indicatorOf(Value value) const;
  Value vectorOf(Value value, int64_t count);

  /// Raises a call and binds its results; false where no pattern knows it.
  llvm::Expected<bool> raiseByPattern(graph::CallOp call);
  llvm::Error severalTokens(Value value) const;
  std::string whyUnknown(graph::CallOp call) const;
  llvm::Error raiseOpaque(graph::CallOp call, llvm::StringRef why);
  bool withKeyScores(mlir::Location loc, const AttentionPattern &found, Value &queries,
                     Value &keys);
  /// Binds `mixed` to an xf.attention, or says what stands in the way.
  llvm::Expected<bool> raiseAttention(Value mixed, std::string &obstacle);
  /// An attention whose result is multiplied by σ(log Σ e^scores − b): b are its sinks.
  Value withSinks(graph::CallOp call);
  /// Binds `mixed` to an xf.conv where it is a causal convolution of each channel.
  bool raiseConvolution(Value mixed);
  /// Binds `mixed` to the result of an earlier token where it is that, and of zeros before.
  bool raiseShift(Value mixed);
  /// Binds `mixed` to a recurrence where ctxc.export wrote that op.
  bool raiseLinearAttention(Value mixed);
  bool raiseDecayingMean(Value mixed);
  /// Any of the above.
  bool raiseRecurrent(Value mixed) {
    return raiseConvolution(mixed) || raiseShift(mixed) || raiseLinearAttention(mixed) ||
           raiseDecayingMean(mixed);
  }
  graph::StoredOp rateOf(Value value) const;
  /// Binds values that a region of mixing computes for each token by itself.
  bool raiseTokens(llvm::ArrayRef<Value> wanted, std::string &obstacle);
  Value firstUnknown(Value value) const;
  Value rotary(graph::CallOp call, const Rotation &rotation, Value from);
  /// A number or numbers of the block, which may differ between layers.
  Value setting(mlir::Location loc, llvm::StringRef name, mlir::Type type, mlir::Attribute value);
  /// A value that does not depend on what the model reads: parameters it is made of, if any.
  llvm::Expected<Value> fixedValue(Value value);
  Value fixedRow(Value value);
  /// (position + plus) / over, rounded down.
  struct Place {
    uint64_t plus, over;
  };
  /// None where `value` is no such number of the token.
  std::optional<Place> positionOf(Value value) const;
  /// The row of a stored table that a token's id names; null where they are others.
  Value rowOf(mlir::Location loc, Value table, Value ids);
  Value idOf(Value ids);
  llvm::Expected<Value> operand(Value value);
  /// A graph.opaque for `value`, which is made of `data` and of what does not depend on it.
  llvm::Error raiseUnknown(Value value, llvm::ArrayRef<Value> data, llvm::StringRef target,
                           llvm::StringRef why);
  /// What an op that stands for `value` reads: `arguments`, and what else its function reads, in
  /// the order of the function's arguments.
  struct Standing {
    llvm::SmallVector<Value> operands;
    mlir::FlatSymbolRefAttr function; ///< null where there is none
    void name(mlir::Operation *op) const;
  };
  llvm::Expected<Standing> standing(Value value, llvm::ArrayRef<Value> arguments,
                                    llvm::StringRef path);
  /// The stored tensor that `value` is, through copies; null where it is none or has no storage
  /// type of xf.
  graph::StoredOp storedOf(Value value) const;
  /// With `isMatrix`, without axes of one entry in front of a matrix.
  Value parameter(graph::StoredOp stored, bool isMatrix = false);
  /// A setting with the numbers of a stored tensor that is a part of the program, such as a mask;
  /// null where they come with the weights, are too many, or not finite.
  Value numbersOf(graph::StoredOp stored);
  /// The same, without more axes of one entry in front than `data` has.
  Value numbersFor(graph::StoredOp stored, Value data);
  /// Those numbers where there are any, or the parameter.
  Value weightOf(graph::StoredOp stored) {
    Value numbers = numbersOf(stored);
    return numbers ? numbers : parameter(stored);
  }
  /// `data` plus or times a stored tensor, where its shape allows.
  Value withBias(mlir::Location loc, Value data, Value bias);
  Value withScale(mlir::Location loc, Value data, Value scale);
  Value withNumber(mlir::Location loc, Value data, Value number);
  Value plus(mlir::Location loc, Value x, double number);
  Value flagOf(graph::CallOp condition);
  Value notOf(mlir::Location loc, Value flag);
  /// A value that is made of stored tensors and of the token's position alone, entry by entry, such
  /// as the rates of a recurrence; null where it is made in another way.
  Value ofStored(Value value);
  Value madeOfStored(Value fixed);
  /// The same for what stands beside `data` in a sum or product, without the axis of one entry that
  /// it has for `data`'s tokens.
  Value ofStoredBeside(Value value, Value data);
  std::optional<double> fixedNumber(graph::StoredOp stored) const;
  bool collectStored(Value value, llvm::SmallVectorImpl<graph::CallOp> &calls,
                     llvm::SmallVectorImpl<Value> &leaves) const;
  bool isLeaf(Value value) const;
  Value leafOf(Value value);
  /// W x for a matrix whose rows are those of a stored one, each times a number; null where it is
  /// another.
  Value scaledRows(mlir::Location loc, Value weight, Value x);
  Value rowNorms(mlir::Location loc, Value matrix);
  /// Ops that are written out: null where they are not.
  Value writtenNorm(graph::CallOp call);
  Value limitedNorm(mlir::Location loc, xf::NormKind kind, Value x, double outside, double least,
                    bool isUnbiased);
  /// x and ε, where `value` is x + ε with a number ε ≥ 0; otherwise it and 0.
  std::pair<Value, double> withoutNumber(Value value) const;
  Value dividedBySum(graph::CallOp call);
  Value writtenActivation(graph::CallOp call);
  /// W_{sel_j} x_j, and Σ_j w_j y_j.
  Value expertProduct(graph::CallOp call);
  Value productFromLeft(graph::CallOp call);
  Value productOfRows(graph::CallOp call);
  Value productByRows(mlir::Location loc, Value a, Value b, mlir::RankedTensorType type);
  Value weighted(mlir::Location loc, Value w, Value y);
  Value each(mlir::Location loc, int64_t count);
  Value oneOfBank(mlir::Location loc, Value weight, bool turned, Value x);
  Value combined(graph::CallOp call, Value product);
  bool spellsTanhGelu(Value factor, Value x) const;
  Value reshaped(mlir::Location loc, Value value, mlir::Type type);
  /// `value` as `shape`, with the dimensions of that in another order.
  Value transposed(mlir::Location loc, Value value, llvm::ArrayRef<int64_t> shape,
                   llvm::ArrayRef<int64_t> order);
  Results everyOther(graph::CallOp call, Value x, int64_t dim, mlir::RankedTensorType type);
  /// `value` repeated along its axes of one entry (with `tiles` along any) and in front, to the
  /// shape of `type`; null where xf has no op for that.
  Value repeated(mlir::Location loc, Value value, mlir::RankedTensorType type, bool tiles = false);
  /// Two operands in the shape that they have together.
  bool matchShapes(mlir::Location loc, Value &a, Value &b);
  Value activation(mlir::Location loc, xf::ActivationKind kind, Value x);
  /// The axis of the token's value that axis `dim` of `value` is; none for one that it lacks.
  std::optional<int64_t> tokenDim(Value value, int64_t dim) const;
  /// The type with the fewest digits in which the program computes: numbers that are rounded to it
  /// are no further from what they should be than all others.
  mlir::FloatType arithmetic(graph::CallOp call) {
    if (!narrowest)
      narrowest = arithmeticOf(call->getParentOfType<graph::ProgramOp>());
    return narrowest;
  }
  bool isData(Value value) const { return axes.isData(value) || computed.contains(value); }

  mlir::OpBuilder &builder;
  const TokenAxes &axes;
  Naming naming;
  Capture &capture;
  Rotations &rotations;
  llvm::MapVector<std::pair<llvm::StringRef, mlir::Attribute>, Value> settings;
  llvm::DenseMap<Value, Value> values;
  llvm::DenseMap<Value, Value> parameters;
  mlir::FloatType narrowest;
  llvm::DenseMap<Value, std::optional<Gate>> gates;
  llvm::DenseMap<mlir::Operation *, Value> even; ///< the weights of 1 of a selection
  llvm::DenseMap<std::pair<Value, mlir::Operation *>, Value> spreads; ///< by the weights
  llvm::DenseSet<Value> computed; ///< made of stored tensors by ops of xf
};

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_RAISE_H
