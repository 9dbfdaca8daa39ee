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

/// Whether a rank gets the others' parts of a value: the first one alone where they are collected.
bool Link::isFor(int rank, const SharedRows &value) const {
  return rank == root() || value.how->kind != shard::Transfer::Collect;
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

/// The numbers of a sum that rank `rank` of a stage of `ranks` adds up: as many as each other.
template <typename Array> static Array shareOf(Array all, int64_t rank, int64_t ranks) {
  const int64_t count = all.size(), begin = count * rank / ranks;
  return all.slice(begin, count * (rank + 1) / ranks - begin);
}

Error Link::sendParts(llvm::ArrayRef<SharedRows> values) {
  for (int peer : peers()) {
    MessageWriter writer;
    writer.number(Data);
    for (const SharedRows &value : values) {
      if (!isFor(peer, value))
        continue;
      llvm::ArrayRef<float> part = *value.from;
      if (isSum(value))
        part = shareOf(llvm::ArrayRef(*value.from), peer - root(), tensor);
      writer.floats(part);
      shared += part.size() * sizeof(float);
    }
    if (llvm::any_of(values, [&](const SharedRows &value) { return isFor(peer, value); }))
      if (Error error = ranks.send(peer, current->tag, writer.take()))
        return error;
  }
  return Error::success();
}

/// Terms are added in the order of the ranks.
Error Link::receiveParts(llvm::ArrayRef<SharedRows> values) {
  const int own = ranks.rank();
  if (llvm::none_of(values, [&](const SharedRows &value) { return isFor(own, value); }))
    return Error::success();
  for (int rank = root(); rank < root() + tensor; ++rank) {
    std::optional<MessageReader> reader;
    if (rank != own)
      if (Error error = next(rank).moveInto(reader))
        return error;
    for (const SharedRows &value : values) {
      if (!isFor(own, value))
        continue;
      if (!isSum(value)) {
        place(value, rank - root(), reader ? reader->floats() : *value.from);
        continue;
      }
      StreamRows received;
      llvm::ArrayRef<float> term = shareOf(llvm::ArrayRef(*value.from), own - root(), tensor);
      if (reader)
        term = received = reader->floats();
      llvm::MutableArrayRef<float> sums =
          shareOf(llvm::MutableArrayRef(*value.to), own - root(), tensor);
      if (rank == root())
        llvm::copy(term, sums.begin());
      else
        for (auto [sum, each] : llvm::zip_equal(sums, term))
          sum += each;
    }
  }
  return Error::success();
}

/// Each rank's part of the sums, for the others.
Error Link::shareSums(llvm::ArrayRef<SharedRows> values) {
  MessageWriter writer;
  writer.number(Data);
  for (const SharedRows &value : values)
    if (isSum(value)) {
      llvm::ArrayRef<float> sums =
          shareOf(llvm::MutableArrayRef(*value.to), ranks.rank() - root(), tensor);
      writer.floats(sums);
      shared += sums.size() * sizeof(float) * (tensor - 1);
    }
  for (int peer : peers())
    if (Error error = ranks.send(peer, current->tag, writer.message()))
      return error;
  for (int peer : peers()) {
    Expected<MessageReader> reader = next(peer);
    if (!reader)
      return reader.takeError();
    for (const SharedRows &value : values)
      if (isSum(value))
        llvm::copy(reader->floats(),
                   shareOf(llvm::MutableArrayRef(*value.to), peer - root(), tensor).begin());
  }
  return Error::success();
}

Error Link::makeWhole(llvm::ArrayRef<SharedRows> values) {
  if (Error error = sendParts(values))
    return error;
  if (Error error = receiveParts(values))
    return error;
  return llvm::any_of(values, isSum) ? shareSums(values) : Error::success();
}
