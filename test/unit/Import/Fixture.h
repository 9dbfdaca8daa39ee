// Changed copies of the golden checkpoints in a temporary directory.
#ifndef CTXC_TEST_UNIT_IMPORT_FIXTURE_H
#define CTXC_TEST_UNIT_IMPORT_FIXTURE_H

#include "ctxc/Import/Import.h"
#include "dialects/XF/XF.h"
#include "test/unit/Checkpoint/Fixture.h"
#include "test/unit/Goldens.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace ctxc::test {

struct StoredTensor {
  DType dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
using StoredTensorMap = std::map<std::string, StoredTensor>;

/// A safetensors file with these tensors.
inline std::string fileOfTensors(const StoredTensorMap &tensors) {
  llvm::json::Object header;
  std::string data;
  for (const auto &[name, tensor] : tensors) {
    int64_t begin = data.size();
    data += tensor.bytes;
    header[name] = llvm::json::Object{{"dtype", nameOf(tensor.dtype)},
                                      {"shape", llvm::json::Array(tensor.shape)},
                                      {"data_offsets", {begin, int64_t(data.size())}}};
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(header));
  return fileOf(text, data);
}

struct ImportTest : TempDirectory {
  /// The config.json of a golden.
  static llvm::json::Object configOf(llvm::StringRef name) {
    auto text = llvm::MemoryBuffer::getFile(golden(name) + "/config.json");
    return std::move(*llvm::cantFail(llvm::json::parse((*text)->getBuffer())).getAsObject());
  }
  static StoredTensorMap tensorsOf(llvm::StringRef name) {
    StoredTensorMap tensors;
    std::unique_ptr<Checkpoint> checkpoint = llvm::cantFail(Checkpoint::open(golden(name)));
    for (const TensorView &view : checkpoint->tensors())
      tensors[view.name] = {view.dtype,
                            {view.shape.begin(), view.shape.end()},
                            std::string(reinterpret_cast<const char *>(view.data), view.bytes)};
    return tensors;
  }

  void writeConfig(llvm::json::Object config) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(config));
    write("config.json", text);
  }
  void writeTensors(const StoredTensorMap &tensors) {
    write("model.safetensors", fileOfTensors(tensors));
  }
  std::string directory() { return dir.str().str(); }

  /// The printed module of `path`, or "error: " and the message.
  std::string imported(llvm::StringRef path, const ImportOptions &options = {}) {
    llvm::Expected<ImportedModel> model = importModel(path, context, options);
    if (!model)
      return "error: " + llvm::toString(model.takeError());
    std::string text;
    llvm::raw_string_ostream os(text);
    printModel(*model->module, os);
    return text;
  }
  /// The same for a config, or a golden's, with some keys changed (null removes a key), read
  /// without weights.
  using Changes = std::initializer_list<std::pair<llvm::StringRef, llvm::json::Value>>;
  std::string importedWith(llvm::StringRef name, Changes changes) {
    return importedWith(configOf(name), changes);
  }
  std::string importedWith(llvm::json::Object config, Changes changes) {
    for (const auto &[key, value] : changes)
      config[key] = value;
    writeConfig(std::move(config));
    ImportOptions options;
    options.needWeights = false;
    return imported(directory(), options);
  }

  mlir::MLIRContext context;
};

inline int64_t occurrences(llvm::StringRef text, llvm::StringRef part) {
  return int64_t(text.count(part));
}

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_IMPORT_FIXTURE_H
