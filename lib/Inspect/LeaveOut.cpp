// Which part of the context a patch comes from: the patch without that part.
//
// The parts are left out from the last to the first, so that the full run keeps the state of what
// is before the part, and only what follows it is run again.
#include "Subject.h"
#include "llvm/ADT/STLExtras.h"

using namespace ctxc;
using llvm::Error;

/// The positions of `range` that the reduced run does not keep.
static std::vector<int64_t> removedOf(PositionRange range, llvm::ArrayRef<int64_t> kept) {
  std::vector<int64_t> removed;
  for (int64_t position = range.first; position <= range.last; ++position)
    if (!llvm::binary_search(kept, position))
      removed.push_back(position);
  return removed;
}

/// Makes `full` hold the context without `removed`.
static Error fillWithout(SubjectRuns &runs, llvm::ArrayRef<int64_t> removed) {
  bool all = runs.executor.isBidirectional(); // then the context must see the token as well
  int64_t first = all ? 0 : removed.front(), end = runs.position() + all;
  runs.full->truncate(first);
  std::vector<int64_t> tokens, positions;
  for (int64_t position = first; position < end; ++position)
    if (!llvm::binary_search(removed, position)) {
      tokens.push_back(runs.tokens[position]);
      positions.push_back(position);
    }
  if (tokens.empty())
    return Error::success();
  auto logits = runs.executor.forward(*runs.full, tokens, positions, ForwardOptions());
  if (!logits)
    return logits.takeError();
  if (all)
    runs.full->truncate(runs.full->size() - 1);
  return Error::success();
}

static double ratio(double change, double whole) { return whole > 0 ? change / whole : 0; }

Error ctxc::leaveOut(SubjectRuns &runs, const PatchStep &whole, SubjectInspection &subject) {
  std::vector<std::string> texts;
  for (int64_t token : runs.tokens.drop_back())
    texts.push_back(runs.request.text ? runs.request.text(token) : "");
  std::vector<PositionRange> parts = cutContext(texts, runs.request.grain, runs.request.parts);
  for (PositionRange range : llvm::reverse(parts)) {
    LeftOut part;
    part.range = range;
    part.positions = removedOf(range, runs.kept);
    if (part.positions.empty())
      continue;
    if (Error error = fillWithout(runs, part.positions))
      return error;
    auto step = runs.executor.patch(*runs.full, *runs.reduced, runs.token(), runs.position(),
                                    runs.patchOptions());
    if (!step)
      return step.takeError();
    part.change = distance(whole.patch, step->patch);
    part.relative = {ratio(part.change.matrix, subject.norms.total.matrix),
                     ratio(part.change.vector, subject.norms.total.vector)};
    part.totalVariation =
        compareLogits(whole.fullLogits.doubles(), step->fullLogits.doubles()).totalVariation;
    part.next = step->fullNext;
    subject.leftOut.push_back(std::move(part));
  }
  std::reverse(subject.leftOut.begin(), subject.leftOut.end());
  return Error::success();
}
