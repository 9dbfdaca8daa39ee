#include "StoredPatch.h"
#include "ctxc/Support/Count.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Expected;

OptionSpec driver::positionOption() {
  return {"--position", "N", "which patch of a file with several: the one for this position"};
}

Expected<std::optional<int64_t>> driver::givenPosition(const Arguments &arguments) {
  if (!arguments.has("--position"))
    return std::nullopt;
  auto position = arguments.integer("--position", 0, INT64_MAX, 0);
  if (!position)
    return position.takeError();
  return *position;
}

Expected<std::pair<Patch, PatchMetadata>> driver::readStoredPatch(const Arguments &arguments,
                                                                  llvm::StringRef path) {
  Expected<std::optional<int64_t>> position = givenPosition(arguments);
  if (!position)
    return position.takeError();
  Expected<PatchSet> set = PatchSet::open(path);
  if (!set)
    return set.takeError();
  llvm::ArrayRef<int64_t> all = set->positions();
  if (!*position && all.size() > 1)
    return makeError(path + ": has the patches of " + counted(all.size(), "position") + ", from " +
                     llvm::Twine(all.front()) + " to " + llvm::Twine(all.back()) +
                     "; name one with --position");
  return set->read(position->value_or(all.front()));
}
