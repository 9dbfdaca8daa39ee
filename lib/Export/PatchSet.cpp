#include "ctxc/Export/PatchSet.h"
#include "PatchMetadata.h"
#include "PatchTensors.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Count.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc;

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

static std::map<std::string, std::string>
setStrings(const PatchMetadata &last, ArrayRef<int64_t> positions, ArrayRef<std::string> digests) {
  std::map<std::string, std::string> strings = metadataStrings(last);
  strings["format"] = "ctxc-patch";
  strings["format_version"] = "2";
  strings.erase("position");
  strings["positions"] = listText(positions);
  if (strings.erase("rows_digest"))
    strings["rows_digests"] = join(digests, ",");
  return strings;
}

/// Reads what setStrings writes. Every problem is passed to `report`.
static PatchMetadata parseSet(std::map<std::string, std::string> strings,
                              std::vector<int64_t> &positions, std::vector<std::string> &digests,
                              function_ref<void(const Twine &)> report) {
  bool isAscending = parseList(strings["positions"], positions) && !positions.empty() &&
                     is_sorted(positions, std::less_equal<>());
  if (!isAscending) {
    report("found positions " + quoted(strings["positions"]) +
           ", expected ascending positions separated by commas");
    positions = {0};
  }
  strings["format_version"] = "1";
  strings["position"] = std::to_string(positions.back());
  auto given = strings.find("rows_digests");
  if (given != strings.end()) {
    for (StringRef digest : split(given->second, ','))
      digests.push_back(digest.str());
    if (digests.size() != positions.size())
      report("found " + counted(digests.size(), "digest") +
             " of embeddings, expected one for each of " + counted(positions.size(), "position"));
    strings["rows_digest"] = digests.back();
  }
  digests.resize(positions.size());
  return parsePatchMetadata(strings, report);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

class SetWriter {
public:
  SetWriter(StringRef path, ArrayRef<int64_t> positions, const PatchMetadata &last)
      : path(path), positions(positions), last(last) {
    bool hasEmbeddings = false;
    for (auto [i, token] : enumerate(last.tokens)) {
      hasEmbeddings |= token == -1;
      if (digests.size() < positions.size() && positions[digests.size()] == int64_t(i))
        digests.push_back(hasEmbeddings ? std::string(64, '0') : "");
    }
  }

  Error add(raw_pwrite_stream &os, const Patch &patch, const PatchMetadata &metadata) {
    if (done == positions.size() || metadata.position != positions[done])
      return makeError(path + ": got the patch of position " + Twine(metadata.position) +
                       " out of order");
    if (Error e = checkPatch(patch))
      return e;
    Expected<double> rounding = roundingOf(patch, last.factors);
    if (!rounding)
      return rounding.takeError();
    last.rounding = std::max(last.rounding, *rounding);
    std::vector<PatchTensor> tensors = tensorsOf(patch);
    if (done == 0)
      if (Error e = begin(os, tensors))
        return e;
    if (tensors.size() != places.size())
      return differs(metadata.position);
    for (const PatchTensor &tensor : tensors) {
      auto place = places.find(tensor.name);
      if (place == places.end() || place->second.shape != tensor.shape)
        return differs(metadata.position);
      std::vector<char> bytes = bytesAs(last.factors, *tensor.values);
      os.pwrite(bytes.data(), bytes.size(), place->second.offset + done * bytes.size());
    }
    digests[done++] = metadata.embeddingsDigest;
    return Error::success();
  }

  /// Writes the header again, with what is known now.
  Expected<double> end(raw_pwrite_stream &os) {
    if (done != positions.size())
      return makeError(path + ": got " + counted(done, "patch") + ", expected " +
                       Twine(positions.size()));
    Expected<SafetensorsLayout> layout = layOut();
    if (!layout)
      return layout.takeError();
    os.pwrite(layout->header.data(), layout->header.size(), 0);
    return last.rounding;
  }

private:
  Expected<SafetensorsLayout> layOut() {
    return layOutSafetensors(path, sources, setStrings(last, positions, digests));
  }

  /// Takes the room on the disk that the file needs.
  Error begin(raw_pwrite_stream &os, ArrayRef<PatchTensor> tensors) {
    for (const PatchTensor &tensor : tensors) {
      TensorSource source{tensor.name, last.factors, {int64_t(positions.size())}, {}};
      append_range(source.shape, tensor.shape);
      sources.push_back(std::move(source));
    }
    Expected<SafetensorsLayout> layout = layOut();
    if (!layout)
      return layout.takeError();
    for (auto [source, offset] : zip_equal(sources, layout->offsets))
      places[source.name] = {offset, {source.shape.begin() + 1, source.shape.end()}};
    os << layout->header;
    constexpr uint64_t atOnce = 1 << 20;
    for (uint64_t left = layout->size - layout->header.size(); left; left -= std::min(left, atOnce))
      os.write_zeros(std::min(left, atOnce));
    return Error::success();
  }

  Error differs(int64_t position) {
    return makeError(path + ": the patch of position " + Twine(position) +
                     " changes other parameters than that of position " + Twine(positions[0]) +
                     ", as in a mixture of experts; write a directory, with a file for each");
  }

  struct Place {
    uint64_t offset;
    SmallVector<int64_t, 4> shape; ///< of one position
  };
  StringRef path;
  ArrayRef<int64_t> positions;
  PatchMetadata last;
  std::vector<std::string> digests;
  std::vector<TensorSource> sources;
  std::map<std::string, Place> places;
  size_t done = 0;
};

} // namespace

