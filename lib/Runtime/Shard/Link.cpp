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

llvm::SmallVector<int> Link::peers() const {
  llvm::SmallVector<int> others;
  for (int rank = root(); rank < root() + tensor; ++rank)
    if (rank != ranks.rank())
      others.push_back(rank);
  return others;
}

Error Link::Call::tell() {
  llvm::SmallVector<int> told = link.peers();
  if (!link.isLast())
    told.push_back(link.ranks.rank() + link.tensor);
  for (int rank : told) {
    MessageWriter end;
    end.number(Ended);
    if (Error error = link.ranks.send(rank, tag, end.take()))
      return error;
  }
  return Error::success();
}

Error Link::Call::hear() {
  llvm::SmallVector<int> heard = link.peers();
  if (!link.isFirst())
    heard.push_back(link.ranks.rank() - link.tensor);
  for (int rank : heard)
    while (!ended.contains(rank)) {
      Expected<Message> message = link.ranks.receive(rank, tag);
      if (!message)
        return message.takeError();
      if (MessageReader(std::move(*message)).number() == Ended)
        ended.insert(rank);
    }
  return Error::success();
}

Expected<MessageReader> Link::next(int rank) {
  Expected<Message> message = ranks.receive(rank, current->tag);
  if (!message)
    return message.takeError();
  MessageReader reader(std::move(*message));
  if (reader.number() == Ended) {
    current->ended.insert(rank);
    return llvm::make_error<Stopped>();
  }
  return reader;
}

Error Link::receive(llvm::ArrayRef<StreamRows *> streams) {
  Expected<MessageReader> reader = next(ranks.rank() - tensor);
  if (!reader)
    return reader.takeError();
  for (StreamRows *rows : streams)
    *rows = reader->floats();
  return Error::success();
}

Error Link::send(llvm::ArrayRef<const StreamRows *> streams) {
  MessageWriter writer;
  writer.number(Data);
  for (const StreamRows *rows : streams) {
    writer.floats(*rows);
    sent += rows->size() * sizeof(float);
  }
  return ranks.send(ranks.rank() + tensor, current->tag, writer.take());
}

//===----------------------------------------------------------------------===//
// Values of a stage
//===----------------------------------------------------------------------===//

static bool isSum(const SharedRows &value) { return value.how->kind == shard::Transfer::Sum; }

/// Whether each rank's part goes to all others.
static bool isGathered(const SharedRows &value) {
  return value.how->kind == shard::Transfer::Gather;
}

/// Puts rank `rank` of the stage's part of each row in its place.
static void place(const SharedRows &value, int64_t rank, const StreamRows &part) {
  const shard::Cut &cut = value.how->cut;
  for (size_t row = 0, at = 0; at < part.size(); ++row, at += cut.partSize(rank))
    cut.visitRuns(rank, [&](int64_t inWhole, int64_t inPart, int64_t count) {
      std::copy_n(part.begin() + at + inPart, count,
                  value.to->begin() + row * cut.wholeSize() + inWhole);
    });
}

Error Link::sendParts(llvm::ArrayRef<SharedRows> values) {
  const bool isForAll = llvm::any_of(values, isGathered);
  for (int peer : peers()) {
    MessageWriter writer;
    writer.number(Data);
    for (const SharedRows &value : values)
      if (isGathered(value) || peer == root()) {
        writer.floats(*value.from);
        shared += value.from->size() * sizeof(float);
      }
    if (isForAll || peer == root())
      if (Error error = ranks.send(peer, current->tag, writer.take()))
        return error;
  }
  return Error::success();
}

Error Link::receiveParts(llvm::ArrayRef<SharedRows> values) {
  const bool isRoot = ranks.rank() == root();
  for (const SharedRows &value : values)
    if (isSum(value) && isRoot)
      *value.to = *value.from;
    else if (isGathered(value) || isRoot)
      place(value, ranks.rank() - root(), *value.from);
  if (!isRoot && llvm::none_of(values, isGathered))
    return Error::success();
  for (int peer : peers()) {
    Expected<MessageReader> reader = next(peer);
    if (!reader)
      return reader.takeError();
    for (const SharedRows &value : values) {
      if (!isGathered(value) && !isRoot)
        continue;
      const StreamRows rows = reader->floats();
      if (!isSum(value))
        place(value, peer - root(), rows);
      else
        for (auto [sum, term] : llvm::zip_equal(*value.to, rows))
          sum += term;
    }
  }
  return Error::success();
}

/// The sums, which the first rank has, for the others.
Error Link::shareSums(llvm::ArrayRef<SharedRows> values) {
  if (ranks.rank() != root()) {
    Expected<MessageReader> reader = next(root());
    if (!reader)
      return reader.takeError();
    for (const SharedRows &value : values)
      if (isSum(value))
        *value.to = reader->floats();
    return Error::success();
  }
  MessageWriter writer;
  writer.number(Data);
  for (const SharedRows &value : values)
    if (isSum(value)) {
      writer.floats(*value.to);
      shared += value.to->size() * sizeof(float) * (tensor - 1);
    }
  for (int peer : peers())
    if (Error error = ranks.send(peer, current->tag, writer.message()))
      return error;
  return Error::success();
}

Error Link::makeWhole(llvm::ArrayRef<SharedRows> values) {
  if (Error error = sendParts(values))
    return error;
  if (Error error = receiveParts(values))
    return error;
  return llvm::any_of(values, isSum) ? shareSums(values) : Error::success();
}
