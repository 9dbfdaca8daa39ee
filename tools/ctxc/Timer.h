#ifndef CTXC_TOOLS_CTXC_TIMER_H
#define CTXC_TOOLS_CTXC_TIMER_H

#include <chrono>

namespace ctxc::driver {

/// Adds the time until its end to `seconds`.
class Timer {
public:
  explicit Timer(double &seconds) : seconds(seconds) {}
  ~Timer() {
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

private:
  double &seconds;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

} // namespace ctxc::driver

#endif // CTXC_TOOLS_CTXC_TIMER_H
