// How ranks begin together, and end together.
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "lib/Runtime/Shard/ShardedExecutor.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

/// What differs between rank 0's agreement and another rank's.
static Error compare(const Agreement &own, int rank, MessageReader &hello) {
  Error errors = Error::success();
  for (const auto &[name, wanted] : own) {
    const std::string found = hello.text();
    if (found != wanted)
      errors = llvm::joinErrors(std::move(errors),
                                makeError("rank " + llvm::Twine(rank) + ": its " + name + " is '" +
                                          printableLine(found) + "', expected '" +
                                          printableLine(wanted) + "' as on rank 0"));
  }
  return errors;
}

Error ctxc::agree(Ranks &ranks, const Agreement &own) {
  if (ranks.rank() != 0) {
    MessageWriter hello;
    hello.number(/*isThere=*/true);
    for (const auto &each : own)
      hello.text(each.second);
    return ranks.send(0, HelloTag, hello.take());
  }
  Error errors = Error::success();
  for (int rank = 1; rank < ranks.count(); ++rank) {
    Expected<Message> message = ranks.receive(rank, HelloTag);
    if (!message) {
      llvm::consumeError(std::move(errors));
      return message.takeError();
    }
    MessageReader hello(std::move(*message));
    Error error = hello.number() ? compare(own, rank, hello)
                                 : makeError("rank " + llvm::Twine(rank) + ": " + hello.text());
    errors = llvm::joinErrors(std::move(errors), std::move(error));
  }
  return errors;
}

Error ctxc::refuse(Ranks &ranks, llvm::StringRef reason) {
  MessageWriter hello;
  hello.number(/*isThere=*/false);
  hello.text(reason);
  return ranks.send(0, HelloTag, hello.take());
}

Error ctxc::endRanks(Ranks &ranks, int exitCode) {
  MessageWriter end;
  end.number(static_cast<int64_t>(Request::End));
  end.number(exitCode);
  for (int rank = 1; rank < ranks.count(); ++rank)
    if (Error error = ranks.send(rank, CommandTag, end.message()))
      return error;
  return ranks.leave();
}

Expected<int> ctxc::awaitEnd(Ranks &ranks) {
  for (;;) {
    Expected<Message> message = ranks.receive(0, CommandTag);
    if (!message)
      return message.takeError();
    MessageReader command(std::move(*message));
    if (static_cast<Request>(command.number()) == Request::End)
      return int(command.number());
  }
}
