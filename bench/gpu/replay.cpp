// ctxc-gpu-replay: runs a recording on an NVIDIA GPU, compares the results with the recorded ones,
// and measures the runs that have a label, by the device's own clock. Needs only the driver. Writes
// JSON; see Recording.h.
//
//   ctxc-gpu-replay RECORDING [--repeats N] [--kernels]
#include "bench/gpu/ReplayData.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/GPU/CUDA/CudaDevice.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <map>

using namespace ctxc;
using namespace ctxc::bench;
using llvm::Error;
using llvm::StringRef;

namespace {

class Replay {
public:
  Replay(StringRef content, int repeats, bool kernels)
      : reader(content), repeats(repeats), kernels(kernels) {}

  Error all() {
    while (!reader.atEnd()) {
      Call call = reader.call();
      // Results are compared before the work is run again, since that adds to counts.
      if (call != Call::Download)
        if (Error error = measure())
          return error;
      if (Error error = one(call))
        return error;
    }
    if (Error error = measure())
      return error;
    return reader.isGood() ? Error::success() : makeError("is no whole recording");
  }

  void write(llvm::json::OStream &json) {
    json.attribute("device", device ? device->name() : "none");
    json.attribute("target", device ? device->target() : "none");
    json.attribute("drawn_bytes", int64_t(drawnBytes));
    json.attribute("allocated_bytes", int64_t(allocated));
    json.attribute("compared_bytes", int64_t(compared));
    json.attribute("largest_difference", std::min(largest, 1e300)); // JSON has no infinity
    json.attribute("finite", allFinite);
    json.attributeArray("runs", [&] {
      for (const Measured &run : measured)
        json.object([&] {
          json.attribute("label", run.label);
          json.attribute("runs", int64_t(run.runs));
          json.attribute("launches", int64_t(run.launches));
          json.attribute("median_ms", run.median);
          json.attribute("best_ms", run.best);
          json.attributeArray("kernels", [&] {
            for (const Kernel &kernel : run.kernels)
              json.object([&] {
                json.attribute("function", kernel.function);
                json.attribute("launches", int64_t(kernel.launches));
                json.attribute("median_ms", kernel.milliseconds);
              });
          });
        });
    });
    if (lastOf["patch"].size() == 2) {
      const std::vector<float> &full = lastOf["patch"][0];
      auto against = [&](StringRef what, const std::vector<float> &logits) {
        if (logits.size() != full.size() || full.empty())
          return;
        double distance = 0;
        for (auto [a, b] : llvm::zip(logits, full))
          distance = std::max(distance, std::abs(double(a) - double(b)));
        auto token = [](const std::vector<float> &x) {
          return std::max_element(x.begin(), x.end()) - x.begin();
        };
        json.attributeObject(what, [&] {
          json.attribute("l_inf", std::min(distance, 1e300));
          json.attribute("same_token", token(logits) == token(full));
        });
      };
      // The difference from the full run's logits on this device: the paper's claim, and its
      // control.
      json.attributeObject("against_full", [&] {
        against("fused", lastOf["patch"][1]);
        for (const char *label : {"apply", "control"})
          if (!lastOf[label].empty())
            against(label, lastOf[label].back());
      });
    }
    json.attributeArray("notes", [&] {
      for (const auto &note : notes)
        json.object([&] {
          json.attribute("what", note.first);
          json.attribute("why", note.second);
        });
    });
  }

private:
  struct Recorded {
    std::unique_ptr<Device::Sequence> sequence;
    std::vector<Device::Launch> launches;
  };
  struct Kernel {
    std::string function;
    size_t launches;
    double milliseconds; ///< of all kernels together
  };
  /// The runs that share a label, whose times are added up. The kernels are those of the first run.
  struct Measured {
    std::string label;
    size_t runs = 0, launches = 0;
    double median = 0, best = 0;
    std::vector<Kernel> kernels;
  };

