#include "ctxc/Verify/ProgramNorms.h"
#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;

namespace {

class ProgramNorms : public PatchNorms {
public:
  ProgramNorms(const Program &program, Weights &weights, std::shared_ptr<KnownNorms> known)
      : PatchNorms(std::move(known)), weights(weights) {
    for (const ProgramStep &step : program.steps) {
      xf::LayerOp layer = step.layer;
      xf::BlockOp block = step.block;
      int64_t index = step.index.value_or(-1);
      block.walk([&](xf::ParamOp param) {
        auto type = llvm::cast<mlir::RankedTensorType>(param.getType());
        auto patched = llvm::cantFail(findPatched(block, layer, param.getName()));
        parameters.try_emplace(patched.stored, Parameter{index, type, "", 0});
        for (int64_t i = 0; patched.isSliced() && i < type.getDimSize(0); ++i)
          parameters.try_emplace(sliceName(patched.stored, i),
                                 Parameter{index, type, patched.stored, i});
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
    llvm::StringRef whole = found->second.whole;
    llvm::Expected<const void *> data = whole.empty()
                                            ? weights.get(parameter, type)
                                            : getSlice(weights, whole, type, found->second.slice);
    if (!data)
      return data.takeError();
    if (!whole.empty())
      type = type.clone(type.getShape().drop_front());
    DType dtype = storageOf(type.getElementType());
    double sum = 0;
    double buffer[1024];
    for (int64_t done = 0, count = type.getNumElements(); done < count;) {
      int64_t step = std::min<int64_t>(1024, count - done);
      readDoubles(dtype, *data, done, {buffer, static_cast<size_t>(step)});
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
    std::string whole; ///< the parameter that this is a slice of; else empty
    int64_t slice = 0;
  };
  Weights &weights;
  llvm::StringMap<Parameter> parameters;
};

} // namespace

std::unique_ptr<PatchNorms> ctxc::programNorms(const Program &program, Weights &weights,
                                               std::shared_ptr<KnownNorms> known) {
  return std::make_unique<ProgramNorms>(program, weights, std::move(known));
}
