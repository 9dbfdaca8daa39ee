#include "ctxc/Checkpoint/Checkpoint.h"
#include "ScaledTensors.h"
#include "ShardIndex.h"
#include "ctxc/Checkpoint/FileDigest.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include <set>

using namespace llvm;
using namespace ctxc;

namespace {

constexpr uint64_t maxConfigBytes = 16 << 20;
constexpr unsigned maxReported = 50;

std::string inside(StringRef directory, StringRef name) {
  SmallString<256> path(directory);
  sys::path::append(path, name);
  return path.str().str();
}

Expected<json::Value> readConfig(StringRef directory) {
  std::string path = inside(directory, "config.json");
  if (!sys::fs::exists(path))
    return makeError(directory + ": has no config.json; expected a Hugging Face checkpoint "
                                 "directory");
  Expected<std::string> text = readSmallFile(path, maxConfigBytes);
  if (!text)
    return text.takeError();
  Expected<json::Value> value = parsePythonJson(*text, path);
  if (value && !value->getAsObject())
    return makeError(path + ": expected a JSON object");
  return value;
}

/// The error for a directory without either of the two file names.
Error noWeights(StringRef directory) {
  std::string other, pickled;
  std::error_code ec;
  for (sys::fs::directory_iterator it(directory, ec), end; it != end && !ec; it.increment(ec)) {
    StringRef name = sys::path::filename(it->path());
    if (name.ends_with(".safetensors"))
      other = name.str();
    if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth"))
      pickled = name.str();
  }
  std::string hint;
  if (!other.empty())
    hint = "; " + quoted(other) + " is there, but no index that says what it holds";
  else if (!pickled.empty())
    hint = "; " + quoted(pickled) +
           " is there, but pickled weights are never read: convert them to safetensors";
  return makeError(directory + ": has neither model.safetensors nor model.safetensors.index.json" +
                   hint);
}

/// The files of weights.
struct ShardList {
  std::set<std::string> names;
  std::string indexPath;
  std::map<std::string, std::string> index; ///< tensor to file, where there are several
};

Expected<ShardList> listShards(StringRef directory) {
  ShardList list;
  list.indexPath = inside(directory, "model.safetensors.index.json");
  if (sys::fs::exists(inside(directory, "model.safetensors"))) {
    list.names.insert("model.safetensors");
    return list;
  }
  if (!sys::fs::exists(list.indexPath))
    return noWeights(directory);
  if (Error error = readShardIndex(list.indexPath).moveInto(list.index))
    return std::move(error);
  for (const auto &[tensor, file] : list.index)
    list.names.insert(file);
  return list;
}

/// How many shards are missing beside the first one, and which, a few of them.
std::string othersText(const std::set<std::string> &absent, size_t all) {
  constexpr size_t shown = 5;
  if (absent.size() == 1)
    return "";
  std::vector<std::string> names(std::next(absent.begin()), absent.end());
  bool isCut = names.size() > shown;
  names.resize(std::min(names.size(), shown));
  return (", and " + Twine(absent.size() - 1) + " more of the " + Twine(all) +
          " shards, which are missing too: " + join(names, ", ") + (isCut ? ", …" : ""))
      .str();
}

} // namespace

