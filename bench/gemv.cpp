//===- gemv.cpp - ctxc-gemv: y = W x, ours beside Eigen and OpenBLAS --------===//
//
//   ctxc-gemv [--threads=N] [Google Benchmark's options]
//
// Uses shapes of Gemma 3 270M and 1B and of a Llama with a vocabulary of 32,000, for one and two
// vectors (S). As in decoding, the matrix comes from memory: each call takes the next of many
// copies of W, which together are ten times the size of the last-level cache, or as much as memory
// has room for. The result is bytes_per_second, of W's bytes; compare it with read_gbps in the
// context of the JSON, the bandwidth of this machine's memory. Every product is first compared with
// a float64 sum.
//
//===----------------------------------------------------------------------===//
#include "bench/Threads.h"
#include "ctxc/Runtime/Bandwidth.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Memory.h"
#include "lib/Runtime/Tune/LinearKernel.h"
#include "lib/Runtime/Workspace.h"
#include "llvm/Support/raw_ostream.h"
#include <Eigen/Dense>
#include <benchmark/benchmark.h>
#include <cblas.h>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

// Declared in OpenBLAS's own cblas.h, but not in others.
extern "C" void openblas_set_num_threads(int threads);

using namespace ctxc::bench;
using ctxc::LinearKernel;
using ctxc::ReadBandwidth;

namespace {

struct Shape {
  int64_t outputs, inputs;
};
constexpr Shape kShapes[] = {{2048, 640}, {640, 2048}, {6912, 1152}, {1152, 6912}, {32000, 1024}};
constexpr int64_t kStreams = 2;

int threads = 1;

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Copies of one random matrix, in float32 or bfloat16, and its input vectors.
class Problem {
public:
  Problem(Shape shape, bool half, size_t bytes)
      : shape(shape), half(half), x(kStreams * shape.inputs), y(kStreams * shape.outputs) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    size_t count = shape.outputs * shape.inputs;
    std::vector<uint32_t> one(count);
    for (uint32_t &bits : one) {
      float value = uniform(random);
      std::memcpy(&bits, &value, sizeof bits);
      bits &= 0xffff0000u; // a bfloat16 number, so that both types hold the same matrix
    }
    for (float &value : x)
      value = uniform(random);
    copies = std::max<size_t>(2, bytes / matrixBytes());
    memory = static_cast<char *>(pages.take(copies * matrixBytes()));
    for (size_t c = 0; c < copies; ++c)
      for (size_t i = 0; i < count; ++i) {
        char *at = memory + c * matrixBytes() + i * elementBytes();
        uint16_t high = uint16_t(one[i] >> 16);
        half ? std::memcpy(at, &high, 2) : std::memcpy(at, &one[i], 4);
      }
    expect(one);
  }

  size_t elementBytes() const { return half ? 2 : 4; }
  size_t matrixBytes() const { return shape.outputs * shape.inputs * elementBytes(); }
  const void *next() { return memory + (at++ % copies) * matrixBytes(); }
  const float *nextFloats() { return static_cast<const float *>(next()); }

  /// Whether the first `streams` results equal float64 sums, up to the error bound of float32 sums.
  bool isRight(int64_t streams) const {
    for (int64_t i = 0; i < streams * shape.outputs; ++i)
      if (!(std::abs(y[i] - expected[i]) <= 1e-6 * double(shape.inputs)))
        return false;
    return true;
  }

  Shape shape;
  bool half;
  std::vector<float> x, y; ///< kStreams × inputs, kStreams × outputs

private:
  void expect(const std::vector<uint32_t> &bits) {
    expected.assign(y.size(), 0);
    for (int64_t s = 0; s < kStreams; ++s)
      for (int64_t o = 0; o < shape.outputs; ++o)
        for (int64_t i = 0; i < shape.inputs; ++i) {
          float weight;
          std::memcpy(&weight, &bits[o * shape.inputs + i], sizeof weight);
          expected[s * shape.outputs + o] += double(weight) * x[s * shape.inputs + i];
        }
  }

  ctxc::Workspace pages; ///< large pages, like those of a mapped checkpoint
  char *memory;
  std::vector<double> expected;
  size_t copies, at = 0;
};

using Work = std::function<void(Problem &, int64_t streams)>;

using Vector = Eigen::VectorXf;
using Columns = Eigen::MatrixXf; ///< one column for each vector

