// The streams between a rank and its neighbours, the ranks before and after it.
#ifndef CTXC_LIB_RUNTIME_SHARD_LINK_H
#define CTXC_LIB_RUNTIME_SHARD_LINK_H

#include "ctxc/Runtime/Shard/Ranks.h"
#include "ctxc/Runtime/Shard/Stage.h"

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
  explicit Link(Ranks &ranks) : ranks(ranks) {}

  /// An executor's call with the number `call`. While one waits for its sink others may come; each
  /// has its own tag, so that its streams are not taken for another's.
  class Call {
  public:
    Call(Link &link, int64_t call);
    ~Call() { link.current = outer; }
    Call(const Call &) = delete;
    /// For the end of the call: tells the rank after this one of it, and takes what comes from
    /// the one before it until that has ended. Errors: those of Ranks.
    llvm::Error finish();

  private:
    friend class Link;
    Link &link;
    Call *outer;
    int tag;
    bool hasEnded = false; ///< the call of the rank before
  };

  llvm::Error receive(llvm::ArrayRef<StreamRows *> streams) override;
  llvm::Error send(llvm::ArrayRef<const StreamRows *> streams) override;

  /// The bytes of the numbers that were sent.
  uint64_t sentBytes() const { return sent; }

private:
  bool isFirst() const { return ranks.rank() == 0; }
  bool isLast() const { return ranks.rank() + 1 == ranks.count(); }

  Ranks &ranks;
  Call *current = nullptr;
  uint64_t sent = 0;
};

} // namespace ctxc

#endif // CTXC_LIB_RUNTIME_SHARD_LINK_H