Expected<std::unique_ptr<Checkpoint>> Checkpoint::open(StringRef directory) {
  if (!sys::fs::exists(directory))
    return makeError(directory + ": no such file or directory");
  if (!sys::fs::is_directory(directory))
    return openGguf(directory);
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint);
  checkpoint->path = directory.str();
  Expected<json::Value> config = readConfig(directory);
  if (!config)
    return config.takeError();
  checkpoint->configuration = std::move(*config);

  Expected<ShardList> list = listShards(directory);
  if (!list)
    return list.takeError();

  Error errors = Error::success();
  unsigned reported = 0;
  auto report = [&](Error error) {
    if (reported++ < maxReported)
      errors = joinErrors(std::move(errors), std::move(error));
    else
      consumeError(std::move(error));
  };
  std::set<std::string> unread, absent;
  std::map<std::string, std::string> home; // tensor to the file it was found in
  for (const std::string &name : list->names) {
    std::string path = inside(directory, name);
    if (!sys::fs::exists(path)) {
      unread.insert(name);
      absent.insert(name);
      continue;
    }
    Expected<std::unique_ptr<SafetensorsFile>> file = SafetensorsFile::open(path);
    if (!file) {
      report(file.takeError());
      unread.insert(name);
      continue;
    }
    for (const TensorView &view : (*file)->tensors()) {
      auto [at, isNew] = home.emplace(view.name, name);
      if (!isNew) {
        report(makeError(path + ": tensor " + quoted(view.name) + " is also in " + at->second +
                         ", expected it in one shard"));
        continue;
      }
      checkpoint->views.push_back(view);
    }
    checkpoint->shards.push_back(std::move(*file));
  }
  if (!absent.empty())
    report(makeError(inside(directory, *absent.begin()) + ": the index names this shard, but it " +
                     "is missing; fetch it" + othersText(absent, list->names.size())));
  // The tensors that are not where the index says, by where that is and where they are.
  std::map<std::pair<std::string, std::string>, std::vector<StringRef>> astray;
  for (const auto &[tensor, file] : list->index) {
    auto found = home.find(tensor);
    std::string there = found == home.end() ? "" : found->second;
    if (!unread.count(file) && there != file)
      astray[{file, there}].push_back(tensor);
  }
  for (const auto &[files, tensors] : astray)
    report(makeError(list->indexPath + ": " +
                     (tensors.size() == 1 ? "tensor " + quoted(tensors.front()) + " is"
                                          : Twine(tensors.size()).str() + " tensors, such as " +
                                                quoted(tensors.front()) + ", are") +
                     " not in " + files.first +
                     (files.second.empty() ? "" : " but in " + files.second)));
  if (reported > maxReported)
    errors = joinErrors(std::move(errors),
                        makeError(directory + ": and " + Twine(reported - maxReported) +
                                  " more problems of its weight files"));
  if (errors)
    return std::move(errors);
  Expected<std::vector<TensorView>> joined =
      joinScales(checkpoint->config(), checkpoint->configPath(), std::move(checkpoint->views));
  if (!joined)
    return joined.takeError();
  checkpoint->setTensors(std::move(*joined));
  return checkpoint;
}

void Checkpoint::setTensors(std::vector<TensorView> tensors) {
  views = std::move(tensors);
  for (auto [i, view] : llvm::enumerate(views))
    byName[view.name] = i;
}

Expected<std::unique_ptr<Checkpoint>> Checkpoint::openGguf(StringRef path) {
  Expected<std::unique_ptr<GgufFile>> file = GgufFile::openModel(path);
  if (!file)
    return file.takeError();
  Expected<GgufModel> model = readGgufModel(**file);
  if (!model)
    return model.takeError();
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint);
  checkpoint->path = path.str();
  checkpoint->gguf = std::move(*file);
  checkpoint->configuration = std::move(model->config);
  checkpoint->storedConventions = model->conventions;
  checkpoint->setTensors(std::move(model->tensors));
  return checkpoint;
}