/// One matrix product with all vectors.
void productByEigen(Problem &p, int64_t streams) {
  Eigen::Map<const Matrix> w(p.nextFloats(), p.shape.outputs, p.shape.inputs);
  Eigen::Map<const Columns> x(p.x.data(), p.shape.inputs, streams);
  Eigen::Map<Columns>(p.y.data(), p.shape.outputs, streams).noalias() = w * x;
}

/// A separate product for each vector.
void sweepsByEigen(Problem &p, int64_t streams) {
  Eigen::Map<const Matrix> w(p.nextFloats(), p.shape.outputs, p.shape.inputs);
  for (int64_t s = 0; s < streams; ++s) {
    Eigen::Map<const Vector> x(p.x.data() + s * p.shape.inputs, p.shape.inputs);
    Eigen::Map<Vector>(p.y.data() + s * p.shape.outputs, p.shape.outputs).noalias() = w * x;
  }
}

void productByOpenBlas(Problem &p, int64_t streams) {
  int outputs = p.shape.outputs, inputs = p.shape.inputs;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, streams, outputs, inputs, 1, p.x.data(),
              inputs, p.nextFloats(), inputs, 0, p.y.data(), outputs);
}

void sweepsByOpenBlas(Problem &p, int64_t streams) {
  int outputs = p.shape.outputs, inputs = p.shape.inputs;
  const float *w = p.nextFloats();
  for (int64_t s = 0; s < streams; ++s)
    cblas_sgemv(CblasRowMajor, CblasNoTrans, outputs, inputs, 1, w, inputs, p.x.data() + s * inputs,
                1, 0, p.y.data() + s * outputs, 1);
}

void add(const std::string &name, std::shared_ptr<Problem> problem, int64_t streams, Work work) {
  std::string full = name + "/" + (problem->half ? "bf16" : "f32") + "/" +
                     std::to_string(problem->shape.outputs) + "x" +
                     std::to_string(problem->shape.inputs) + "/S" + std::to_string(streams);
  benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State &state) {
    std::fill(problem->y.begin(), problem->y.end(), NAN);
    work(*problem, streams);
    if (!problem->isRight(streams)) {
      state.SkipWithError("its result is wrong");
      return;
    }
    for (auto _ : state) {
      work(*problem, streams);
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(int64_t(state.iterations() * problem->matrixBytes()));
  })->UseRealTime();
}

/// Registers all benchmarks of one shape and type.
llvm::Error addShape(Shape shape, bool half, size_t bytes) {
  auto problem = std::make_shared<Problem>(shape, half, bytes);
  auto compiled = LinearKernel::compile(shape.outputs, shape.inputs, half ? "bf16" : "f32");
  if (!compiled)
    return compiled.takeError();
  std::shared_ptr<LinearKernel> ours = std::move(*compiled);
  for (int64_t streams = 1; streams <= kStreams; ++streams) {
    add("ctxc", problem, streams,
        [ours](Problem &p, int64_t s) { ours->run(p.next(), p.x.data(), p.y.data(), s, threads); });
    if (half)
      continue;
    add("Eigen", problem, streams, sweepsByEigen);
    add("OpenBLAS", problem, streams, sweepsByOpenBlas);
    if (streams == 1)
      continue;
    add("Eigen-product", problem, streams, productByEigen);
    add("OpenBLAS-product", problem, streams, productByOpenBlas);
  }
  return llvm::Error::success();
}

} // namespace

int main(int argc, char **argv) {
  std::optional<int> given = takeThreads(argc, argv);
  if (!given) {
    llvm::errs() << "ctxc-gemv: --threads must be a number from 1 to 1024\n";
    return 2;
  }
  threads = *given;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  openblas_set_num_threads(threads);
  Eigen::setNbThreads(threads);
  size_t bytes;
  {
    ReadBandwidth bandwidth(threads);
    // All problems are in memory at the same time. A virtual machine may show the whole cache of a
    // processor of which it has a few cores.
    constexpr size_t problems = 2 * std::size(kShapes);
    bytes = std::min<uint64_t>(bandwidth.bytes() / 2,
                               ctxc::availableMemory().value_or(UINT64_MAX) / (2 * problems));
    benchmark::AddCustomContext("read_gbps",
                                std::to_string(best(bandwidth.measure(1)).gigabytesPerSecond));
  }
  benchmark::AddCustomContext("threads", std::to_string(threads));
  for (Shape shape : kShapes)
    for (bool half : {false, true})
      if (llvm::Error error = addShape(shape, half, bytes)) {
        llvm::errs() << "ctxc-gemv: " << llvm::toString(std::move(error)) << "\n";
        return 1;
      }
  benchmark::RunSpecifiedBenchmarks();
}
