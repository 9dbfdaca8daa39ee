// An entry of a value of positions alone, followed through the ops that make it (see Mask.h).
#ifndef CTXC_IMPORT_FOLLOWER_H
#define CTXC_IMPORT_FOLLOWER_H

#include "GraphValues.h"
#include "Steps.h"
#include "ctxc/Analysis/TokenAxes.h"
#include "llvm/ADT/SmallVector.h"

namespace ctxc::pt2 {

int64_t rankOf(mlir::Value value);
/// Whether the axis has one entry.
bool isOne(mlir::Value value, int64_t axis);

class Follower {
public:
  using Found = std::optional<Entry>;
  using Places = llvm::SmallVector<Line>; ///< one for each axis

  Follower(const TokenAxes &axes, const Numbers &numbers, std::string &obstacle)
      : axes(axes), numbers(numbers), obstacle(obstacle) {}

  /// The stored tensor of which `value` has the entry at `at`, and the place of that entry in it;
  /// none where ops compute with it on the way.
  struct Origin {
    graph::StoredOp stored;
    Places at;
  };
  std::optional<Origin> originOf(mlir::Value value, const Places &at);

  /// The entry at `at`; none where it is another function of the places, or made by an op that is
  /// not known here.
  Found entry(mlir::Value value, const Places &at);

private:
  using Value = mlir::Value;
  using Method = Found (Follower::*)(graph::CallOp, const Places &);
  /// AtenOps.def's for the call, null where there is none; on the way to an origin, only of what
  /// keeps numbers.
  Method methodOf(graph::CallOp call);

  // What an entry is.
  Found stored(graph::StoredOp op, const Places &at);
  Found none(graph::CallOp, const Places &) { return std::nullopt; }
  Found counted(graph::CallOp call, const Places &at);
  Found filled(graph::CallOp call, const Places &at);
  Found copied(graph::CallOp call, const Places &at);
  Found triangle(graph::CallOp call, const Places &at);
  Found chosen(graph::CallOp call, const Places &at);
  Found joined(graph::CallOp call, const Places &at);
  Found negated(graph::CallOp call, const Places &at);
  Found function(graph::CallOp call, const Places &at);
  Found steps(graph::CallOp call, const Places &at);
  Found sums(graph::CallOp call, const Places &at);

  // Where it comes from.
  Found expanded(graph::CallOp call, const Places &at) { return argument(call, "self", at); }
  Found repeated(graph::CallOp call, const Places &at);
  Found reshaped(graph::CallOp call, const Places &at);
  Found turned(graph::CallOp call, const Places &at);
  Found part(graph::CallOp call, const Places &at);
  Found concatenated(graph::CallOp call, const Places &at);
  Found indexed(graph::CallOp call, const Places &at);
  Found gathered(graph::CallOp call, const Places &at);
  Found row(graph::CallOp call, const Places &at);
  Found picked(graph::CallOp call, const Places &at);
  /// The number that an index is.
  std::optional<Line> index(mlir::Value value, const Places &at);

  /// The entry of an argument that meets the result's axes from the last one on, or of a number.
  Found argument(graph::CallOp call, llvm::StringRef name, const Places &at);
  Found fail(graph::CallOp call) {
    if (obstacle.empty())
      obstacle = call.getTarget().str();
    return std::nullopt;
  }

  const TokenAxes &axes;
  const Numbers &numbers;
  std::string &obstacle;
  Origin *origin = nullptr; ///< while a stored tensor is looked for
  unsigned followed = 0, depth = 0;
};

/// The place of each token's own number in `value`; none where a token has several.
std::optional<Follower::Places> placesOfToken(mlir::Value value, const TokenAxes &axes);

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_FOLLOWER_H
