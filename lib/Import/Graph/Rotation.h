//===- Rotation.h - rotary embeddings, known by what they do ---------------===//
//
// Models spell rotary embeddings in many ways: by halves, by pairs, with complex numbers. All are
// linear in what they rotate, and read nothing else but positions. So the ops between the two are
// run, for random numbers at several positions, and compared with the rotation that the first
// positions suggest.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_ROTATION_H
#define CTXC_IMPORT_ROTATION_H

#include "Capture.h"
#include "GraphValues.h"
#include "dialects/XF/XF.h"
#include <map>

namespace ctxc::pt2 {

/// What an xf.rotary says.
struct Rotation {
  xf::RotaryStyle style = xf::RotaryStyle::half;
  double amplitude = 1;
  llvm::SmallVector<float> frequencies;
  int64_t width = 0; ///< of a head
  /// The entries of a head are rotated in another order: first those of even places, then the
  /// others.
  bool parted = false;
};

class Rotations {
public:
  Rotations(const TokenAxes &axes, Capture &capture, Numbers numbers)
      : axes(axes), capture(capture), numbers(std::move(numbers)) {}

  const Numbers &numbersOf() const { return numbers; }
  /// The rotation that makes `rotated`, and of what; none where no rotation does.
  std::optional<std::pair<Rotation, mlir::Value>> find(mlir::Value rotated);

private:
  mlir::Value beforeRotation(mlir::Value rotated) const;
  std::optional<Rotation> measure(mlir::Value rotated, mlir::Value from);

  const TokenAxes &axes;
  Capture &capture;
  Numbers numbers;
  std::map<std::string, std::optional<Rotation>> known; ///< by function and stored tensors
};

} // namespace ctxc::pt2

#endif // CTXC_IMPORT_ROTATION_H
