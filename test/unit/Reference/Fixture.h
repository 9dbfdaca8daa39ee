// Blocks from text, random numbers, and what evaluating a block needs.
#ifndef CTXC_TEST_UNIT_REFERENCE_FIXTURE_H
#define CTXC_TEST_UNIT_REFERENCE_FIXTURE_H

#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Reference/Reference.h"
#include "ctxc/Support/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace ctxc::reference {

/// The largest difference of two vectors' entries.
inline double distance(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  EXPECT_EQ(a.size(), b.size());
  double result = 0;
  for (auto [x, y] : llvm::zip(a, b))
    result = std::max(result, std::abs(x - y));
  return result;
}

/// Weights from a map. A parameter gets random numbers when it is first asked for, which its
/// storage type represents exactly.
class MapWeights : public Weights {
public:
  explicit MapWeights(unsigned seed = 1) : random(seed) {}

  llvm::Expected<const void *> get(llvm::StringRef name, mlir::RankedTensorType type) override {
    if (missing == name)
      return makeError(name + ": no such tensor");
    mlir::Type element = type.getElementType();
    DType dtype = element.isBF16() ? DType::BF16 : element.isF16() ? DType::F16 : DType::F32;
    auto [entry, isNew] = tensors.try_emplace(name.str());
    Tensor &tensor = entry->second;
    if (isNew) {
      std::vector<double> numbers(type.getNumElements());
      for (double &x : numbers)
        x = std::normal_distribution<double>(0, 0.4)(random);
      set(tensor, dtype, numbers);
    }
    EXPECT_EQ(int64_t(tensor.numbers.size()), type.getNumElements()) << name.str();
    EXPECT_EQ(dtype, tensor.dtype) << name.str();
    return static_cast<const void *>(tensor.bytes.data());
  }
  llvm::Expected<std::string> hash() override { return "test"; }

  void set(llvm::StringRef name, llvm::ArrayRef<double> numbers, DType dtype = DType::F32) {
    set(tensors[name.str()], dtype, numbers);
  }
  /// The numbers, rounded to the storage type.
  const std::vector<double> &numbers(llvm::StringRef name) {
    return tensors.at(name.str()).numbers;
  }

  std::string missing; ///< a name for which there is no tensor

private:
  struct Tensor {
    DType dtype = DType::F32;
    std::vector<uint8_t> bytes;
    std::vector<double> numbers;
  };
  static void set(Tensor &tensor, DType dtype, llvm::ArrayRef<double> numbers) {
    tensor.dtype = dtype;
    tensor.bytes.resize(numbers.size() * bitsOf(dtype) / 8);
    writeDoubles(dtype, numbers, tensor.bytes.data());
    tensor.numbers.resize(numbers.size());
    readDoubles(dtype, tensor.bytes.data(), tensor.numbers);
  }
  std::mt19937 random;
  std::map<std::string, Tensor> tensors;
};

class ReferenceTest : public testing::Test {
protected:
  ReferenceTest() {
    mlir::DialectRegistry registry;
    registry.insert<xf::XFDialect, patch::PatchDialect>();
    registerReferenceModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  mlir::ModuleOp parse(llvm::StringRef text) {
    modules.push_back(mlir::parseSourceString<mlir::ModuleOp>(text, &context, "test.mlir"));
    EXPECT_TRUE(modules.back()) << text.str();
    return *modules.back();
  }
  xf::BlockOp block(mlir::ModuleOp module, llvm::StringRef name = "b") {
    return module.lookupSymbol<xf::BlockOp>(name);
  }

  Matrix noise(int64_t rows, int64_t columns) {
    return Matrix::NullaryExpr(rows, columns,
                               [&] { return std::normal_distribution<double>()(random); });
  }

  /// Evaluates block @b of `text` for as many tokens as `inputs` have rows, with ids 0, 1, … at
  /// positions 0, 1, ….
  llvm::Expected<llvm::SmallVector<Matrix>> run(llvm::StringRef text,
                                                llvm::ArrayRef<Matrix> inputs) {
    int64_t tokens = inputs.empty() ? 1 : inputs.front().rows();
    std::vector<int64_t> positions(tokens);
    for (int64_t t = 0; t < tokens; ++t)
      positions[t] = t;
    BlockState state;
    Environment environment{weights, nullptr, positions, positions, {{std::nullopt, &state}}};
    Evaluation evaluation(environment);
    return evaluateBlock(block(parse(text)), inputs, evaluation);
  }
  /// The only output.
  Matrix runOne(llvm::StringRef text, llvm::ArrayRef<Matrix> inputs) {
    auto outputs = run(text, inputs);
    if (!outputs) {
      ADD_FAILURE() << llvm::toString(outputs.takeError());
      return Matrix();
    }
    return outputs->front();
  }

  static void expectNear(const Matrix &found, const Matrix &expected, double tolerance = 1e-12) {
    ASSERT_EQ(found.rows(), expected.rows());
    ASSERT_EQ(found.cols(), expected.cols());
    EXPECT_LE((found - expected).cwiseAbs().maxCoeff(), tolerance) << "found\n"
                                                                   << found << "\nexpected\n"
                                                                   << expected;
  }
  template <typename T> static std::string messageOf(llvm::Expected<T> result) {
    return result ? "no error" : llvm::toString(result.takeError());
  }

  mlir::MLIRContext context;
  MapWeights weights;
  std::mt19937 random{7};

private:
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
};

} // namespace ctxc::reference

#endif // CTXC_TEST_UNIT_REFERENCE_FIXTURE_H
