#include "ctxc/Verify/ProgramNorms.h"
#include "ctxc/Checkpoint/DType.h"
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;

namespace {

class ProgramNorms : public PatchNorms {
public:
  ProgramNorms(const Program &program, Weights &weights, std::shared_ptr<KnownNorms> known,
               OwnElements own)
      : PatchNorms(std::move(known)), weights(weights), own(std::move(own)) {
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
    const DType dtype = storageOf(type.getElementType());
    if (std::vector<ElementRun> runs; own && !(runs = own(parameter)).empty())
      return squaredNormOf(parameter, found->second, runs);
    llvm::StringRef whole = found->second.whole;
    llvm::Expected<const void *> data = whole.empty()
                                            ? weights.get(parameter, type)
                                            : getSlice(weights, whole, type, found->second.slice);
    if (!data)
      return data.takeError();
    if (!whole.empty())
      type = type.clone(type.getShape().drop_front());
    return sumOfSquares(dtype, *data, {0, type.getNumElements()});
  }

private:
  struct Parameter;

  static double sumOfSquares(DType dtype, const void *data, ElementRun run) {
    double sum = 0;
    double buffer[1024];
    for (int64_t done = 0; done < run.count;) {
      int64_t step = std::min<int64_t>(1024, run.count - done);
      readDoubles(dtype, data, run.begin + done, {buffer, static_cast<size_t>(step)});
      for (int64_t i = 0; i < step; ++i)
        sum += buffer[i] * buffer[i];
      done += step;
    }
    return sum;
  }

  /// Of some elements of a parameter, or of a slice of one.
  llvm::Expected<double> squaredNormOf(llvm::StringRef parameter, const Parameter &at,
                                       llvm::ArrayRef<ElementRun> runs) {
    // The tensor that stores it, and its elements in that one.
    const bool isSlice = !at.whole.empty(), isStored = !isSlice || isBankName(at.whole);
    auto slice = isSlice ? at.type.clone(at.type.getShape().drop_front()) : at.type;
    auto type = isStored ? slice : at.type;
    llvm::StringRef name = isStored ? parameter : llvm::StringRef(at.whole);
    std::vector<ElementRun> elements(runs);
    for (ElementRun &run : elements)
      run.begin += isStored ? 0 : at.slice * slice.getNumElements();
    const DType dtype = storageOf(type.getElementType());
    llvm::Expected<const void *> part = weights.getPart(name, type, elements);
    if (!part)
      return part.takeError();
    double sum = 0;
    if (*part) { // one run after the other
      int64_t count = 0;
      for (const ElementRun &run : elements)
        count += run.count;
      return sumOfSquares(dtype, *part, {0, count});
    }
    llvm::Expected<const void *> whole = weights.get(name, type);
    if (!whole)
      return whole.takeError();
    for (const ElementRun &run : elements)
      sum += sumOfSquares(dtype, *whole, run);
    return sum;
  }

  struct Parameter {
    int64_t layer = -1;
    mlir::RankedTensorType type;
    std::string whole; ///< the parameter that this is a slice of; else empty
    int64_t slice = 0;
  };
  Weights &weights;
  const OwnElements own;
  llvm::StringMap<Parameter> parameters;
};

} // namespace

std::unique_ptr<PatchNorms> ctxc::programNorms(const Program &program, Weights &weights,
                                               std::shared_ptr<KnownNorms> known, OwnElements own) {
  return std::make_unique<ProgramNorms>(program, weights, std::move(known), std::move(own));
}
