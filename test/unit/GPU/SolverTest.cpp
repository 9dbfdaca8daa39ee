// The inner problems of a post-norm's patch on a device, compared with the processor's solvers:
// random sizes, zeros in scale and target, vectors of equal entries, zero vectors, and every case
// of `least`.
#include "Device.h"
#include "ctxc/Lowering/GPU.h"
#include "ctxc/Numerics/KernelABI.h"
#include "ctxc/Numerics/NormInversion.h"
#include "lib/Lowering/GPU/Kernels.h"
#include "lib/Lowering/GPU/Targets.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <cmath>
#include <random>

using namespace ctxc;
using namespace ctxc::test;
using namespace ctxc::gpu_lowering;

namespace {

using Floats = std::vector<float>;
constexpr float eps = 1e-6f;

struct Problem {
  std::string what;
  Floats g, m, data;
};

struct Solved {
  Floats target, delta;
  std::vector<int64_t> counts{0, 0};
  double error = 0;
};

/// x divided by its RMS, as target and data are.
Floats normalised(const Floats &x) {
  double squares = 0;
  for (float value : x)
    squares += double(value) * value;
  Floats n;
  for (float value : x)
    n.push_back(float(value / std::sqrt(squares / x.size() + eps)));
  return n;
}

Solved onProcessor(Update update, const Problem &p) {
  int64_t d = p.g.size();
  Solved solved{Floats(d), Floats(d)};
  std::vector<double> scratch(scratchDoubles(d));
  ctxc_rows_invert_rms_norm(int32_t(update), 1, d, eps, p.g.data(), p.m.data(), p.data.data(),
                            solved.target.data(), scratch.data());
  Floats n = normalised(solved.target);
  ctxc_rows_solve_scale(int32_t(update), 1, d, p.g.data(), p.m.data(), n.data(),
                        solved.delta.data(), solved.counts.data(), scratch.data());
  ctxc_rows_predict_scale_replay(1, d, eps, p.m.data(), solved.delta.data(), solved.target.data(),
                                 p.data.data(), &solved.error);
  return solved;
}

/// The three kernels for vectors of `d` entries: for one row, or for several rows with a block
/// each.
class SolverKernels {
public:
  SolverKernels(Device &device, Update update, int64_t d, int64_t rows)
      : device(device), d(d), rows(rows) {
    mlir::DialectRegistry registry;
    registerCodegenDialects(registry);
    registerGpuDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    auto target = GpuTarget::named(device.target());
    EXPECT_TRUE(bool(target));
    mlir::OpBuilder b(&context);
    auto loc = b.getUnknownLoc();
    module = mlir::ModuleOp::create(loc);
    b.setInsertionPointToEnd(module->getBody());
    auto kernels = mlir::gpu::GPUModuleOp::create(b, loc, "kernels");
    mlir::Block block; // its arguments stand for the memory
    auto view = [&](int64_t each, mlir::Type element) {
      auto type = mlir::MemRefType::get({rows * each}, element);
      return View{block.addArgument(type, loc), {}, {fixedExtent(each)}};
    };
    mlir::Type f32 = b.getF32Type(), f64 = b.getF64Type();
    View g = view(d, f32), m = view(d, f32), data = view(d, f32), result = view(d, f32),
         scratch = view(scratchDoubles(d), f64), counted = view(2, b.getI64Type()),
         target1 = view(d, f32), error = view(1, f64);
    auto write = [&](const char *name, void (*writer)(KernelWriter &, const Support &, mlir::Value),
                     const Support &call) {
      KernelWriter w(kernels, name, loc, 512, **target);
      writer(w, call, rows > 1 ? w.block : mlir::Value());
      w.finish(rows);
      functions.push_back(name);
      arguments.emplace_back();
      for (mlir::Value root : w.roots)
        arguments.back().push_back(mlir::cast<mlir::BlockArgument>(root).getArgNumber());
    };
    using Function = kernel::SupportFunction;
    mlir::Attribute of = b.getI32IntegerAttr(int32_t(update)), one = b.getI64IntegerAttr(1),
                    size = b.getI64IntegerAttr(d), plus = b.getF32FloatAttr(eps);
    write("invert", writeInvertRmsNorm,
          {Function::ctxc_rows_invert_rms_norm,
           b.getArrayAttr({of, one, size, plus}),
           {g, m, data, result, scratch}});
    write("solve", writeSolveScale,
          {Function::ctxc_rows_solve_scale,
           b.getArrayAttr({of, one, size}),
           {g, m, data, result, counted, scratch}});
    write("predict", writePredictScaleReplay,
          {Function::ctxc_rows_predict_scale_replay,
           b.getArrayAttr({one, size, plus}),
           {m, result, target1, data, error}});
    auto code = (*target)->emit(*module);
    EXPECT_TRUE(bool(code)) << (code ? "" : llvm::toString(code.takeError()));
    EXPECT_EQ(llvm::toString(device.load(*code)), "");
    for (int64_t i = 0; i < 8; ++i) {
      auto type = mlir::cast<mlir::MemRefType>(block.getArgument(i).getType());
      auto made = device.allocate(type.getNumElements() * type.getElementTypeBitWidth() / 8);
      EXPECT_TRUE(bool(made));
      buffers.push_back(std::move(*made));
    }
  }

