#include "Lora.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Program/SliceName.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc;

Error ctxc::checkLora(const Patch &patch) {
  if (patch.parameters.empty())
    return makeError("the patch changes nothing");
  for (const ParameterPatch &p : patch.parameters) {
    std::string name = "parameter " + quoted(p.parameter);
    if (p.kind == ParameterPatch::Kind::Delta)
      return makeError(name + ": the patch changes a vector, and a LoRA holds matrices alone");
    if (splitSliceName(p.parameter) || StringRef(p.parameter).contains(".experts."))
      return makeError(name + ": the patch changes the matrix of one expert, and a LoRA holds "
                              "matrices that are used for every token");
    if (!StringRef(p.parameter).ends_with(".weight"))
      return makeError(name + ": is not the weight of a module");
  }
  return Error::success();
}

Expected<std::vector<LoraFactors>> ctxc::loraFactors(const Patch &patch,
                                                     const AdapterModel &model) {
  if (Error e = joinErrors(checkPatch(patch), checkLora(patch)))
    return std::move(e);
  std::vector<LoraFactors> factors;
  for (const ParameterPatch &p : patch.parameters) {
    StringRef module = p.parameter;
    module.consume_back(".weight");
    if (model.inFirst.contains(p.parameter))
      factors.push_back({module, p.u, p.v});
    else
      factors.push_back({module, p.v, p.u});
  }
  return factors;
}

std::vector<float> ctxc::transposed(ArrayRef<float> matrix, int64_t rows) {
  std::vector<float> result(matrix.size());
  int64_t columns = matrix.size() / rows;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[j * rows + i] = matrix[i * columns + j];
  return result;
}

std::pair<std::vector<float>, std::vector<float>> ctxc::loraFactors(const MatrixChange &change) {
  if (!change.inFirst)
    return {change.right, change.left};
  return {transposed(change.left, change.rows), transposed(change.right, change.rank)};
}

static std::string listOf(ArrayRef<int64_t> numbers) {
  return join(map_range(numbers, [](int64_t number) { return std::to_string(number); }), ",");
}

std::string ctxc::prefixText(const ctxc::Adapter &adapter) { return listOf(adapter.prefix); }

std::map<std::string, std::string> ctxc::frontStrings(const ctxc::Adapter &adapter) {
  std::map<std::string, std::string> strings{{"prefix", prefixText(adapter)}};
  if (!adapter.seen.empty())
    strings["seen"] = listOf(adapter.seen);
  return strings;
}

TensorSource ctxc::floats(std::string name, SmallVector<int64_t, 4> shape,
                          std::vector<float> values) {
  return {std::move(name), DType::F32, std::move(shape), [values](raw_ostream &os) {
            os.write(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
            return Error::success();
          }};
}

Error ctxc::writeFloat32(raw_ostream &os, ArrayRef<double> values) {
  std::vector<char> bytes(values.size() * sizeof(float));
  writeDoubles(DType::F32, values, reinterpret_cast<uint8_t *>(bytes.data()));
  os.write(bytes.data(), bytes.size());
  return Error::success();
}
