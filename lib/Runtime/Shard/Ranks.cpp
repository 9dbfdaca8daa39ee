#include "lib/Runtime/Shard/RankState.h"
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

using namespace ctxc;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

using Clock = std::chrono::steady_clock;

/// A library of ctxc_mpi.h, and what tells that its mpirun started this process.
struct Kind {
  const char *file, *name, *package, *variable;
};
constexpr Kind kinds[] = {
    {"libctxc-openmpi.so", "OpenMPI", "libopenmpi-dev", "OMPI_COMM_WORLD_SIZE"},
    {"libctxc-mpich.so", "MPICH", "libmpich-dev", "PMI_SIZE"},
};

} // namespace

char RanksLost::ID;

/// The library for the mpirun that started this process.
static Expected<const Kind *> kindOfLauncher(StringRef folder) {
  auto isThere = [&](const Kind &kind) {
    return ::access((folder + "/" + kind.file).str().c_str(), R_OK) == 0;
  };
  if (llvm::none_of(kinds, isThere))
    return makeError("ranks: this ctxc was built without MPI; install libmpich-dev and mpich (or "
                     "libopenmpi-dev and openmpi-bin), and build again");
  for (const Kind &kind : kinds)
    if (std::getenv(kind.variable)) {
      if (isThere(kind))
        return &kind;
      return makeError(llvm::Twine("ranks: this process was started by ") + kind.name +
                       ", which was not there when this ctxc was built; install " + kind.package +
                       " and build again, or use the other mpirun");
    }
  // Slurm and others start ranks of either by PMIx.
  if (std::getenv("PMIX_RANK"))
    return llvm::find_if(kinds, isThere);
  return makeError("ranks: this process was not started by mpirun; expected "
                   "`mpirun -n N`, with a rank for each part");
}

namespace {

/// While it lives, a thread that ends the process where MPI waits too long for all ranks to start:
/// one that never does cannot be told from one that is late, and MPICH would wait for ever.
class StartLimit {
public:
  StartLimit() : thread([this] { watch(); }) {}
  ~StartLimit() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      hasStarted = true;
    }
    changed.notify_one();
    thread.join();
  }
  StartLimit(const StartLimit &) = delete;

private:
  void watch() {
    std::unique_lock<std::mutex> lock(mutex);
    if (changed.wait_for(lock, longestSilence, [this] { return hasStarted; }))
      return;
    static constexpr char message[] = "ctxc: error: ranks: not all have joined within 20 "
                                      "seconds; expected every process to join\n";
    (void)!::write(STDERR_FILENO, message, sizeof message - 1);
    ::_exit(2);
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool hasStarted = false;
  std::thread thread;
};

} // namespace

Ranks::Ranks(std::unique_ptr<State> state) : state(std::move(state)) {}

Expected<std::unique_ptr<Ranks>> Ranks::join(StringRef folder) {
  Expected<const Kind *> kind = kindOfLauncher(folder);
  if (!kind)
    return kind.takeError();
  const std::string file = (folder + "/" + (*kind)->file).str();
  // MPICH's network library warns of what its users cannot change, unless they ask for more.
  setenv("UCX_LOG_LEVEL", "error", /*overwrite=*/false);
  // OpenMPI's own plugins look for its symbols.
  void *opened = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void *symbol = opened ? dlsym(opened, "ctxc_mpi_functions") : nullptr;
  if (!symbol)
    return makeError(llvm::Twine(file) + " cannot be loaded: " + printableLine(dlerror()));
  auto state = std::make_unique<State>();
  state->mpi = reinterpret_cast<const ctxc_mpi *(*)()>(symbol)();
  int local = 1, localNumber = 0, code = 0;
  {
    StartLimit limit;
    code = state->mpi->start(&state->own, &state->all, &local, &localNumber);
  }
  if (Error error = state->check(code, "starting"))
    return std::move(error);
  state->heard.assign(state->all, Clock::now());
  state->hasLeft.assign(state->all, false);
  char version[256];
  state->mpi->version(version, sizeof version);
  std::unique_ptr<Ranks> ranks(new Ranks(std::move(state)));
  State *shared = ranks->state.get();
  ranks->own = shared->own;
  ranks->all = shared->all;
  ranks->local = local;
  ranks->localNumber = localNumber;
  ranks->name = (*kind)->name;
  if (ranks->all > 1)
    shared->beating = std::thread([shared] { shared->beatUntilLeaving(); });
  return ranks;
}

Ranks::~Ranks() { state->stopBeating(); }