  Error one(Call call) {
    if (!device && call != Call::Target)
      return makeError("names no target");
    switch (call) {
    case Call::Target:
      return open(reader.text());
    case Call::Load:
      return device->load(reader.text());
    case Call::Allocate:
      return allocate();
    case Call::Free:
      if (size_t id = reader.number(); id < buffers.size())
        buffers[id].reset();
      return Error::success();
    case Call::Upload: {
      Device::Buffer *to = buffer();
      size_t offset = reader.number();
      StringRef bytes = reader.text();
      return to ? device->upload(*to, offset, {bytes.data(), bytes.size()}) : noBuffer();
    }
    case Call::Draw:
      return draw();
    case Call::Download:
      return download();
    case Call::Record:
      return record();
    case Call::Run:
      return run();
    case Call::Note: {
      std::string what = reader.text().str();
      notes.push_back({what, reader.text().str()});
      return Error::success();
    }
    }
    return makeError("is no recording of this version");
  }

  Error open(StringRef target) {
    int architecture = 0;
    if (!target.consume_front("cuda:sm_") || target.getAsInteger(10, architecture))
      return makeError("found '" + target + "', expected a target of NVIDIA's");
    auto opened = cuda::CudaDevice::open(architecture, /*isChecked=*/false, /*number=*/0);
    if (!opened)
      return opened.takeError();
    device = std::move(*opened);
    return Error::success();
  }

  static Error noBuffer() { return makeError("names memory that is not there"); }
  Device::Buffer *buffer() {
    size_t id = reader.number();
    return id < buffers.size() ? buffers[id].get() : nullptr;
  }

  Error allocate() {
    size_t id = reader.number();
    auto made = device->allocate(reader.number());
    if (!made)
      return made.takeError();
    if (id != buffers.size())
      return noBuffer();
    allocated += (*made)->bytes;
    buffers.push_back(std::move(*made));
    return Error::success();
  }

  Error draw() {
    Device::Buffer *to = buffer();
    size_t offset = reader.number(), bytes = reader.number();
    auto kind = reader.number();
    if (!to || bytes > to->bytes || kind >= uint64_t(Numbers::Kinds))
      return noBuffer();
    std::vector<char> &block = blocks[kind];
    if (block.empty())
      block = drawnBlock(Numbers(kind));
    for (size_t at = 0; at < bytes; at += block.size())
      if (Error error =
              device->upload(*to, offset + at, {block.data(), std::min(block.size(), bytes - at)}))
        return error;
    drawnBytes += bytes;
    return Error::success();
  }

  Error download() {
    Device::Buffer *from = buffer();
    size_t offset = reader.number(), count = reader.number();
    StringRef expected = reader.text(), label = reader.text();
    if (!from || count > from->bytes || (!expected.empty() && expected.size() != count))
      return noBuffer();
    std::vector<char> found(count);
    if (Error error = device->download(found, *from, offset))
      return error;
    if (!label.empty() && count % sizeof(float) == 0) {
      std::vector<std::vector<float>> &last = lastOf[label.str()];
      last.emplace_back(count / sizeof(float));
      memcpy(last.back().data(), found.data(), count);
      if (last.size() > 2)
        last.erase(last.begin());
    }
    if (!expected.empty()) {
      compared += count;
      largest = std::max(largest, difference({found.data(), found.size()}, expected));
      return Error::success();
    }
    for (size_t i = 0; i + sizeof(float) <= count && count != sizeof(double); i += sizeof(float)) {
      float number;
      memcpy(&number, found.data() + i, sizeof number);
      allFinite &= bool(std::isfinite(number));
    }
    return Error::success();
  }

  Error record() {
    size_t id = reader.number(), count = reader.number();
    std::vector<Device::Launch> launches;
    for (size_t i = 0; i < count && reader.isGood(); ++i) {
      Device::Launch launch;
      launch.function = reader.text().str();
      launch.source = reader.text().str();
      launch.blocks = reader.number();
      launch.threads = reader.number();
      launch.code = reader.number();
      for (size_t n = reader.number(); n && reader.isGood(); --n) {
        launch.buffers.push_back(buffer());
        if (!launch.buffers.back())
          return noBuffer();
      }
      launches.push_back(std::move(launch));
    }
    auto made = device->record(launches);
    if (!made)
      return made.takeError();
    if (id != sequences.size())
      return makeError("names a sequence that is not there");
    sequences.push_back({std::move(*made), std::move(launches)});
    return Error::success();
  }