Expected<double> ctxc::writePatchSet(StringRef path, ArrayRef<int64_t> positions,
                                     const PatchMetadata &last,
                                     function_ref<Error(PatchWriter)> make) {
  double rounding = 0;
  Error failure = writeFileAtomically(path, [&](raw_pwrite_stream &os) -> Error {
    SetWriter writer(path, positions, last);
    if (Error e = make([&](const Patch &patch, const PatchMetadata &metadata) {
          return writer.add(os, patch, metadata);
        }))
      return e;
    Expected<double> ended = writer.end(os);
    if (!ended)
      return ended.takeError();
    rounding = *ended;
    return Error::success();
  });
  if (failure)
    return std::move(failure);
  return rounding;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Expected<PatchSet> PatchSet::open(StringRef path) {
  Expected<std::unique_ptr<SafetensorsFile>> file = SafetensorsFile::open(path);
  if (!file)
    return file.takeError();
  PatchSet set;
  set.path = path.str();
  const std::map<std::string, std::string> &strings = (*file)->metadata();
  if (!isOfSeveral(strings)) {
    auto one = readPatchFile(path);
    if (!one)
      return one.takeError();
    std::tie(set.single, set.metadata) = std::move(*one);
    set.at = {set.metadata.position};
    return set;
  }
  Problems problems(path.str() + ": ");
  set.metadata =
      parseSet(strings, set.at, set.digests, [&](const Twine &message) { problems.add(message); });
  for (const TensorView &view : (*file)->tensors())
    if (view.shape.empty() || view.shape.front() != int64_t(set.at.size()))
      problems.add("tensor " + quoted(view.name) + ": found shape " + shapeText(view.shape) +
                   ", expected " + Twine(set.at.size()) + " as its first size, one for each of " +
                   "the positions");
  if (Error e = problems.take())
    return std::move(e);
  set.file = std::move(*file);
  return set;
}

Expected<std::pair<Patch, PatchMetadata>> PatchSet::read(int64_t position) const {
  auto found = lower_bound(at, position);
  if (found == at.end() || *found != position)
    return makeError(path + ": has no patch of position " + Twine(position) + "; it has " +
                     counted(at.size(), "patch") + ", from position " + Twine(at.front()) + " to " +
                     Twine(at.back()));
  if (!file)
    return std::make_pair(single, metadata);
  const int64_t index = found - at.begin();
  std::vector<TensorView> slices;
  for (const TensorView &view : file->tensors()) {
    TensorView slice = view;
    slice.shape.erase(slice.shape.begin());
    slice.bytes = view.bytes / at.size();
    slice.data = view.data + index * slice.bytes;
    slices.push_back(std::move(slice));
  }
  Problems problems(path + ": position " + std::to_string(position) + ": ");
  Patch patch;
  Error notFinite = patchOf(slices, metadata.factors, "", problems, patch);
  if (Error e = joinErrors(problems.take(), std::move(notFinite)))
    return std::move(e);
  PatchMetadata about = metadata;
  about.position = position;
  about.tokens.resize(position + 1);
  about.embeddingsDigest = digests[index];
  erase_if(about.kept, [&](int64_t kept) { return kept >= position; });
  return std::make_pair(std::move(patch), std::move(about));
}
