// The files of a checkpoint.
#include "Reader.h"
#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Checkpoint/Npy.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Tokenizer/Tokenizer.h"

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

/// Reads every byte and every number.
static void use(llvm::ArrayRef<TensorView> tensors) {
  std::vector<double> numbers;
  for (const TensorView &tensor : tensors) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < tensor.bytes; ++i)
      sum += tensor.data[i];
    require(sum <= 255 * tensor.bytes, "a sum of bytes");
    (void)shapeText(tensor.shape);
    if (!isReadable(tensor.dtype))
      continue;
    hear(checkFinite(tensor));
    numbers.resize(tensor.elements());
    readDoubles(tensor.dtype, tensor.stored(), numbers);
  }
}

void fuzz::readSafetensors(StringRef bytes) {
  std::string path = scratch("st/model.safetensors", bytes);
  auto file = SafetensorsFile::open(path);
  if (!heard(file))
    return;
  use((*file)->tensors());
  // With scales in tensors of their own.
  for (StringRef config :
       {R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[2,2]}})",
        R"({"quantization_config":{"quant_method":"mxfp4"}})"}) {
    scratch("st/config.json", config);
    auto checkpoint = Checkpoint::open(scratchPath("st"));
    if (heard(checkpoint))
      use((*checkpoint)->tensors());
  }
}

/// A safetensors file with one tensor of one number.
static std::string oneTensor(StringRef name) {
  std::string header =
      ("{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}").str();
  std::string length(8, '\0');
  length[0] = char(header.size());
  return length + header + std::string(4, '\0');
}

void fuzz::readIndex(StringRef bytes) {
  static const bool shards = [] {
    scratch("index/config.json", "{}");
    scratch("index/a.safetensors", oneTensor("a"));
    scratch("index/b.safetensors", oneTensor("b"));
    return true;
  }();
  (void)shards;
  scratch("index/model.safetensors.index.json", bytes);
  auto checkpoint = Checkpoint::open(scratchPath("index"));
  if (heard(checkpoint))
    use((*checkpoint)->tensors());
}

/// The model that `path` describes, as a module of blocks.
static void import(StringRef path, bool needWeights) {
  ImportOptions options;
  options.needWeights = needWeights;
  auto imported = importModel(path, context(), options);
  if (!heard(imported))
    return;
  std::string text;
  llvm::raw_string_ostream os(text);
  printModel(*imported->module, os);
}

void fuzz::readConfig(StringRef bytes) {
  scratch("config/config.json", bytes);
  import(scratchPath("config"), /*needWeights=*/false);
}

void fuzz::readGguf(StringRef bytes) {
  std::string path = scratch("model.gguf", bytes);
  auto file = GgufFile::open(path);
  if (!heard(file))
    return;
  use((*file)->tensors());
  for (auto &[key, value] : (*file)->metadata()) {
    (void)(*file)->number(key);
    (void)(*file)->texts(key);
    (void)(*file)->numbers(key);
  }
  auto tokenizer = openGgufTokenizer(path);
  if (heard(tokenizer))
    if (auto ids = (*tokenizer)->encode("to be, or not", /*addSpecial=*/true); heard(ids))
      hear((*tokenizer)->decode(*ids).takeError());
  auto checkpoint = Checkpoint::open(path);
  if (heard(checkpoint))
    use((*checkpoint)->tensors());
  import(path, /*needWeights=*/true);
}

void fuzz::readNpy(StringRef bytes) {
  auto matrix = readNpyMatrix(scratch("rows.npy", bytes));
  if (!heard(matrix))
    return;
  require(matrix->rows > 0 && matrix->columns > 0, "a matrix has rows and columns");
  require(matrix->numbers.size() == size_t(matrix->rows) * matrix->columns,
          "a matrix has all of its numbers");
}