  /// Runs a problem in each row.
  std::vector<Solved> run(llvm::ArrayRef<Problem> problems) {
    Solved all{Floats(rows * d), Floats(rows * d), std::vector<int64_t>(2 * rows)};
    Floats g, m, data, n;
    for (const Problem &p : problems) {
      llvm::append_range(g, p.g);
      llvm::append_range(m, p.m);
      llvm::append_range(data, p.data);
    }
    put(0, g), put(1, m), put(2, data);
    launch(0);
    get(3, all.target);
    for (int64_t r = 0; r < rows; ++r)
      llvm::append_range(n, normalised(part(all.target, r)));
    put(5, all.counts), put(2, n);
    launch(1);
    get(3, all.delta), get(5, all.counts);
    put(6, all.target), put(2, data);
    launch(2);
    std::vector<double> errors(rows);
    get(7, errors);
    std::vector<Solved> solved;
    for (int64_t r = 0; r < rows; ++r)
      solved.push_back({part(all.target, r), part(all.delta, r), part(all.counts, r), errors[r]});
    return solved;
  }

private:
  template <typename T> std::vector<T> part(const std::vector<T> &all, int64_t row) {
    int64_t each = all.size() / rows;
    return std::vector<T>(all.begin() + row * each, all.begin() + (row + 1) * each);
  }
  template <typename T> void put(int64_t buffer, const std::vector<T> &numbers) {
    llvm::ArrayRef<char> bytes(reinterpret_cast<const char *>(numbers.data()),
                               numbers.size() * sizeof(T));
    EXPECT_EQ(llvm::toString(device.upload(*buffers[buffer], 0, bytes)), "");
  }
  template <typename T> void get(int64_t buffer, std::vector<T> &numbers) {
    llvm::MutableArrayRef<char> bytes(reinterpret_cast<char *>(numbers.data()),
                                      numbers.size() * sizeof(T));
    EXPECT_EQ(llvm::toString(device.download(bytes, *buffers[buffer], 0)), "");
  }
  void launch(size_t function) {
    Device::Launch launch;
    launch.function = functions[function];
    launch.blocks = uint32_t(rows);
    launch.threads = 512;
    for (int64_t argument : arguments[function])
      launch.buffers.push_back(buffers[argument].get());
    auto sequence = device.record(launch);
    ASSERT_TRUE(bool(sequence)) << llvm::toString(sequence.takeError());
    auto seconds = device.run(**sequence);
    EXPECT_TRUE(bool(seconds)) << llvm::toString(seconds.takeError());
  }

  Device &device;
  int64_t d, rows;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<std::string> functions;
  std::vector<std::vector<int64_t>> arguments;
  std::vector<std::unique_ptr<Device::Buffer>> buffers;
};

struct GpuSolver : testing::TestWithParam<Update> {
  Floats gaussian(int64_t d, double scale = 1) {
    std::normal_distribution<double> normal(0, scale);
    Floats x(d);
    for (float &value : x)
      value = float(normal(random));
    return x;
  }
  Problem drawn(std::string what, int64_t d, double wanted = 1) {
    return {std::move(what), gaussian(d, wanted), gaussian(d), gaussian(d)};
  }

