//===- Ranks.h - the processes that mpirun started, and their messages ----===//
//
// Rank 0 runs the command; the others compute what it asks of them. All waiting is done here, so
// that a rank that is gone is noticed wherever it is waited for: each rank tells of itself once a
// second in a thread of its own, and one that is silent for 20 seconds counts as gone. (mpirun
// itself ends all ranks when one dies, unless it is told not to.)
//
// MPI is loaded at run time, MPICH's or OpenMPI's, whichever mpirun started this process.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_RUNTIME_SHARD_RANKS_H
#define CTXC_RUNTIME_SHARD_RANKS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ctxc {

/// What ranks send each other: any bytes, filled up to words.
using Message = std::vector<uint64_t>;

/// A rank is gone, or MPI failed: nothing can be sent or received any more.
class RanksLost : public llvm::ErrorInfo<RanksLost> {
public:
  static char ID;
  explicit RanksLost(const llvm::Twine &reason) : reason(reason.str()) {}
  void log(llvm::raw_ostream &os) const override { os << reason; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

  std::string reason;
};

/// What starts a tag of one's own; smaller ones are used here.
constexpr int firstFreeTag = 16;

class Ranks {
public:
  /// Joins the other ranks, by an MPI library in `folder`. May be called once in a process. Errors:
  /// there is no library for the MPI whose mpirun started this process, or none did. Where other
  /// ranks do not join within 20 seconds, it ends the process with a message and exit code 2.
  static llvm::Expected<std::unique_ptr<Ranks>> join(llvm::StringRef folder);
  ~Ranks();
  Ranks(const Ranks &) = delete;

  int rank() const { return own; }
  int count() const { return all; }
  /// How many of the ranks run on this machine.
  int onThisMachine() const { return local; }
  /// "MPICH 4.0.2"
  const std::string &library() const { return name; }

  // Errors of these are RanksLost.

  /// Hands a message over, which is sent while this rank goes on. Messages from one rank to another
  /// with one tag come in order. Waits while several are still under way.
  llvm::Error send(int to, int tag, Message message);
  /// Waits for a message.
  llvm::Expected<Message> receive(int from, int tag);

  /// Bytes of all messages that this rank has sent.
  uint64_t sentBytes() const;

  /// Waits until everything is sent and every rank has come here. Nothing may be sent after it.
  llvm::Error leave();
  /// After an error of this class: tells the other ranks of it, gives them a second to say so, and
  /// ends all processes with exit code 2.
  [[noreturn]] void abort(llvm::StringRef reason);

private:
  struct State;
  explicit Ranks(std::unique_ptr<State> state);
  template <typename Ready> llvm::Error wait(Ready ready);

  int own = 0, all = 1, local = 1;
  std::string name;
  std::unique_ptr<State> state;
};

} // namespace ctxc

#endif // CTXC_RUNTIME_SHARD_RANKS_H
