// Calls a kernel as another program would: buffers may begin at any element inside a larger
// allocation, and nothing outside of them is written.
#include "BlockText.h"
#include "Fixture.h"
#include "lib/Runtime/ParallelFor.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace ctxc;
using namespace ctxc::test;

namespace {

constexpr unsigned char sentinel = 0xa5;

/// A buffer that begins `offset` elements behind an address that is aligned to 64, with sentinels
/// on both sides.
class Buffer {
public:
  Buffer(size_t bytes, size_t offset)
      : size(bytes), memory(bytes + offset + 3 * 64, sentinel),
        begin(memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & 63) + 64 + offset) {}

  void *data() { return begin; }
  void fill(llvm::ArrayRef<char> bytes) { std::memcpy(begin, bytes.data(), bytes.size()); }
  bool isIntact() const {
    auto untouched = [](const unsigned char *from, const unsigned char *to) {
      return std::all_of(from, to, [](unsigned char byte) { return byte == sentinel; });
    };
    return untouched(memory.data(), begin) &&
           untouched(begin + size, memory.data() + memory.size());
  }

private:
  size_t size;
  std::vector<unsigned char> memory;
  unsigned char *begin;
};

/// y = W x, as a kernel.
class LinearKernel {
public:
  LinearKernel(int64_t out, int64_t in, const std::string &element) {
    mlir::DialectRegistry registry;
    registerCodegenDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    BlockText text("linear", in);
    text.output(text.linear(text.input(), out, element));
    auto source = mlir::parseSourceString<mlir::ModuleOp>(text.text(), &context);
    auto block = *source->getOps<xf::BlockOp>().begin();
    auto module = buildKernelModule(block);
    std::string name = kernelName(block);
    arguments = kernelArguments((*module)->lookupSymbol<mlir::func::FuncOp>(name));
    auto objects = llvm::cantFail(compileKernels({**module}, CpuTarget::host()));
    library = llvm::cantFail(KernelLibrary::load(std::move(objects)));
    kernel = llvm::cantFail(library->kernel(name));
    workspaceSize = llvm::cantFail(library->workspace(name));
  }

  int32_t run(void *w, void *x, void *y, int64_t rows) {
    std::vector<int32_t> positions(rows);
    std::vector<void *> pointers;
    for (const KernelArg &arg : arguments)
      pointers.push_back(arg.kind == KernelArgKind::Param    ? w
                         : arg.kind == KernelArgKind::Input  ? x
                         : arg.kind == KernelArgKind::Output ? y
                                                             : positions.data());
    Buffer workspace(workspaceSize(rows, 0, 0), 0);
    int threads = 2;
    ctxc_call call = {rows, {0, 0}, pointers.data(), workspace.data(), parallelFor, &threads};
    int32_t status = kernel(&call);
    EXPECT_TRUE(workspace.isIntact());
    return status;
  }

private:
  mlir::MLIRContext context;
  llvm::SmallVector<KernelArg> arguments;
  std::unique_ptr<KernelLibrary> library;
  KernelLibrary::Kernel kernel;
  KernelLibrary::Workspace workspaceSize;
};

/// Numbers in their stored form, and their values.
struct Stored {
  std::vector<char> bytes;
  std::vector<double> values;
};

Stored randomNumbers(std::mt19937 &random, int64_t count, const llvm::fltSemantics &semantics) {
  std::normal_distribution<double> normal;
  Stored stored;
  for (int64_t i = 0; i < count; ++i) {
    llvm::APFloat number(normal(random));
    bool loses;
    number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    const char *raw = reinterpret_cast<const char *>(&bits);
    stored.bytes.insert(stored.bytes.end(), raw,
                        raw + llvm::APFloat::semanticsSizeInBits(semantics) / 8);
    stored.values.push_back(number.convertToDouble());
  }
  return stored;
}

const llvm::fltSemantics &semanticsOf(llvm::StringRef element) {
  return element == "f32"    ? llvm::APFloat::IEEEsingle()
         : element == "bf16" ? llvm::APFloat::BFloat()
                             : llvm::APFloat::IEEEhalf();
}

