// What passes between a rank and others: streams, from the stage before and to the one after, and
// values that the ranks of its own stage make whole together.
#ifndef CTXC_LIB_RUNTIME_SHARD_LINK_H
#define CTXC_LIB_RUNTIME_SHARD_LINK_H

#include "ctxc/Runtime/Shard/Ranks.h"
#include "ctxc/Runtime/Shard/Stage.h"
#include "lib/Runtime/Shard/Messages.h"
#include "llvm/ADT/SmallSet.h"

namespace ctxc {

/// A call that ended here because another rank's part of it did.
class Stopped : public llvm::ErrorInfo<Stopped> {
public:
  static char ID;
  void log(llvm::raw_ostream &os) const override { os << "another rank could not go on"; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
};

class Link : public Neighbours {
public:
  /// So many ranks share each stage, those of a stage one after the other.
  Link(Ranks &ranks, int tensor) : ranks(ranks), tensor(tensor) {}

  /// An executor's call with the number `call`. While one waits for its sink others may come; each
  /// has its own tag, so that its streams are not taken for another's.
  class Call {
  public:
    Call(Link &link, int64_t call);
    ~Call() { link.current = outer; }
    Call(const Call &) = delete;
    // For the end of the call. Errors: those of Ranks.

    /// Tells the rank after this one and those of its stage of it.
    llvm::Error tell();
    /// Takes what comes from these and the one before until they have ended.
    llvm::Error hear();
    llvm::Error finish() {
      llvm::Error error = tell();
      return error ? std::move(error) : hear();
    }

  private:
    friend class Link;
    Link &link;
    Call *outer;
    int tag;
    llvm::SmallSet<int, 8> ended; ///< ranks whose calls have ended
  };

  llvm::Error receive(llvm::ArrayRef<StreamRows *> streams) override;
  llvm::Error send(llvm::ArrayRef<const StreamRows *> streams) override;
  /// Gathered parts go to every rank of the stage, collected ones to the first of them. Of a sum
  /// each rank gets the others' terms for its share of the numbers, adds them in the ranks' order,
  /// and sends its share of the sums to the others: bits depend on how many ranks there are, and
  /// not on time. Small parts go in one message, large ones each in its own, from where they are
  /// and to where they belong: a prompt's values would be copied many times otherwise.
  llvm::Error makeWhole(llvm::ArrayRef<SharedRows> values) override;
  llvm::Error checkAlive() override { return ranks.checkAlive(); }
  void countShared(uint64_t bytes) override { shared += bytes; }
  void abandon(llvm::StringRef reason) override { ranks.abandon(reason); }

  /// The bytes of the numbers that were sent to the next stage, and within this one.
  uint64_t sentBytes() const { return sent; }
  uint64_t sharedBytes() const { return shared; }

private:
  bool isFirst() const { return ranks.rank() < tensor; }
  bool isLast() const { return ranks.rank() + tensor >= ranks.count(); }
  /// The first rank of this one's stage, and its ranks without this one, in order.
  int root() const { return ranks.rank() / tensor * tensor; }
  llvm::SmallVector<int> peers() const;
  /// The next message of the call from a rank. Errors: that rank's call has ended (Stopped).
  llvm::Expected<MessageReader> next(int rank);
  /// The same for a large part. Errors: as well.
  llvm::Error nextInto(int rank, llvm::MutableArrayRef<float> place);
  bool isFor(int rank, const SharedRows &value) const;
  llvm::Error send(int peer, llvm::ArrayRef<llvm::ArrayRef<float>> parts);
  llvm::Error sendParts(llvm::ArrayRef<SharedRows> values);
  llvm::Error receiveParts(llvm::ArrayRef<SharedRows> values);
  llvm::Error receivePart(int rank, const SharedRows &value, MessageReader *small);
  llvm::Error shareSums(llvm::ArrayRef<SharedRows> values);
  llvm::Error exchange(llvm::ArrayRef<SharedRows> values);

  Ranks &ranks;
  const int tensor;
  Call *current = nullptr;
  uint64_t sent = 0, shared = 0;
  StreamRows received; ///< a large part
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_SHARD_LINK_H
