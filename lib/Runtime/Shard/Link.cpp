#include "lib/Runtime/Shard/Link.h"
#include "lib/Runtime/Shard/Messages.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

char Stopped::ID;

/// How a message on streams begins.
enum Mark : int64_t { Data, Ended };

/// Every MPI has tags up to 32767. So many calls are never open at once.
static int tagOfCall(int64_t call) { return firstFreeTag + 16 + int(call % 16384); }

Link::Call::Call(Link &link, int64_t call) : link(link), outer(link.current), tag(tagOfCall(call)) {
  link.current = this;
}

Error Link::Call::finish() {
  if (!link.isLast()) {
    MessageWriter end;
    end.number(Ended);
    if (Error error = link.ranks.send(link.ranks.rank() + 1, tag, end.take()))
      return error;
  }
  while (!link.isFirst() && !hasEnded) {
    Expected<Message> message = link.ranks.receive(link.ranks.rank() - 1, tag);
    if (!message)
      return message.takeError();
    hasEnded = MessageReader(std::move(*message)).number() == Ended;
  }
  return Error::success();
}

Error Link::receive(llvm::ArrayRef<StreamRows *> streams) {
  Expected<Message> message = ranks.receive(ranks.rank() - 1, current->tag);
  if (!message)
    return message.takeError();
  MessageReader reader(std::move(*message));
  if (reader.number() == Ended) {
    current->hasEnded = true;
    return llvm::make_error<Stopped>();
  }
  for (StreamRows *rows : streams)
    *rows = reader.floats();
  return Error::success();
}

Error Link::send(llvm::ArrayRef<const StreamRows *> streams) {
  MessageWriter writer;
  writer.number(Data);
  for (const StreamRows *rows : streams) {
    writer.floats(*rows);
    sent += rows->size() * sizeof(float);
  }
  return ranks.send(ranks.rank() + 1, current->tag, writer.take());
}