  std::vector<Problem> problems(int64_t d) {
    std::vector<Problem> all;
    for (double wanted : {1e-4, 0.3, 1.0, 3.0, 1e4}) // growing, close, shrinking
      all.push_back(drawn("wanted " + std::to_string(wanted), d, wanted));
    Problem same = drawn("what the data gives", d);
    Floats n = normalised(same.data);
    for (int64_t k = 0; k < d; ++k)
      same.g[k] = same.m[k] * n[k];
    all.push_back(same);
    Problem near = same;
    near.what = "nearly what the data gives";
    for (int64_t k = 0; k < d; ++k)
      near.g[k] *= 1 + 0.02f * gaussian(1)[0];
    all.push_back(near);
    Problem zeros = drawn("zeros", d, 0.5);
    for (int64_t k = 0; k < d; ++k) {
      zeros.g[k] *= k % 5 != 1;
      zeros.m[k] *= k % 7 != 2;
      zeros.data[k] *= k % 3 != 0;
    }
    all.push_back(zeros);
    Problem sink = drawn("an excess with room", d, 1e-3);
    for (int64_t k = 0; k < d; k += 3)
      sink.g[k] = sink.m[k] = 0;
    all.push_back(sink);
    all.push_back({"all alike", Floats(d, 0.25f), Floats(d, 1.5f), Floats(d, -2)});
    all.push_back({"no target", Floats(d), gaussian(d), gaussian(d)});
    all.push_back({"no scale", gaussian(d), Floats(d), gaussian(d)});
    all.push_back({"no data", gaussian(d), gaussian(d), Floats(d)});
    Problem infinite = drawn("no number", d);
    infinite.g[d / 2] = std::numeric_limits<float>::quiet_NaN();
    all.push_back(infinite);
    infinite = drawn("infinite", d);
    infinite.data[d - 1] = std::numeric_limits<float>::infinity();
    all.push_back(infinite);
    Problem extreme = drawn("far apart", d);
    for (int64_t k = 0; k < d; ++k) {
      extreme.g[k] *= k % 2 ? 1e30f : 1e-30f;
      extreme.m[k] *= k % 3 ? 1e-25f : 1e25f;
    }
    all.push_back(extreme);
    return all;
  }

  void expectTheProcessors(const Problem &p, const Solved &found, int64_t d);

  std::mt19937 random{7};
};

/// max |a − b| / max(|b|, |beside|).
double farthest(const Floats &a, const Floats &b, const Floats &beside) {
  double worst = 0, largest = 0;
  for (const Floats *values : {&b, &beside})
    for (float value : *values)
      largest = std::max(largest, double(std::abs(value)));
  for (size_t k = 0; k < a.size(); ++k) {
    if (std::isnan(a[k]) && std::isnan(b[k]))
      continue;
    double difference = a[k] == b[k] ? 0 : std::abs(double(a[k]) - b[k]) / largest;
    worst = difference <= worst ? worst : difference; // keeps a NaN
  }
  return worst;
}

void GpuSolver::expectTheProcessors(const Problem &p, const Solved &found, int64_t d) {
  SCOPED_TRACE(std::string(stringifyUpdate(GetParam())) + ", " + p.what +
               ", d = " + std::to_string(d));
  Solved expected = onProcessor(GetParam(), p);
  EXPECT_LE(farthest(found.target, expected.target, {}), 1e-6);
  EXPECT_LE(farthest(found.delta, expected.delta, p.m), 1e-6);
  EXPECT_EQ(found.counts, expected.counts);
  if (std::isfinite(expected.error)) {
    EXPECT_NEAR(found.error, expected.error, 1e-6 * expected.error);
  }
}

TEST_P(GpuSolver, IsTheProcessors) {
  for (int64_t d : {1, 7, 33, 1153}) {
    CTXC_OPEN_DEVICE(device);
    SolverKernels kernels(*device, GetParam(), d, 1);
    for (const Problem &p : problems(d))
      expectTheProcessors(p, kernels.run(p)[0], d);
  }
}

TEST_P(GpuSolver, EachRowIsTheProcessors) {
  for (int64_t d : {7, 515}) {
    CTXC_OPEN_DEVICE(device);
    std::vector<Problem> all = problems(d);
    SolverKernels kernels(*device, GetParam(), d, all.size());
    for (auto [p, found] : llvm::zip(all, kernels.run(all)))
      expectTheProcessors(p, found, d);
  }
}

INSTANTIATE_TEST_SUITE_P(Updates, GpuSolver, testing::ValuesIn(allUpdates),
                         [](const auto &info) { return std::string(stringifyUpdate(info.param)); });

} // namespace
