// What a rank knows of its messages and of the other ranks (ctxc/Runtime/Shard/Ranks.h).
#ifndef CTXC_LIB_RUNTIME_SHARD_RANKSTATE_H
#define CTXC_LIB_RUNTIME_SHARD_RANKSTATE_H

#include "ctxc/Runtime/Shard/Ranks.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "lib/Runtime/Shard/ctxc_mpi.h"
#include "llvm/ADT/STLExtras.h"
#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

namespace ctxc {

enum RankSign { Beat = 1, Gone = 2 };

/// A rank tells of itself once a second; one that was silent for so long is gone.
constexpr auto beatEvery = std::chrono::seconds(1);
constexpr auto longestSilence = std::chrono::seconds(20);

/// So many messages of one tag may be under way to a rank.
constexpr int mostUnderWay = 4;

struct Ranks::State {
  using Clock = std::chrono::steady_clock;

  const ctxc_mpi *mpi = nullptr;
  int own = 0, all = 1;
  std::mutex mutex; ///< of all calls of `mpi`, and of what follows
  struct Sending {
    int to, tag;
    Message message; ///< empty where the words are elsewhere
    bool isInPlace;
    void *request;
  };
  std::list<Sending> sending;
  uint64_t sent = 0; ///< bytes
  std::vector<Clock::time_point> heard;
  std::vector<bool> hasLeft; ///< who gave its last sign of life, which has a word
  std::string gone;          ///< what rank 0 says of a rank that is gone

  std::thread beating;
  std::atomic<bool> isLeaving{false};

  llvm::Error check(int code, const char *what) const {
    if (code == 0)
      return llvm::Error::success();
    char text[256];
    mpi->message(code, text, sizeof text);
    return llvm::make_error<RanksLost>(llvm::Twine("MPI: ") + what + ": " + printableLine(text));
  }

  /// Begins to send; the mutex is locked.
  llvm::Error begin(int to, int tag, Message message) {
    Sending &each = sending.emplace_back(Sending{to, tag, std::move(message), false, nullptr});
    return check(mpi->send(each.message.data(), each.message.size(), to, tag, &each.request),
                 "sending");
  }
  llvm::Error beginInPlace(int to, int tag, llvm::ArrayRef<uint64_t> words) {
    Sending &each = sending.emplace_back(Sending{to, tag, {}, true, nullptr});
    return check(mpi->send(words.data(), words.size(), to, tag, &each.request), "sending");
  }

  /// Drops what has been sent; the mutex is locked.
  llvm::Error progress() {
    for (auto each = sending.begin(); each != sending.end();) {
      int isDone = 0;
      if (llvm::Error error = check(mpi->done(each->request, &isDone), "sending"))
        return error;
      each = isDone ? sending.erase(each) : std::next(each);
    }
    return llvm::Error::success();
  }

  /// Takes the next message of a place, if it has come; the mutex is locked. Its words go to
  /// `place` where they are as many, and the message is empty then.
  llvm::Expected<std::optional<std::pair<int, Message>>>
  take(int from, int tag, llvm::MutableArrayRef<uint64_t> place = {}) {
    int there = 0, source = 0, count = 0;
    if (llvm::Error error = check(mpi->probe(from, tag, &there, &source, &count), "receiving"))
      return std::move(error);
    if (!there)
      return std::nullopt;
    const bool isForPlace = !place.empty() && place.size() == size_t(count);
    Message message(isForPlace ? 0 : count);
    uint64_t *to = isForPlace ? place.data() : message.data();
    void *request = nullptr;
    int isDone = 0;
    if (llvm::Error error = check(mpi->receive(to, count, source, tag, &request), "receiving"))
      return std::move(error);
    for (auto begin = Clock::now(); !isDone;) {
      if (llvm::Error error = check(mpi->done(request, &isDone), "receiving"))
        return std::move(error);
      if (!isDone && Clock::now() - begin > longestSilence)
        return llvm::make_error<RanksLost>("rank " + llvm::Twine(source) +
                                           " went away while it sent a message");
    }
    return std::make_pair(source, std::move(message));
  }

  /// Whether this rank and the other hear each other.
  bool hears(int rank) const { return rank != own && (own == 0 || rank == 0); }

  /// Sends a sign of life, with a word for the last; the mutex is locked.
  llvm::Error beat(const Message &message) {
    for (int rank = 0; rank < all; ++rank) {
      bool isUnderWay = llvm::any_of(
          sending, [&](const Sending &each) { return each.to == rank && each.tag == Beat; });
      if (hears(rank) && (!message.empty() || !isUnderWay))
        if (llvm::Error error = begin(rank, Beat, message))
          return error;
    }
    return listen();
  }

  llvm::Error listen() {
    for (;;) {
      auto taken = take(-1, Beat);
      if (!taken)
        return taken.takeError();
      if (!*taken)
        return llvm::Error::success();
      const auto &[rank, message] = **taken;
      heard[rank] = Clock::now();
      if (!message.empty())
        hasLeft[rank] = true;
    }
  }

  /// Fails where a rank is gone: rank 0 hears all others, these hear rank 0, which tells them.
  llvm::Error checkAlive() {
    if (llvm::Error error = listen())
      return error;
    if (own != 0) {
      auto told = take(0, Gone);
      if (!told)
        return told.takeError();
      if (*told)
        gone = llvm::StringRef(reinterpret_cast<const char *>((*told)->second.data())).str();
    }
    if (!gone.empty())
      return llvm::make_error<RanksLost>(gone);
    for (int rank = 0; rank < all; ++rank)
      if (hears(rank) && !hasLeft[rank] && Clock::now() - heard[rank] > longestSilence)
        return llvm::make_error<RanksLost>(
            "rank " + llvm::Twine(rank) + " no longer answers; its process or its machine is gone");
    return llvm::Error::success();
  }

  void beatUntilLeaving() {
    for (auto next = Clock::now(); !isLeaving; next += beatEvery) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        // An error shows where a message is waited for.
        llvm::consumeError(beat(Message()));
        llvm::consumeError(progress());
      }
      while (!isLeaving && Clock::now() < next + beatEvery)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void stopBeating() {
    isLeaving = true;
    if (beating.joinable())
      beating.join();
  }
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_SHARD_RANKSTATE_H
