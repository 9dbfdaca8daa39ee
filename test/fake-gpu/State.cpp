#include "State.h"
#include <cstdlib>

using namespace fake_gpu;

State &fake_gpu::state() {
  static State all;
  return all;
}
thread_local Context fake_gpu::current = nullptr;

void fake_gpu::problem(const std::string &what) { state().problems.push_back(what); }

Result fake_gpu::enter(const char *name, bool needsContext) {
  State &s = state();
  s.calls.push_back(name);
  if (++s.counts[name] == s.options.failingCall && s.options.failing == name) {
    if (s.options.result >= kIllegalAddress && s.options.result <= kLaunchFailed)
      s.fault = s.options.result;
    return s.options.result;
  }
  if (!s.isStarted && strcmp(name, "cuInit"))
    problem(std::string(name) + " before cuInit");
  if (needsContext && !current)
    problem(std::string(name) + " without a context");
  return needsContext ? s.fault : 0;
}

ptx::Range fake_gpu::rangeOf(const std::map<uint64_t, size_t> &all, uint64_t address) {
  auto next = all.upper_bound(address);
  if (next == all.begin())
    return {};
  auto [start, size] = *std::prev(next);
  return {start, start + size};
}

Result fake_gpu::outsideCapture(Stream stream) {
  LIVE(stream, "stream");
  if (!stream->capture)
    return 0;
  problem("work that is not captured while the stream is capturing");
  return kCaptureUnsupported;
}

void fake_gpu::execute(const LaunchNode &launch) {
  State &s = state();
  if (s.fault)
    return;
  s.clock += 1e-3;
  s.kernels.push_back(launch.kernel->name);
  if (launch.kernel->name == s.options.faultingKernel &&
      ++s.launched[launch.kernel->name] == s.options.faultingLaunch) {
    s.fault = kIllegalAddress;
    return;
  }
  std::string error = ptx::run(*launch.kernel, launch.blocks, launch.threads, launch.arguments,
                               [&](uint64_t address) { return rangeOf(s.memory, address); });
  if (!error.empty()) {
    problem(error);
    s.fault = kIllegalAddress;
  }
}

void fake_gpu::drain(Stream stream, Event until, bool waits) {
  while (!stream->work.empty() && !(until && until->isDone))
    if (stream->work.front().step())
      stream->work.pop_front();
    else if (!waits)
      return;
}

//===----------------------------------------------------------------------===//
// What tests ask for
//===----------------------------------------------------------------------===//

void fake_gpu::reset() {
  State &s = state();
  freeAll(s.memory);
  freeAll(s.pinned);
  s = State();
  current = nullptr;
}
fake_gpu::Options &fake_gpu::options() { return state().options; }
const std::vector<std::string> &fake_gpu::calls() { return state().calls; }
int fake_gpu::countOf(const std::string &function) { return state().counts[function]; }
const std::vector<std::string> &fake_gpu::problems() { return state().problems; }
const std::vector<std::string> &fake_gpu::kernels() { return state().kernels; }
std::vector<std::string> fake_gpu::alive() {
  State &s = state();
  std::vector<std::string> all;
  if (s.context.retained)
    all.push_back("context");
  for (auto &handle : s.handles)
    all.push_back(handle.second.kind);
  all.insert(all.end(), s.memory.size(), "memory");
  all.insert(all.end(), s.pinned.size(), "pinned memory");
  return all;
}
