//===- Timer.h - how long something takes ---------------------------------===//
#ifndef CTXC_SUPPORT_TIMER_H
#define CTXC_SUPPORT_TIMER_H

#include <chrono>

namespace ctxc {

/// Adds the seconds until its end to `seconds`.
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

} // namespace ctxc

#endif // CTXC_SUPPORT_TIMER_H
