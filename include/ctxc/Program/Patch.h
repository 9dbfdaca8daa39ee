//===- Patch.h - a patch: the change of each parameter, factored ----------===//
//
// The one in-memory form of a patch, for all that produce it (compiled kernels, the reference, a
// file) and all that use it (the patched run, a file, an adapter). Numbers are double so that the
// float64 reference loses nothing; compiled kernels produce and take float32, which double holds
// exactly.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_PATCH_H
#define CTXC_PROGRAM_PATCH_H

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace ctxc {

/// The change of one stored parameter, in its stored orientation and
/// parametrisation: stored + change is the patched tensor.
struct ParameterPatch {
  enum class Kind {
    Rank1, ///< change = u vᵀ; stored shape (m, n), u: m entries, v: n entries
    Delta, ///< change = delta; of the stored shape
  };

  std::string parameter; ///< full name in the checkpoint; "name[3]" for one slice along the first
                         ///< dimension of a tensor
  Kind kind = Kind::Rank1;
  std::vector<int64_t> shape; ///< the stored shape, or the slice's
  std::vector<double> u, v;   ///< Rank1
  std::vector<double> delta;  ///< Delta
};

/// The patches of one token, all layers, in layer order.
struct Patch {
  std::vector<ParameterPatch> parameters;

  void add(std::vector<ParameterPatch> more) {
    parameters.insert(parameters.end(), std::make_move_iterator(more.begin()),
                      std::make_move_iterator(more.end()));
  }
};

} // namespace ctxc

#endif // CTXC_PROGRAM_PATCH_H
