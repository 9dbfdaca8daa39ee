#include "lib/Lowering/GPU/KeepApart.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ctxc;
using namespace ctxc::gpu_lowering;

namespace {

/// What an op touches of a buffer where all outer loops are at zero: elements `begin` to `end`; and
/// how far one step of each outer loop moves that range.
struct Part {
  Extent begin, end;
  SmallVector<Extent> steps;
};

/// The parts of one buffer that the ops of a group touch. `wide` are the outer loops with more than
/// one step, among those of `sizes`.
class Parts {
public:
  Parts(ArrayRef<size_t> wide, ArrayRef<int64_t> sizes) : wide(wide), sizes(sizes) {}

  /// Adds what the op touches; false where that cannot be determined.
  bool add(const RowOp &row, Value root) {
    for (const std::optional<Access> &access : row.accesses)
      if (access && access->view.root == root && !add(row, *access, Extent()))
        return false;
    for (const Gather &gather : row.gathered)
      if (gather.access.view.root == root &&
          !add(row, gather.access, gather.length + fixedExtent(-1)))
        return false;
    if (row.support)
      for (const View &view : row.support->memory)
        if (view.root == root && !addSupport(view))
          return false;
    return true;
  }

  /// Whether the parts of different indices of the outer loops are disjoint.
  bool keepApart() const {
    for (const Part &a : parts) {
      if (a.steps != parts.front().steps)
        return false;
      for (size_t d = 0; d + 1 < wide.size(); ++d)
        if (!isAtMost(a.steps[d + 1] * sizes[wide[d + 1]], a.steps[d]))
          return false;
      for (const Part &b : parts)
        if (!isLess(a.end, b.begin + a.steps.back()) && !isLess(lastOf(a), b.begin) &&
            !isLess(lastOf(b), a.begin))
          return false;
    }
    return true;
  }

private:
  /// The last element that is touched at any index.
  Extent lastOf(const Part &part) const {
    Extent last = part.end;
    for (auto [d, step] : llvm::zip(wide, part.steps))
      last = last + step * (sizes[d] - 1);
    return last;
  }
  bool add(const RowOp &row, const Access &access, Extent length) {
    Part part{access.offset, access.offset + length, {}};
    for (size_t d : wide)
      part.steps.push_back(access.steps[d]);
    for (size_t d = sizes.size(); d < row.loops.size(); ++d) {
      auto more = product(access.steps[d], row.loops[d] + fixedExtent(-1));
      if (!more)
        return false;
      part.end = part.end + *more;
    }
    parts.push_back(part);
    return true;
  }
  /// Adds the memory of one row, or, where all rows share the memory, all of it.
  bool addSupport(const View &view) {
    if (view.strides.empty()) {
      parts.push_back({{}, *gpu_lowering::elementsOf(view.root), {Extent()}});
      return true;
    }
    Extent row = view.strides[0];
    if (!view.offset.isFixed() || !row.isFixed())
      return false;
    Extent begin = fixedExtent(view.offset.fixed / row.fixed * row.fixed);
    parts.push_back({begin, begin + row + fixedExtent(-1), {row}});
    return true;
  }

  ArrayRef<size_t> wide;
  ArrayRef<int64_t> sizes;
  SmallVector<Part> parts;
};

} // namespace

/// Collects what an op may write. A support call may write all memory that it has for each row.
static void addWritten(const RowOp &row, llvm::SetVector<Value> &written) {
  for (const std::optional<Access> &access : ArrayRef(row.accesses).drop_front(row.inputs))
    written.insert(access->view.root);
  if (row.support)
    for (const View &view : row.support->memory)
      if (!view.strides.empty())
        written.insert(view.root);
}

bool gpu_lowering::keepApart(ArrayRef<RowOp> ops, ArrayRef<int64_t> outer) {
  SmallVector<size_t> wide; // outer loops of more than one step
  for (auto [d, size] : llvm::enumerate(outer))
    if (size > 1)
      wide.push_back(d);
  if (wide.empty())
    return true;
  llvm::SetVector<Value> written;
  for (const RowOp &row : ops) {
    if (row.support && (row.loops.empty() || wide.size() > 1))
      return false;
    addWritten(row, written);
  }
  return llvm::all_of(written, [&](Value root) {
    Parts parts(wide, outer);
    return llvm::all_of(ops, [&](const RowOp &row) { return parts.add(row, root); }) &&
           parts.keepApart();
  });
}
