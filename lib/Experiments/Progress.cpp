#include "ctxc/Experiments/Progress.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace ctxc::experiments;

static std::string duration(double seconds) {
  int64_t whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60)
    return llvm::formatv("{0} s", whole).str();
  return llvm::formatv("{0} min {1,0+2} s", whole / 60, whole % 60).str();
}

static double since(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - time).count();
}

void Progress::begin(const llvm::Twine &what) {
  label = what.str();
  if (terminal)
    draw();
}

void Progress::advance(int64_t count, bool skipped) {
  done += count;
  worked += skipped ? 0 : count;
  int64_t tenth = expected ? 10 * done / expected : 0;
  bool often = terminal && (since(last) > 0.1 || done == expected);
  if (often || (!terminal && tenth > tenths))
    draw();
  tenths = std::max(tenths, tenth);
}

void Progress::draw() {
  constexpr int width = 24;
  last = Clock::now();
  double share = expected ? std::min(1.0, double(done) / double(expected)) : 0;
  std::string left;
  if (worked && done < expected)
    left = ", " + duration(since(start) / double(worked) * double(expected - done)) + " left";
  if (!terminal) {
    os << llvm::formatv("{0,3} %  {1} of {2}{3}  {4}\n", int(share * 100), done, expected, left,
                        label);
    return;
  }
  os << "\r\x1b[K";
  for (int i = 0; i < width; ++i)
    os << (i < share * width ? "█" : "░");
  os << llvm::formatv(" {0,3} %  {1} of {2}{3}  {4}", int(share * 100), done, expected, left,
                      label);
  os.flush();
  drawn = true;
}

void Progress::finish() {
  if (drawn)
    os << "\r\x1b[K";
  drawn = false;
  os.flush();
}
