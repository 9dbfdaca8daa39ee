//===- Checkpoint.h - a stored model, read only ---------------------------===//
//
// The only access to a model's stored form: a Hugging Face directory, with
// config.json and the tensors of model.safetensors or of the shards that
// model.safetensors.index.json names; or a GGUF file, whose metadata and
// tensors then have Hugging Face's names. Neither is trusted.
// Pickled weights (.bin, .pt, .pth) are never read.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_CHECKPOINT_CHECKPOINT_H
#define CTXC_CHECKPOINT_CHECKPOINT_H

#include "ctxc/Checkpoint/GgufModel.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace ctxc {

/// A tensor in the caller's memory: row-major elements of `dtype` at `data`, at any address.
struct MemoryTensor {
  std::string name;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  const void *data = nullptr;
};

class Checkpoint {
public:
  /// Opens and checks a directory. All problems of the index and of every shard
  /// are reported together. A shard's name must be a plain *.safetensors file
  /// name; it may be a symbolic link (as in hub caches) to a regular
  /// file. A tensor that the index lists must be in the shard that it names, and in
  /// no other; tensors that the index does not list are read as well; its
  /// metadata is not needed. If both exist, model.safetensors is read and the index is not, as in
  /// transformers.
  static llvm::Expected<std::unique_ptr<Checkpoint>> open(llvm::StringRef directoryOrGguf);

  /// A checkpoint whose tensors are in the caller's memory, which must outlive it: `config` is the
  /// text of a config.json, messages begin with `name`. All problems are reported together: text
  /// that is no JSON object, a name given twice, a dimension below 0, a tensor without memory.
  static llvm::Expected<std::unique_ptr<Checkpoint>>
  fromMemory(llvm::StringRef name, llvm::StringRef config, llvm::ArrayRef<MemoryTensor> tensors);

  /// The directory, or the file, as it was given to open; the name given to fromMemory.
  llvm::StringRef directory() const { return path; }
  /// The file that says what the architecture is: DIRECTORY/config.json, or the GGUF file.
  std::string configPath() const;

  /// config.json, or the same made from a GGUF file's metadata.
  const llvm::json::Object &config() const { return *configuration.getAsObject(); }

  /// All tensors, by file name, then offset. They point into maps that live as
  /// long as the checkpoint. A tensor whose scales are stored in another one, according to a
  /// quantization_config of fp8 or mxfp4, is listed as one tensor of a quantised type.
  llvm::ArrayRef<TensorView> tensors() const { return views; }
  const TensorView *find(llvm::StringRef name) const;

  /// DIRECTORY/tokenizer.json, or else DIRECTORY/tokenizer.model, or else none; the GGUF file
  /// itself if it has a vocabulary.
  std::optional<std::string> tokenizerPath() const;

  bool isGguf() const { return gguf != nullptr; }
  const StorageConventions &conventions() const { return storedConventions; }

  /// The safetensors files, by name.
  llvm::ArrayRef<std::unique_ptr<SafetensorsFile>> files() const { return shards; }

  /// Copies bytes [offset, offset + to.size()) of a tensor by read(2): for
  /// bulk copies, where a file cut short should be an error and not a signal.
  llvm::Error read(const TensorView &tensor, uint64_t offset,
                   llvm::MutableArrayRef<uint8_t> to) const;

  /// Fails when a weight file no longer has the size that was mapped.
  llvm::Error checkUnchanged() const;

  /// The identity of the weights, 64 hexadecimal digits: SHA-256 over the
  /// digests (FileDigest.h) of the weight files in order of name. Digests are
  /// cached by path, size, times and inode, so a second call, even in another
  /// process, reads no weights. For tensors in memory it is SHA-256 over name, type, shape and
  /// elements of each, in order of name.
  llvm::Expected<std::string> hash() const;

private:
  /// A file that tensors are in.
  struct WeightFile {
    const MappedFile *file;
    uint64_t dataStart;
  };

  Checkpoint() : configuration(nullptr) {}
  static llvm::Expected<std::unique_ptr<Checkpoint>> openGguf(llvm::StringRef path);
  std::vector<WeightFile> weightFiles() const;
  std::string hashOfMemory() const;
  void setTensors(std::vector<TensorView> tensors);
  std::string path;
  llvm::json::Value configuration;
  StorageConventions storedConventions;
  std::vector<std::unique_ptr<SafetensorsFile>> shards;
  std::unique_ptr<GgufFile> gguf;
  bool inMemory = false;
  std::vector<TensorView> views;
  std::map<std::string, size_t> byName;
};

} // namespace ctxc

#endif // CTXC_CHECKPOINT_CHECKPOINT_H
