#include "ScaledTensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace ctxc;

namespace {

constexpr size_t maxProblems = 50;
constexpr int64_t maxBlock = 1 << 24;

/// Joins the tensors of one checkpoint.
class Joiner {
public:
  explicit Joiner(std::vector<TensorView> tensors) : tensors(std::move(tensors)) {
    for (auto [i, view] : llvm::enumerate(this->tensors))
      byName[view.name] = i;
    isScales.resize(this->tensors.size());
  }

  void fp8(int64_t blockRows, int64_t blockColumns) {
    for (TensorView &view : tensors)
      if (view.dtype == DType::F8E4M3)
        joinFp8(view, blockRows, blockColumns);
    findOrphans("_scale_inv", "");
  }

  void mxfp4() {
    for (TensorView &view : tensors)
      if (StringRef(view.name).ends_with("_blocks"))
        joinMxfp4(view);
    findOrphans("_scales", "_blocks");
  }

  Expected<std::vector<TensorView>> take() {
    Error errors = Error::success();
    for (const std::string &problem : ArrayRef(problems).take_front(maxProblems))
      errors = joinErrors(std::move(errors), makeError(problem));
    if (problems.size() > maxProblems)
      errors =
          joinErrors(std::move(errors), makeError("and " + Twine(problems.size() - maxProblems) +
                                                  " more problems of quantised tensors"));
    if (errors)
      return std::move(errors);
    std::vector<TensorView> joined;
    for (auto [i, view] : llvm::enumerate(tensors))
      if (!isScales[i])
        joined.push_back(std::move(view));
    return joined;
  }

private:
  void problem(const TensorView &view, const Twine &message) {
    problems.push_back((view.file + ": tensor " + quoted(view.name) + " " + message).str());
  }

  /// The scales of `view`, named `name`, of one of `types` and of `shape`; null and a problem
  /// where they are missing or differ.
  const TensorView *scalesOf(const TensorView &view, const std::string &name, ArrayRef<DType> types,
                             ArrayRef<int64_t> shape, const Twine &why) {
    auto found = byName.find(name);
    if (found == byName.end()) {
      problem(view, "has no scales beside it; expected them as " + quoted(name));
      return nullptr;
    }
    const TensorView &scales = tensors[found->second];
    isScales[found->second] = true;
    if (!is_contained(types, scales.dtype)) {
      std::string expected;
      for (auto [i, type] : llvm::enumerate(types))
        expected += (i == 0 ? "" : i + 1 == types.size() ? " or " : ", ") + nameOf(type).str();
      problem(scales, "is stored as " + nameOf(scales.dtype) + "; expected " + expected);
      return nullptr;
    }
    if (ArrayRef(scales.shape) != shape) {
      problem(scales, "has shape " + shapeText(scales.shape) + "; expected " + shapeText(shape) +
                          ", " + why);
      return nullptr;
    }
    return &scales;
  }

  /// Whether `shape` is that of a matrix or a bank, with no size 0.
  bool isMatrix(const TensorView &view, size_t ownDimensions) {
    size_t rank = view.shape.size() - ownDimensions;
    if (view.shape.size() >= ownDimensions && (rank == 2 || rank == 3) &&
        llvm::none_of(view.shape, [](int64_t size) { return size == 0; }))
      return true;
    problem(view, "has shape " + shapeText(view.shape) +
                      "; expected that of a matrix, or of a bank of matrices");
    return false;
  }

  /// Puts the joined tensor in the place of `view`, with the bytes of each matrix and of its
  /// scales.
  void join(TensorView &view, DType dtype, const TensorView &scales, ctxc_scaled_matrix first) {
    bool isBank = view.shape.size() == 3;
    int64_t count = isBank ? view.shape[0] : 1;
    first.rows = view.shape[isBank], first.columns = view.shape.back();
    first.elements = view.data;
    first.scales = scales.data;
    view.dtype = dtype;
    view.matrices = std::shared_ptr<ctxc_scaled_matrix[]>(new ctxc_scaled_matrix[count]);
    for (int64_t i = 0; i < count; ++i) {
      view.matrices[i] = first;
      first.elements += view.bytes / count;
      first.scales += scales.bytes / count;
    }
  }