/// Calls `ready` until it returns true: without a pause at first, so that a message that is on its
/// way is taken at once, and later leaving the processor to others.
template <typename Ready> Error Ranks::wait(Ready ready) {
  const auto begin = Clock::now();
  auto nextCheck = begin + std::chrono::milliseconds(100);
  for (;;) {
    {
      std::lock_guard<std::mutex> lock(state->mutex);
      if (Error error = state->progress())
        return error;
      Expected<bool> isReady = ready();
      if (!isReady)
        return isReady.takeError();
      if (*isReady)
        return Error::success();
      if (Clock::now() > nextCheck) {
        if (Error error = state->checkAlive())
          return error;
        nextCheck = Clock::now() + std::chrono::milliseconds(100);
      }
    }
    if (Clock::now() - begin < std::chrono::milliseconds(1))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

static Error checkSize(int to, size_t words) {
  if (words <= size_t(INT32_MAX))
    return Error::success();
  return makeError("a message to rank " + llvm::Twine(to) + " has " + llvm::Twine(words * 8) +
                   " bytes, more than MPI takes at once; shorten the prompt");
}

Error Ranks::send(int to, int tag, Message message) {
  if (Error error = checkSize(to, message.size()))
    return error;
  return wait([&]() -> Expected<bool> {
    auto isOfThese = [&](const State::Sending &each) { return each.to == to && each.tag == tag; };
    if (llvm::count_if(state->sending, isOfThese) >= mostUnderWay)
      return false;
    state->sent += message.size() * sizeof(uint64_t);
    if (Error error = state->begin(to, tag, std::move(message)))
      return std::move(error);
    return true;
  });
}

Error Ranks::sendInPlace(int to, int tag, llvm::ArrayRef<uint64_t> words) {
  if (Error error = checkSize(to, words.size()))
    return error;
  std::lock_guard<std::mutex> lock(state->mutex);
  state->sent += words.size() * sizeof(uint64_t);
  return state->beginInPlace(to, tag, words);
}

Error Ranks::finishSending() {
  return wait([&]() -> Expected<bool> {
    return llvm::none_of(state->sending, [](const State::Sending &each) { return each.isInPlace; });
  });
}

Expected<std::optional<Message>> Ranks::receiveInto(int from, int tag,
                                                    llvm::MutableArrayRef<uint64_t> place) {
  std::optional<Message> other;
  Error error = wait([&]() -> Expected<bool> {
    auto taken = state->take(from, tag, place);
    if (!taken)
      return taken.takeError();
    if (!*taken)
      return false;
    if (!(*taken)->second.empty())
      other = std::move((*taken)->second);
    return true;
  });
  if (error)
    return std::move(error);
  return other;
}

Expected<Message> Ranks::receive(int from, int tag) {
  Message message;
  Error error = wait([&]() -> Expected<bool> {
    auto taken = state->take(from, tag);
    if (!taken)
      return taken.takeError();
    if (!*taken)
      return false;
    message = std::move((*taken)->second);
    return true;
  });
  if (error)
    return std::move(error);
  return message;
}

Error Ranks::checkAlive() {
  std::lock_guard<std::mutex> lock(state->mutex);
  if (Error error = state->progress())
    return error;
  return state->checkAlive();
}

uint64_t Ranks::sentBytes() const {
  std::lock_guard<std::mutex> lock(state->mutex);
  return state->sent;
}

Error Ranks::leave() {
  state->stopBeating();
  // Every message is taken before the end: signs of life up to the last one, too.
  bool isFirst = true;
  if (Error error = wait([&]() -> Expected<bool> {
        if (Error error = isFirst ? state->beat(Message(1)) : state->listen())
          return std::move(error);
        isFirst = false;
        for (int rank = 0; rank < all; ++rank)
          if (state->hears(rank) && !state->hasLeft[rank])
            return false;
        return state->sending.empty();
      }))
    return error;
  std::lock_guard<std::mutex> lock(state->mutex);
  return state->check(state->mpi->finish(), "leaving");
}

void Ranks::abandon(StringRef reason) {
  const std::string line = ("ctxc: error: rank " + llvm::Twine(own) + ": " + reason + "\n").str();
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  abort(reason);
}

void Ranks::abort(StringRef reason) {
  state->stopBeating();
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    Message text(reason.size() / sizeof(uint64_t) + 1);
    std::memcpy(text.data(), reason.data(), reason.size());
    for (int rank = 1; own == 0 && rank < all; ++rank)
      llvm::consumeError(state->begin(rank, Gone, text));
  }
  for (const auto end = Clock::now() + std::chrono::seconds(1); Clock::now() < end;) {
    std::lock_guard<std::mutex> lock(state->mutex);
    llvm::consumeError(state->progress());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  state->mpi->abort(2);
  ::_exit(2);
}
