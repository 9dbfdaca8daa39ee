// A model that gguf-split has divided into several files.
#include "ctxc/Checkpoint/Gguf.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace ctxc;

/// "-00002-of-00003.gguf"
static std::string endOf(int64_t part, int64_t count) {
  std::string end;
  raw_string_ostream(end) << format("-%05d-of-%05d.gguf", int(part), int(count));
  return end;
}

Expected<std::unique_ptr<GgufFile>> GgufFile::openModel(StringRef path) {
  auto file = open(path);
  if (!file)
    return file;
  for (StringRef key : {"split.count", "split.no"})
    if ((*file)->metadata().count(key.str()) && !(*file)->integer(key))
      return makeError(path + ": key " + quoted(key) + " is no number of parts");
  int64_t count = (*file)->integer("split.count").value_or(0);
  int64_t number = (*file)->integer("split.no").value_or(0);
  if (count < 0 || count > 99999 || number < 0 || (count > 0 && number >= count))
    return makeError(path + ": key 'split.no' = " + Twine(number) + " and key 'split.count' = " +
                     Twine(count) + " are no part of a number of parts");
  if (number > 0) {
    StringRef stem = path;
    std::string first = stem.consume_back(endOf(number + 1, count)) ? (stem + endOf(1, count)).str()
                                                                    : "NAME" + endOf(1, count);
    return makeError(path + ": is part " + Twine(number + 1) + " of " + Twine(count) +
                     " of a divided model (split.no); expected the first part, which has the "
                     "model's keys and finds the others: " +
                     first);
  }
  if (count > 1)
    if (Error error = (*file)->addParts(count))
      return std::move(error);
  return file;
}

Error GgufFile::addParts(int64_t count) {
  StringRef path = mapped->path(), stem = path;
  if (!stem.consume_back(endOf(1, count)))
    return makeError(path + ": is the first of " + Twine(count) +
                     " parts of a model (split.count);"
                     " expected a name that ends with " +
                     endOf(1, count) + ", from which the names of the others follow");
  StringSet<> names;
  for (const TensorView &view : views)
    names.insert(view.name);
  for (int64_t part = 2; part <= count; ++part) {
    std::string name = (stem + endOf(part, count)).str();
    if (!sys::fs::exists(name))
      return makeError(name + ": is missing: it is part " + Twine(part) + " of the " +
                       Twine(count) + " that " + path + " belongs to; fetch it");
    auto opened = open(name);
    if (!opened)
      return opened.takeError();
    GgufFile &other = **opened;
    if (other.integer("split.no") != part - 1 || other.integer("split.count") != count)
      return makeError(name +
                       ": its keys 'split.no' and 'split.count' do not say that it is part " +
                       Twine(part) + " of " + Twine(count) + ", as its name does");
    for (const TensorView &view : other.tensors()) {
      if (!names.insert(view.name).second)
        return makeError(name + ": tensor " + quoted(view.name) + " is in another part, too");
      views.push_back(view);
    }
    others.push_back(std::move(*opened));
  }
  std::optional<int64_t> total = integer("split.tensors.count");
  if (total && *total != int64_t(views.size()))
    return makeError(path + ": key 'split.tensors.count' = " + Twine(*total) + "; the " +
                     Twine(count) + " parts have " + Twine(views.size()) + " tensors");
  return Error::success();
}
