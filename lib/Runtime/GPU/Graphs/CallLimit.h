// Calls into a library that may wait for other ranks, and so hang where one of these does.
#ifndef CTXC_LIB_RUNTIME_GPU_GRAPHS_CALLLIMIT_H
#define CTXC_LIB_RUNTIME_GPU_GRAPHS_CALLLIMIT_H

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace ctxc::graphs {

/// Other ranks are waited for so long, within a call or for a sum.
constexpr auto longestWait = std::chrono::seconds(20);

/// A thread that sees calls which take too long.
class CallLimit {
public:
  using Clock = std::chrono::steady_clock;

  /// `onHang` is called in that thread, with what the call does.
  explicit CallLimit(std::function<void(const char *what)> onHang)
      : onHang(std::move(onHang)), thread([this] { watch(); }) {}
  ~CallLimit() {
    isEnding = true;
    thread.join();
  }
  CallLimit(const CallLimit &) = delete;

  /// Makes one call, which is named as in messages.
  template <typename Function> int call(const char *what, Function function) {
    since = Clock::now().time_since_epoch().count();
    current = what;
    const int result = function();
    current = nullptr;
    return result;
  }

private:
  void watch() {
    while (!isEnding) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const Clock::time_point began{Clock::duration(since)};
      if (const char *what = current; what && Clock::now() - began > longestWait)
        onHang(what);
    }
  }

  const std::function<void(const char *)> onHang;
  std::atomic<const char *> current{nullptr};
  std::atomic<Clock::rep> since{0};
  std::atomic<bool> isEnding{false};
  std::thread thread; ///< the last member: it reads the others
};

} // namespace ctxc::graphs

#endif // CTXC_LIB_RUNTIME_GPU_GRAPHS_CALLLIMIT_H
