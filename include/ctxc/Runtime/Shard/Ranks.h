//===- Ranks.h - the processes that mpirun started, and their messages ----===//
//
// Rank 0 runs the command; the others compute the parts that it requests. Ranks wait for each other
// only in the functions of this file, which return an error if a rank is lost: a thread of each
// rank sends a heartbeat once a second, and a rank that is silent for 20 seconds counts as lost.
// (mpirun itself ends all ranks when one dies, unless it is told not to.)
//
// MPI is loaded at run time, MPICH's or OpenMPI's, whichever mpirun started this process.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_SHARD_RANKS_H
#define CTXC_RUNTIME_SHARD_RANKS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ctxc {

/// What ranks send each other: any bytes, padded to a multiple of 8.
using Message = std::vector<uint64_t>;

/// A rank is lost, or MPI failed: nothing can be sent or received any more.
class RanksLost : public llvm::ErrorInfo<RanksLost> {
public:
  static char ID;
  explicit RanksLost(const llvm::Twine &reason) : reason(reason.str()) {}
  void log(llvm::raw_ostream &os) const override { os << reason; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  std::string reason;
};

/// The smallest tag that callers may use; smaller ones are reserved for this class.
constexpr int firstFreeTag = 16;

class Ranks {
public:
  /// Joins the other ranks, through an MPI library in `folder`. May be called once in a process.
  /// Errors: the process was not started by mpirun, or there is no library for that mpirun's MPI.
  /// If other ranks do not join within 20 seconds, it ends the process with exit code 2.
  static llvm::Expected<std::unique_ptr<Ranks>> join(llvm::StringRef folder);
  ~Ranks();
  Ranks(const Ranks &) = delete;

  int rank() const { return own; }
  int count() const { return all; }
  /// How many of the ranks run on this machine.
  int onThisMachine() const { return local; }
  /// Which of these this one is.
  int numberOnThisMachine() const { return localNumber; }
  /// "MPICH 4.0.2"
  const std::string &library() const { return name; }

  // The functions below fail with RanksLost.

  /// Starts to send a message. Waits only while several earlier ones to that rank with that tag are
  /// still being sent. Messages from one rank to another with the same tag arrive in order.
  llvm::Error send(int to, int tag, Message message);
  /// Starts to send words that are not copied: nobody may change them until `finishSending` has
  /// returned.
  llvm::Error sendInPlace(int to, int tag, llvm::ArrayRef<uint64_t> words);
  /// Waits until all words of sendInPlace are sent.
  llvm::Error finishSending();
  /// Waits for a message.
  llvm::Expected<Message> receive(int from, int tag);
  /// Waits for a message of as many words as `place` has, and puts it there. Returns a message of
  /// another size, should that come instead.
  llvm::Expected<std::optional<Message>> receiveInto(int from, int tag,
                                                     llvm::MutableArrayRef<uint64_t> place);
  /// Fails where a rank is lost, as what waits does.
  llvm::Error checkAlive();

  /// Bytes of all messages that this rank has sent.
  uint64_t sentBytes() const;

  /// Waits until all messages are sent and every rank has called this. It ends all sending.
  llvm::Error leave();
  /// After RanksLost: sends the reason to the other ranks, gives them a second to print it, and
  /// ends all processes with exit code 2.
  [[noreturn]] void abort(llvm::StringRef reason);
  /// The same from another thread than the one that calls the other functions, which hangs
  /// elsewhere; prints the reason.
  [[noreturn]] void abandon(llvm::StringRef reason);

private:
  struct State;
  explicit Ranks(std::unique_ptr<State> state);
  template <typename Ready> llvm::Error wait(Ready ready);

  int own = 0, all = 1, local = 1, localNumber = 0;
  std::string name;
  std::unique_ptr<State> state;
};

} // namespace ctxc

#endif // CTXC_RUNTIME_SHARD_RANKS_H
