// Calls each kernel of a program for many rows once on a device and once on the processor, with the
// same random arguments, and compares everything that it writes.
#ifndef CTXC_TEST_UNIT_GPU_ROWSCASE_H
#define CTXC_TEST_UNIT_GPU_ROWSCASE_H

#include "Device.h"
#include "ctxc/Lowering/GPU.h"
#include "lib/Runtime/KernelArguments.h"
#include "lib/Runtime/ParallelFor.h"
#include <random>

namespace ctxc::test {

class RowsCase {
public:
  /// The reduced run holds `kept` tokens; the full run holds `before` tokens before the rows.
  RowsCase(const Program &program, Weights &weights, int64_t rows, int64_t before, int64_t kept)
      : program(program), weights(weights), rows(rows), visible{before + rows, kept + 1},
        random(unsigned(rows * 31 + before)) {}

  /// All of the program's blocks, or those that compute with a given patch.
  enum class Blocks { All, Applied };

  /// Checks the blocks. A result may differ by `tolerance` of its largest element.
  void expectAgreement(Device &device, double tolerance, Blocks blocks = Blocks::All) {
    if (!lower(device) || !load())
      return;
    std::vector<xf::BlockOp> seen;
    for (size_t i = 0; i < program.steps.size(); ++i)
      for (xf::BlockOp block :
           {program.steps[i].block, program.steps[i].dual, program.steps[i].applied})
        if (block && !llvm::is_contained(seen, block) &&
            (blocks == Blocks::All || block == program.steps[i].applied)) {
          seen.push_back(block);
          SCOPED_TRACE(kernelName(block) + ", " + std::to_string(rows) + " rows");
          expectSame(device, i, block, tolerance);
        }
  }

private:
  using Bytes = std::vector<char>;

  bool lower(Device &device) {
    mlir::DialectRegistry registry;
    registerCodegenDialects(registry);
    registerGpuDialects(registry);
    mlir::MLIRContext &context = *program.module->getContext();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    auto made = buildKernelModule(kernelBlocks(program)),
         other = buildKernelModule(kernelBlocks(program));
    auto target = GpuTarget::named(device.target());
    if (mlir::failed(made) || mlir::failed(other) || !target) {
      ADD_FAILURE() << "no kernels";
      return false;
    }
    auto refused = lowerKernelsToGPU(**made, **target, rows);
    if (mlir::failed(refused)) {
      ADD_FAILURE() << "the kernels could not be lowered";
      return false;
    }
    for (const GpuRefusal &refusal : *refused)
      ADD_FAILURE() << refusal.kernel << ": " << refusal.reason;
    kernels = gpuKernels(**made);
    auto code = (*target)->emit(**made);
    if (!code) {
      ADD_FAILURE() << llvm::toString(code.takeError());
      return false;
    }
    EXPECT_EQ(llvm::toString(device.load(*code)), "");
    processor = std::move(*other);
    return true;
  }

  /// Compiles the same kernels for the processor.
  bool load() {
    auto host = CpuTarget::host();
    auto objects = compileKernels({*processor}, host);
    if (!objects) {
      ADD_FAILURE() << llvm::toString(objects.takeError());
      return false;
    }
    auto loaded = KernelLibrary::load(std::move(*objects));
    if (!loaded) {
      ADD_FAILURE() << llvm::toString(loaded.takeError());
      return false;
    }
    library = std::move(*loaded);
    return true;
  }

