//===- gemm.cpp - ctxc-gemm: Y = X Wᵀ of a prompt, ours beside OpenBLAS and oneDNN ---===//
//
//   ctxc-gemm [--threads=N] [Google Benchmark's options]
//
// Uses matrices of Gemma 3 270M and of a Llama of 260M parameters, with 512 vectors of float32; W
// is stored row by row as in a checkpoint. With `rounded`, the time includes rounding the vectors
// to bfloat16; `ctxc-vectors` does not use the tile registers that `ctxc` does where there are
// some. The result is GFLOPS. Every product is first compared with a float64 sum.
//
//===----------------------------------------------------------------------===//
#include "bench/Threads.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/Tune/LinearKernel.h"
#include "llvm/Support/raw_ostream.h"
#include <benchmark/benchmark.h>
#include <cblas.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <functional>
#include <random>

// Declared in OpenBLAS's own cblas.h, but not in others.
extern "C" void openblas_set_num_threads(int threads);

using namespace ctxc::bench;
using ctxc::LinearKernel;
using ctxc::PromptProducts;

namespace {

struct Shape {
  int64_t outputs, inputs;
};
constexpr Shape shapes[] = {{2048, 640}, {640, 2048}, {2816, 1024}, {1024, 2816}};
constexpr int64_t rows = 512;

int threads = 1;

/// Begins with a cache line, as the memory of kernels does.
template <typename T> struct Aligned {
  using value_type = T;
  T *allocate(size_t count) {
    return static_cast<T *>(::operator new(count * sizeof(T), std::align_val_t(64)));
  }
  void deallocate(T *memory, size_t) { ::operator delete(memory, std::align_val_t(64)); }
  bool operator==(Aligned) const { return true; }
  bool operator!=(Aligned) const { return false; }
};
template <typename T> using Numbers = std::vector<T, Aligned<T>>;

/// W in both types, and X.
struct Problem {
  explicit Problem(Shape shape)
      : shape(shape), w(shape.outputs * shape.inputs), half(w.size()), x(rows * shape.inputs),
        y(rows * shape.outputs) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (size_t i = 0; i < w.size(); ++i) {
      w[i] = uniform(random);
      uint32_t bits;
      std::memcpy(&bits, &w[i], sizeof bits);
      half[i] = uint16_t(bits >> 16);
      bits &= 0xffff0000u; // both types hold the same matrix
      std::memcpy(&w[i], &bits, sizeof bits);
    }
    for (float &value : x)
      value = uniform(random);
  }

  /// Whether sampled entries of y equal float64 sums, up to `tolerance` of the size of the terms.
  bool isRight(double tolerance) const {
    for (int64_t i = 0; i < int64_t(y.size()); i += 997) {
      const float *row = &x[i / shape.outputs * shape.inputs];
      const float *weights = &w[i % shape.outputs * shape.inputs];
      double sum = 0, size = 0;
      for (int64_t k = 0; k < shape.inputs; ++k) {
        sum += double(weights[k]) * row[k];
        size += std::abs(double(weights[k]) * row[k]);
      }
      if (!(std::abs(y[i] - sum) <= tolerance * size))
        return false;
    }
    return true;
  }

  Shape shape;
  Numbers<float> w;
  Numbers<uint16_t> half;
  Numbers<float> x, y;
};

using Work = std::function<void(Problem &)>;

Work byOpenBlas() {
  return [](Problem &p) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, p.shape.outputs, p.shape.inputs, 1,
                p.x.data(), p.shape.inputs, p.w.data(), p.shape.inputs, 0, p.y.data(),
                p.shape.outputs);
  };
}

