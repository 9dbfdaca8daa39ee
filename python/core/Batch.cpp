// Many prompts: lib/Batch.
#include "ctxc/Batch/Batch.h"
#include "Core.h"
#include "ctxc/Export/PatchShard.h"
#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace ctxc;
using namespace ctxc::python;

namespace {

/// The counts of BatchCounts, by name.
nb::dict runFile(BoundModel &self, const std::string &prompts, const std::string &directory,
                 const std::vector<std::string> &make, bool allPositions,
                 std::pair<int64_t, int64_t> part, int64_t window, int64_t shardBytes,
                 const nb::object &progress) {
  BatchRequest request;
  request.prompts = prompts;
  request.directory = directory;
  request.allPositions = allPositions;
  std::vector<llvm::StringRef> words(make.begin(), make.end());
  request.make = self.take(batchMake(words));
  std::tie(request.part, request.parts) = part;
  request.window = window;
  request.shardBytes = shardBytes;
  request.progress = [&](int64_t done, int64_t) { self.callBack(progress, done); };
  BatchResult result = self.take(unlocked([&] { return runBatch(self.get(), request); }));
  nb::dict counts;
  for (auto [name, count] : {std::pair("records", result.counts.records),
                             {"patches", result.counts.patches},
                             {"errors", result.counts.errors},
                             {"compared", result.counts.compared},
                             {"unequal", result.counts.unequal},
                             {"added", result.added},
                             {"tokens", result.tokens},
                             {"read", result.read}})
    counts[name] = count;
  return counts;
}

std::shared_ptr<BoundPatch> fromShard(const std::string &path, int64_t line, int64_t position) {
  auto found = readFromShard(path, line, position);
  if (!found)
    raiseError(found.takeError());
  return std::make_shared<BoundPatch>(BoundPatch{
      std::make_shared<const Patch>(std::move(found->first)), std::move(found->second), nullptr});
}

} // namespace

void python::addBatch(nb::class_<BoundModel> &model, nb::module_ &m) {
  model.def("batch", &runFile, nb::arg("prompts"), nb::arg("directory"), nb::arg("make"),
            nb::arg("all_positions"), nb::arg("part"), nb::arg("window"), nb::arg("shard_bytes"),
            nb::arg("progress").none());
  m.def("patch_from_shard", &fromShard);
}