/// The error bound of Contraction.h, for any number of lanes, relative to the sum of all
/// magnitudes.
double boundOf(int64_t in) {
  double n = in + 5, u = 0x1p-24;
  return n * u / (1 - n * u);
}

struct Buffers : testing::TestWithParam<const char *> {};

TEST_P(Buffers, MayBeginAnywhere) {
  std::string element = GetParam();
  const llvm::fltSemantics &semantics = semanticsOf(element);
  size_t bytes = llvm::APFloat::semanticsSizeInBits(semantics) / 8;
  std::mt19937 random(7);
  std::vector<std::pair<int64_t, int64_t>> shapes{{1, 1}, {1, 40}, {40, 1}};
  for (int i = 0; i < 3; ++i)
    shapes.push_back({1 + int64_t(random() % 90), 1 + int64_t(random() % 150)});
  for (auto [out, in] : shapes) {
    LinearKernel kernel(out, in, element);
    for (int64_t rows : {1, 2, 3, 17}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(out) + " × " +
                   std::to_string(in));
      Stored w = randomNumbers(random, out * in, semantics);
      Stored x = randomNumbers(random, rows * in, llvm::APFloat::IEEEsingle());
      std::vector<char> first;
      for (size_t offset : {0, 1, 3, 7, 13}) {
        Buffer wAt(w.bytes.size(), offset * bytes), xAt(x.bytes.size(), offset * sizeof(float)),
            yAt(rows * out * sizeof(float), offset * sizeof(float));
        wAt.fill(w.bytes);
        xAt.fill(x.bytes);
        ASSERT_EQ(kernel.run(wAt.data(), xAt.data(), yAt.data(), rows), CTXC_GOOD);
        EXPECT_TRUE(wAt.isIntact() && xAt.isIntact() && yAt.isIntact()) << offset;
        auto *y = static_cast<float *>(yAt.data());
        std::vector<char> found(reinterpret_cast<char *>(y),
                                reinterpret_cast<char *>(y + rows * out));
        if (offset > 0) {
          EXPECT_EQ(found, first) << offset;
          continue;
        }
        first = found;
        for (int64_t s = 0; s < rows; ++s)
          for (int64_t m = 0; m < out; ++m) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < in; ++k) {
              double product = w.values[m * in + k] * x.values[s * in + k];
              sum += product;
              size += std::abs(product);
            }
            EXPECT_LE(std::abs(y[s * out + m] - sum), boundOf(in) * size) << s << ", " << m;
          }
      }
    }
  }
}

/// The sums do not depend on how many vectors there are, nor on the way in which W is read for them
/// (Contraction.h).
TEST_P(Buffers, SumsHaveOneOrder) {
  std::string element = GetParam();
  const llvm::fltSemantics &semantics = semanticsOf(element);
  std::mt19937 random(11);
  constexpr int64_t most = 17;
  for (auto [out, in] :
       {std::pair<int64_t, int64_t>{37, 120}, {43, 1613}, {61, 2050}, {35, 4001}}) {
    LinearKernel kernel(out, in, element);
    Stored w = randomNumbers(random, out * in, semantics);
    Stored x = randomNumbers(random, most * in, llvm::APFloat::IEEEsingle());
    std::vector<float> all(most * out);
    for (int64_t rows : {most, int64_t(1), int64_t(2), int64_t(3)}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(out) + " × " +
                   std::to_string(in));
      // W is aligned neither to vector registers nor to cache lines.
      Buffer wAt(w.bytes.size(), w.bytes.size() / w.values.size());
      wAt.fill(w.bytes);
      std::vector<float> y(rows * out);
      ASSERT_EQ(kernel.run(wAt.data(), x.bytes.data(), y.data(), rows), CTXC_GOOD);
      if (rows == most)
        all = y;
      EXPECT_EQ(y, std::vector<float>(all.begin(), all.begin() + rows * out));
      for (int64_t m = 0; m < out; ++m) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < in; ++k) {
          sum += w.values[m * in + k] * x.values[k];
          size += std::abs(w.values[m * in + k] * x.values[k]);
        }
        EXPECT_LE(std::abs(y[m] - sum), boundOf(in) * size) << m;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, Buffers, testing::Values("f32", "bf16", "f16"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
