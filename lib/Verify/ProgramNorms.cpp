#include "ctxc/Verify/ProgramNorms.h"
#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;

namespace {

DType dtypeOf(mlir::Type type) {
  return type.isBF16() ? DType::BF16 : type.isF16() ? DType::F16 : DType::F32;
}

class ProgramNorms : public PatchNorms {
public:
  ProgramNorms(const Program &program, Weights &weights) : weights(weights) {
    for (const ProgramStep &step : program.steps) {
      xf::LayerOp layer = step.layer;
      xf::BlockOp block = step.block;
      int64_t index = step.index.value_or(-1);
      block.walk([&](xf::ParamOp param) {
        auto type = llvm::cast<mlir::RankedTensorType>(param.getType());
        parameters.try_emplace(layer.getStoredName(param.getName()), Parameter{index, type});
      });
    }
  }

  int64_t layerOf(llvm::StringRef parameter) const override {
    auto found = parameters.find(parameter);
    return found == parameters.end() ? -1 : found->second.layer;
  }

protected:
  llvm::Expected<double> computeSquaredNorm(llvm::StringRef parameter) override {
    auto found = parameters.find(parameter);
    if (found == parameters.end())
      return makeError("parameter " + parameter + ": no layer of the model reads it");
    mlir::RankedTensorType type = found->second.type;
    llvm::Expected<const void *> data = weights.get(parameter, type);
    if (!data)
      return data.takeError();
    const auto *bytes = static_cast<const uint8_t *>(*data);
    DType dtype = dtypeOf(type.getElementType());
    double sum = 0;
    double buffer[1024];
    for (int64_t done = 0, count = type.getNumElements(); done < count;) {
      int64_t step = std::min<int64_t>(1024, count - done);
      readDoubles(dtype, bytes + done * bitsOf(dtype) / 8, {buffer, static_cast<size_t>(step)});
      for (int64_t i = 0; i < step; ++i)
        sum += buffer[i] * buffer[i];
      done += step;
    }
    return sum;
  }

private:
  struct Parameter {
    int64_t layer = -1;
    mlir::RankedTensorType type;
  };
  Weights &weights;
  llvm::StringMap<Parameter> parameters;
};

} // namespace

std::unique_ptr<PatchNorms> ctxc::programNorms(const Program &program, Weights &weights) {
  return std::make_unique<ProgramNorms>(program, weights);
}