  template <typename T> static Bytes bytesOf(const std::vector<T> &numbers) {
    Bytes bytes(numbers.size() * sizeof(T));
    memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  }
  template <typename T> static std::vector<T> numbersOf(const Bytes &bytes) {
    std::vector<T> numbers(bytes.size() / sizeof(T));
    memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  Bytes gaussian(int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> numbers(count);
    for (float &number : numbers)
      number = normal(random);
    return bytesOf(numbers);
  }
  Bytes below(int64_t count, int64_t limit) {
    std::vector<int32_t> numbers(count);
    for (int32_t &number : numbers)
      number = int32_t(random() % limit);
    return bytesOf(numbers);
  }

  /// The positions of the rows: after those before them, with gaps.
  std::vector<int32_t> positions() const {
    std::vector<int32_t> at;
    for (int64_t i = 0; i < visible[0]; ++i)
      at.push_back(int32_t(2 * i + (i > 3)));
    return at;
  }
  /// Kept tokens are tokens of the full run; some of them are among the rows.
  std::vector<int32_t> keptPositions() const {
    std::vector<int32_t> all = positions(), at;
    for (int64_t i = 0; i < visible[1]; ++i)
      at.push_back(all[i * (visible[0] - 1) / visible[1]]);
    at.back() = -7; // never read
    return at;
  }

  /// The contents of an argument before the call; for a bank, those of all its slices.
  Bytes content(ProgramStep step, const KernelArg &arg) {
    auto type = llvm::cast<mlir::MemRefType>(arg.type);
    int64_t each = elementsOf(type), bytes = type.getElementTypeBitWidth() / 8;
    switch (arg.kind) {
    case KernelArgKind::Positions: {
      std::vector<int32_t> all = positions();
      return bytesOf(std::vector<int32_t>(all.end() - rows, all.end()));
    }
    case KernelArgKind::Slots:
      return bytesOf(arg.run ? keptPositions() : positions());
    case KernelArgKind::Tokens:
      return below(rows, program.vocabulary);
    case KernelArgKind::Input:
      return gaussian(each);
    case KernelArgKind::Load:
      return type.getElementType().isF32() ? gaussian(each) : below(each, 2);
    case KernelArgKind::Setting:
      return settingBytes(step, arg.name);
    case KernelArgKind::State:
      return gaussian(each * visible[arg.run]);
    case KernelArgKind::Param: {
      auto tensor = mlir::RankedTensorType::get(type.getShape(), type.getElementType());
      auto data = weights.get(step.layer.getStoredName(arg.name), tensor);
      EXPECT_TRUE(bool(data)) << (data ? "" : llvm::toString(data.takeError()));
      auto *from = static_cast<const char *>(*data);
      return Bytes(from, from + each * bytes);
    }
    case KernelArgKind::Bank: {
      Bytes all;
      int64_t count = arg.stored.getDimSize(0);
      for (int64_t i = 0; i < count; ++i) {
        auto slice = getSlice(weights, step.layer.getStoredName(arg.name), arg.stored, i);
        EXPECT_TRUE(bool(slice)) << (slice ? "" : llvm::toString(slice.takeError()));
        auto *from = static_cast<const char *>(*slice);
        all.insert(all.end(), from, from + each * bytes / count);
      }
      return all;
    }
    default: // written by the kernel
      return Bytes(each * bytes);
    }
  }

  void runOnProcessor(const GpuKernel &kernel, std::vector<Bytes> &contents) {
    std::vector<std::vector<void *>> tables;
    std::vector<void *> arguments;
    tables.reserve(contents.size());
    for (auto [arg, content] : llvm::zip(kernel.args, contents)) {
      arguments.push_back(content.data());
      if (arg.kind != KernelArgKind::Bank)
        continue;
      int64_t count = arg.stored.getDimSize(0);
      tables.emplace_back();
      for (int64_t i = 0; i < count; ++i)
        tables.back().push_back(content.data() + i * (content.size() / count));
      arguments.back() = tables.back().data();
    }
    auto function = library->kernel(kernel.name);
    auto workspace = library->workspace(kernel.name);
    ASSERT_TRUE(function && workspace);
    std::vector<char> memory((*workspace)(rows, visible[0], visible[1]) + 64);
    auto address = (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64;
    auto alone = [](void *, int64_t count, void (*body)(void *, int64_t, int64_t), void *data) {
      body(data, 0, count);
    };
    ctxc_call call{rows,
                   {visible[0], visible[1]},
                   arguments.data(),
                   reinterpret_cast<void *>(address),
                   alone,
                   nullptr};
    EXPECT_GE((*function)(&call), 0);
  }

  void runOnDevice(Device &device, const GpuKernel &kernel, std::vector<Bytes> &contents) {
    auto buffer = [&](int64_t bytes) {
      auto made = device.allocate(bytes);
      EXPECT_TRUE(bool(made)) << (made ? "" : llvm::toString(made.takeError()));
      return made ? std::move(*made) : nullptr;
    };
    std::vector<std::unique_ptr<Device::Buffer>> arguments, temporaries;
    for (const Bytes &content : contents) {
      arguments.push_back(buffer(content.size()));
      EXPECT_EQ(llvm::toString(device.upload(*arguments.back(), 0, content)), "");
    }
    for (const Extent &size : kernel.temporaries)
      temporaries.push_back(buffer(size.at(visible[0], visible[1])));
    auto seen = buffer(8);
    Bytes counts = bytesOf(std::vector<int32_t>{int32_t(visible[0]), int32_t(visible[1])});
    EXPECT_EQ(llvm::toString(device.upload(*seen, 0, counts)), "");
    std::vector<Device::Launch> launches;
    for (const GpuLaunch &each : kernel.launches) {
      launches.push_back(
          {each.function, "test", uint32_t(each.blocks), uint32_t(each.threads), {}});
      for (const GpuBuffer &of : each.buffers)
        launches.back().buffers.push_back(of.kind == GpuBuffer::Visible ? seen.get()
                                          : of.kind == GpuBuffer::Temporary
                                              ? temporaries[of.index].get()
                                              : arguments[of.index].get());
    }
    auto sequence = device.record(launches);
    ASSERT_TRUE(bool(sequence)) << llvm::toString(sequence.takeError());
    auto seconds = device.run(**sequence);
    ASSERT_TRUE(bool(seconds)) << llvm::toString(seconds.takeError());
    for (auto [content, from] : llvm::zip(contents, arguments))
      EXPECT_EQ(llvm::toString(device.download(content, *from, 0)), "");
  }

  /// The largest |a − b| / max |b|.
  template <typename T> static double farthest(const Bytes &a, const Bytes &b) {
    double largest = 0, worst = 0;
    std::vector<T> x = numbersOf<T>(a), y = numbersOf<T>(b);
    for (T number : y)
      largest = std::max(largest, std::abs(double(number)));
    for (auto [p, q] : llvm::zip(x, y)) {
      double difference = p == q ? 0 : std::abs(double(p) - double(q)) / largest;
      worst = difference <= worst ? worst : difference; // keeps a NaN
    }
    return worst;
  }

  void expectSame(Device &device, size_t step, xf::BlockOp block, double tolerance) {
    auto kernel = llvm::find_if(
        kernels, [&](const GpuKernel &each) { return each.name == kernelName(block); });
    ASSERT_NE(kernel, kernels.end());
    EXPECT_EQ(kernel->rows, rows);
    std::vector<Bytes> expected;
    for (const KernelArg &arg : kernel->args)
      expected.push_back(content(program.steps[step], arg));
    std::vector<Bytes> found = expected;
    runOnDevice(device, *kernel, found);
    runOnProcessor(*kernel, expected);
    for (auto [arg, a, b] : llvm::zip(kernel->args, found, expected)) {
      std::string what = (kernel::stringifyArgKind(arg.kind) + " " + arg.name + " " +
                          llvm::Twine(arg.index) + " of run " + llvm::Twine(arg.run))
                             .str();
      mlir::Type element = llvm::cast<mlir::MemRefType>(arg.type).getElementType();
      if (element.isF64())
        EXPECT_LE(farthest<double>(a, b), 0.01) << what;
      else if (element.isF32())
        EXPECT_LE(farthest<float>(a, b), tolerance) << what;
      else
        EXPECT_EQ(a, b) << what;
    }
  }

  const Program &program;
  Weights &weights;
  const int64_t rows, visible[2];
  std::mt19937 random;
  mlir::OwningOpRef<mlir::ModuleOp> processor;
  std::unique_ptr<KernelLibrary> library;
  std::vector<GpuKernel> kernels;
};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_GPU_ROWSCASE_H