  /// Runs the launches of each function alone, one after the other. They are the launches of all
  /// layers, so that a layer's weights are not in the cache from the launch before.
  Error measureKernels(const Recorded &whole, Measured &made) {
    std::map<std::string, std::vector<Device::Launch>> functions;
    for (const Device::Launch &launch : whole.launches)
      functions[launch.function].push_back(launch);
    for (auto &[function, launches] : functions) {
      auto sequence = device->record(launches);
      if (!sequence)
        return sequence.takeError();
      auto times = timesOf(**sequence, 9);
      if (!times)
        return times.takeError();
      made.kernels.push_back({function, launches.size(), (*times)[times->size() / 2]});
    }
    return Error::success();
  }

  Error run() {
    size_t id = reader.number();
    StringRef label = reader.text();
    if (id >= sequences.size())
      return makeError("names a sequence that is not there");
    auto seconds = device->run(*sequences[id].sequence);
    if (!seconds)
      return seconds.takeError();
    if (!label.empty())
      pending = {label.str(), id};
    return Error::success();
  }

  /// Repeats the previous run. Only its first repetition may still have to build the graph.
  Error measure() {
    auto [label, id] = pending;
    if (label.empty())
      return Error::success();
    pending.first.clear();
    auto times = timesOf(*sequences[id].sequence, repeats);
    if (!times)
      return times.takeError();
    bool isFirst = measured.empty() || measured.back().label != label;
    if (isFirst)
      measured.emplace_back().label = label;
    Measured &made = measured.back();
    ++made.runs;
    made.launches += sequences[id].launches.size();
    made.median += (*times)[times->size() / 2];
    made.best += times->front();
    return kernels && isFirst ? measureKernels(sequences[id], made) : Error::success();
  }

  llvm::Expected<std::vector<double>> timesOf(Device::Sequence &sequence, int count) {
    std::vector<double> times;
    for (int i = 0; i < 2 + count; ++i) {
      auto seconds = device->run(sequence);
      if (!seconds)
        return seconds.takeError();
      if (i >= 2)
        times.push_back(*seconds * 1e3);
    }
    std::sort(times.begin(), times.end());
    return times;
  }

  RecordingReader reader;
  int repeats;
  bool kernels;                             ///< whether kernels are measured one by one too
  std::unique_ptr<cuda::CudaDevice> device; ///< outlives its memory
  std::vector<std::unique_ptr<Device::Buffer>> buffers;
  std::vector<Recorded> sequences;
  std::vector<char> blocks[size_t(Numbers::Kinds)];
  std::vector<Measured> measured;
  std::pair<std::string, size_t> pending; ///< the label and sequence of a run to be measured
  std::vector<std::pair<std::string, std::string>> notes;
  /// The last two downloads of each label: for `patch`, the logits of the full run and of the fused
  /// reduced run; for all others, the second are its logits.
  std::map<std::string, std::vector<std::vector<float>>> lastOf;
  size_t drawnBytes = 0, allocated = 0, compared = 0;
  double largest = 0;
  bool allFinite = true;
};

} // namespace

int main(int argc, char **argv) {
  int repeats = 30;
  bool kernels = false, isGood = argc > 1;
  for (int i = 2; i < argc; ++i) {
    StringRef word = argv[i];
    if (word == "--kernels")
      kernels = true;
    else if (word != "--repeats" || ++i == argc || StringRef(argv[i]).getAsInteger(10, repeats) ||
             repeats < 1)
      isGood = false;
  }
  if (!isGood) {
    llvm::errs() << "usage: ctxc-gpu-replay RECORDING [--repeats N] [--kernels]\n";
    return 2;
  }
  auto file = llvm::MemoryBuffer::getFile(argv[1]);
  if (!file) {
    llvm::errs() << "ctxc-gpu-replay: " << argv[1] << ": " << file.getError().message() << "\n";
    return 2;
  }
  Replay replay((*file)->getBuffer(), repeats, kernels);
  std::string error = llvm::toString(replay.all());
  llvm::json::OStream json(llvm::outs(), 2);
  json.object([&] {
    if (!error.empty())
      json.attribute("error", argv[1] + (": " + error));
    replay.write(json);
  });
  llvm::outs() << "\n";
  return error.empty() ? 0 : 1;
}