Expected<std::unique_ptr<Checkpoint>> Checkpoint::fromMemory(StringRef name, StringRef config,
                                                             ArrayRef<MemoryTensor> tensors) {
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint);
  checkpoint->path = name.str();
  checkpoint->inMemory = true;
  Expected<json::Value> value = parsePythonJson(config, checkpoint->configPath());
  if (!value)
    return value.takeError();
  if (!value->getAsObject())
    return makeError(checkpoint->configPath() + ": expected a JSON object");
  checkpoint->configuration = std::move(*value);

  Error errors = Error::success();
  auto report = [&](const MemoryTensor &tensor, const Twine &problem) {
    errors = joinErrors(std::move(errors),
                        makeError(name + ": tensor " + quoted(tensor.name) + " " + problem));
  };
  std::vector<TensorView> views;
  std::set<std::string> names;
  for (const MemoryTensor &tensor : tensors) {
    TensorView view;
    view.name = tensor.name;
    view.dtype = tensor.dtype;
    view.shape = tensor.shape;
    view.data = static_cast<const uint8_t *>(tensor.data);
    view.file = name.str();
    if (!names.insert(tensor.name).second)
      report(tensor, "is given twice");
    if (llvm::any_of(tensor.shape, [](int64_t size) { return size < 0; })) {
      report(tensor, "has shape " + shapeText(tensor.shape) + ", expected sizes of 0 or more");
      continue;
    }
    view.bytes = bytesOf(view.dtype, view.elements());
    if (view.bytes && !view.data)
      report(tensor, "has no memory, expected " + Twine(view.bytes) + " bytes");
    views.push_back(std::move(view));
  }
  if (errors)
    return std::move(errors);
  auto joined = joinScales(checkpoint->config(), checkpoint->configPath(), std::move(views));
  if (!joined)
    return joined.takeError();
  checkpoint->setTensors(std::move(*joined));
  return checkpoint;
}

std::string Checkpoint::configPath() const { return gguf ? path : inside(path, "config.json"); }

std::vector<Checkpoint::WeightFile> Checkpoint::weightFiles() const {
  std::vector<WeightFile> files;
  for (const std::unique_ptr<SafetensorsFile> &shard : shards)
    files.push_back({&shard->file(), shard->dataStart()});
  if (gguf) {
    files.push_back({&gguf->file(), gguf->dataStart()});
    for (const std::unique_ptr<GgufFile> &part : gguf->parts())
      files.push_back({&part->file(), part->dataStart()});
  }
  return files;
}

const TensorView *Checkpoint::find(StringRef name) const {
  auto found = byName.find(name.str());
  return found == byName.end() ? nullptr : &views[found->second];
}

std::optional<std::string> Checkpoint::tokenizerPath() const {
  if (inMemory)
    return std::nullopt;
  if (gguf)
    return gguf->metadata().count("tokenizer.ggml.tokens") ? std::optional(path) : std::nullopt;
  std::string tokenizer = inside(path, "tokenizer.json");
  if (!sys::fs::is_regular_file(tokenizer))
    tokenizer = inside(path, "tokenizer.model");
  if (!sys::fs::is_regular_file(tokenizer))
    return std::nullopt;
  return tokenizer;
}

Error Checkpoint::read(const TensorView &tensor, uint64_t offset,
                       MutableArrayRef<uint8_t> to) const {
  if (inMemory) {
    std::memcpy(to.data(), tensor.data + offset, to.size());
    return Error::success();
  }
  for (WeightFile weights : weightFiles())
    if (weights.file->path() == tensor.file)
      return weights.file->read(tensor.data - weights.file->bytes().data() + offset, to);
  return makeError(tensor.file + ": tensor " + quoted(tensor.name) + " is not of the checkpoint " +
                   path);
}

Error Checkpoint::checkUnchanged() const {
  Error errors = Error::success();
  for (WeightFile weights : weightFiles())
    errors = joinErrors(std::move(errors), weights.file->checkUnchanged());
  return errors;
}

std::string Checkpoint::hashOfMemory() const {
  SHA256 sum;
  for (const auto &[name, index] : byName) { // in order of name
    const TensorView &view = views[index];
    sum.update(quoted(name) + " " + nameOf(view.dtype).str() + " " + shapeText(view.shape) + " ");
    sum.update(BLAKE3::hash(ArrayRef(view.data, view.bytes))); // several times as fast
  }
  return toHex(sum.final(), /*LowerCase=*/true);
}

Expected<std::string> Checkpoint::hash() const {
  if (inMemory)
    return hashOfMemory();
  SHA256 sum;
  for (WeightFile weights : weightFiles()) {
    Expected<std::string> digest = digestOfFile(*weights.file, weights.dataStart);
    if (!digest)
      return digest.takeError();
    sum.update(*digest);
  }
  return toHex(sum.final(), /*LowerCase=*/true);
}