/// Uses W in its stored layout; oneDNN's own reorder rounds X.
Work byOneDnn(Problem &p, bool rounded) {
  using namespace dnnl;
  using Type = memory::data_type;
  engine cpu(engine::kind::cpu, 0);
  Type type = rounded ? Type::bf16 : Type::f32;
  memory::desc given({rows, p.shape.inputs}, Type::f32, memory::format_tag::ab);
  memory::desc xs({rows, p.shape.inputs}, type, memory::format_tag::ab);
  memory::desc ws({p.shape.inputs, p.shape.outputs}, type, memory::format_tag::ba);
  memory::desc ys({rows, p.shape.outputs}, Type::f32, memory::format_tag::ab);
  matmul product(matmul::primitive_desc(matmul::desc(xs, ws, ys), cpu));
  memory from(given, cpu, p.x.data()), y(ys, cpu, p.y.data());
  memory w(ws, cpu, rounded ? static_cast<void *>(p.half.data()) : p.w.data());
  memory x = rounded ? memory(xs, cpu) : from;
  reorder round(from, x);
  return [=](Problem &) mutable {
    stream work(cpu);
    if (rounded)
      round.execute(work, from, x);
    product.execute(work, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
    work.wait();
  };
}

void add(const char *library, PromptProducts products, const char *type,
         std::shared_ptr<Problem> problem, Work work) {
  const bool rounded = products == PromptProducts::Rounded;
  const char *how = rounded ? "-rounded/" : products == PromptProducts::Split ? "-split/" : "/";
  std::string name = std::string(library) + how + type + "/" +
                     std::to_string(problem->shape.outputs) + "x" +
                     std::to_string(problem->shape.inputs);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State &state) mutable {
    std::fill(problem->y.begin(), problem->y.end(), NAN);
    work(*problem);
    if (!problem->isRight(rounded ? 0x1p-8 : 1e-6)) {
      state.SkipWithError("its result is wrong");
      return;
    }
    for (auto _ : state) {
      work(*problem);
      benchmark::ClobberMemory();
    }
    state.counters["GFLOPS"] = benchmark::Counter(2e-9 * rows * problem->w.size(),
                                                  benchmark::Counter::kIsIterationInvariantRate);
  })->UseRealTime();
}

llvm::Error addOurs(std::shared_ptr<Problem> problem, const char *type, PromptProducts products,
                    bool isTiled = true) {
  ctxc::CpuTarget host = ctxc::CpuTarget::host();
  auto compiled = LinearKernel::compile(problem->shape.outputs, problem->shape.inputs, type,
                                        products, isTiled ? host : host.withoutTiles());
  if (!compiled)
    return compiled.takeError();
  std::shared_ptr<LinearKernel> ours = std::move(*compiled);
  bool half = std::strcmp(type, "bf16") == 0;
  add(isTiled ? "ctxc" : "ctxc-vectors", products, type, problem, [=](Problem &p) {
    const void *w = half ? static_cast<const void *>(p.half.data()) : p.w.data();
    ours->run(w, p.x.data(), p.y.data(), rows, threads);
  });
  return llvm::Error::success();
}

llvm::Error addShape(Shape shape) {
  auto problem = std::make_shared<Problem>(shape);
  const ctxc::CpuTarget host = ctxc::CpuTarget::host();
  llvm::Error errors = llvm::Error::success();
  auto ours = [&](const char *type, PromptProducts products, bool isTiled = true) {
    errors = llvm::joinErrors(std::move(errors), addOurs(problem, type, products, isTiled));
  };
  for (const char *type : {"f32", "bf16"}) {
    ours(type, PromptProducts::Exact);
    if (host.tiles)
      ours(type, PromptProducts::Split);
  }
  if (host.bfloatPairs)
    ours("bf16", PromptProducts::Rounded);
  if (host.tiles)
    ours("bf16", PromptProducts::Rounded, /*isTiled=*/false);
  add("OpenBLAS", PromptProducts::Exact, "f32", problem, byOpenBlas());
  add("oneDNN", PromptProducts::Exact, "f32", problem, byOneDnn(*problem, false));
  add("oneDNN", PromptProducts::Rounded, "bf16", problem, byOneDnn(*problem, true));
  return errors;
}

} // namespace

int main(int argc, char **argv) {
  std::optional<int> given = takeThreads(argc, argv);
  if (!given) {
    llvm::errs() << "ctxc-gemm: --threads must be a number from 1 to 1024\n";
    return 2;
  }
  threads = *given;
  ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), /*overwrite=*/1); // read by oneDNN
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  openblas_set_num_threads(threads);
  benchmark::AddCustomContext("threads", std::to_string(threads));
  for (Shape shape : shapes)
    if (llvm::Error error = addShape(shape)) {
      llvm::errs() << "ctxc-gemm: " << llvm::toString(std::move(error)) << "\n";
      return 1;
    }
  benchmark::RunSpecifiedBenchmarks();
}