  void joinFp8(TensorView &view, int64_t blockRows, int64_t blockColumns) {
    if (!isMatrix(view, 0))
      return;
    SmallVector<int64_t, 4> shape(view.shape);
    shape.end()[-2] = divideCeil(uint64_t(shape.end()[-2]), uint64_t(blockRows));
    shape.end()[-1] = divideCeil(uint64_t(shape.end()[-1]), uint64_t(blockColumns));
    const TensorView *scales =
        scalesOf(view, view.name + "_scale_inv", {DType::F32, DType::BF16, DType::F8E8M0}, shape,
                 "one for each 'weight_block_size' of " + Twine(blockRows) + " × " +
                     Twine(blockColumns) + " elements of " + shapeText(view.shape));
    if (!scales)
      return;
    ctxc_scaled_matrix matrix = {};
    matrix.block_rows = blockRows;
    matrix.block_columns = blockColumns;
    matrix.scale_type = scales->dtype == DType::F32    ? CTXC_SCALE_F32
                        : scales->dtype == DType::BF16 ? CTXC_SCALE_BF16
                                                       : CTXC_SCALE_E8M0;
    join(view, DType::ScaledF8E4M3, *scales, matrix);
  }

  void joinMxfp4(TensorView &view) {
    if (view.dtype != DType::U8)
      return problem(view, "is stored as " + nameOf(view.dtype) + "; expected U8");
    if (!isMatrix(view, 1))
      return;
    if (view.shape.back() != 16)
      return problem(view, "has shape " + shapeText(view.shape) +
                               "; expected 16 as its last size, the bytes of 32 elements");
    std::string name = StringRef(view.name).drop_back(strlen("_blocks")).str();
    if (byName.count(name))
      return problem(view, "is stored beside " + quoted(name) + "; expected one of the two");
    ArrayRef<int64_t> shape = ArrayRef(view.shape).drop_back();
    const TensorView *scales = scalesOf(view, name + "_scales", {DType::U8}, shape,
                                        "one for each 16 bytes of " + quoted(view.name));
    if (!scales)
      return;
    view.name = name;
    view.shape.pop_back();
    view.shape.back() *= 32;
    ctxc_scaled_matrix matrix = {};
    matrix.block_rows = 1;
    matrix.block_columns = 32;
    matrix.scale_type = CTXC_SCALE_E8M0;
    join(view, DType::MXFP4, *scales, matrix);
  }

  /// Reports scales (NAME + `suffix`) without elements (NAME + `elements`).
  void findOrphans(StringRef suffix, StringRef elements) {
    for (auto [i, view] : llvm::enumerate(tensors))
      if (!isScales[i] && StringRef(view.name).ends_with(suffix))
        problem(view, "has scales, but " +
                          quoted((StringRef(view.name).drop_back(suffix.size()) + elements).str()) +
                          " is not stored in a format that has them apart");
  }

  std::vector<TensorView> tensors;
  StringMap<size_t> byName;
  std::vector<bool> isScales;
  std::vector<std::string> problems;
};

/// The two sizes of a block; those of DeepSeek-V3 where the config has none.
Expected<std::pair<int64_t, int64_t>> blockSize(const json::Object &quantization, StringRef path) {
  const json::Value *value = quantization.get("weight_block_size");
  if (!value)
    return std::pair<int64_t, int64_t>(128, 128);
  SmallVector<int64_t> sizes;
  if (const json::Array *array = value->getAsArray())
    for (const json::Value &element : *array)
      sizes.push_back(element.getAsInteger().value_or(0));
  if (sizes.size() != 2 ||
      !llvm::all_of(sizes, [](int64_t size) { return size >= 1 && size <= maxBlock; }))
    return makeError(path +
                     ": key 'quantization_config.weight_block_size' is not understood; "
                     "expected two integers from 1 to " +
                     Twine(maxBlock) + ", rows and columns of the blocks that share a scale");
  return std::pair(sizes[0], sizes[1]);
}

} // namespace

Expected<std::vector<TensorView>> ctxc::joinScales(const json::Object &config, StringRef configPath,
                                                   std::vector<TensorView> tensors) {
  const json::Object *quantization = config.getObject("quantization_config");
  std::optional<StringRef> method =
      quantization ? quantization->getString("quant_method") : std::nullopt;
  if (method != "fp8" && method != "mxfp4")
    return tensors;
  Joiner joiner(std::move(tensors));
  if (method == "mxfp4") {
    joiner.mxfp4();
    return joiner.take();
  }
  Expected<std::pair<int64_t, int64_t>> block = blockSize(*quantization, configPath);
  if (!block)
    return block.takeError();
  joiner.fp8(block->first, block->second);
  return joiner.take();
}
