#include "lib/Runtime/Shard/Link.h"
#include "lib/Runtime/Shard/Messages.h"

using namespace ctxc;
using llvm::Error;
using llvm::Expected;

char Stopped::ID;

/// How a message on streams begins.
enum Mark : int64_t { Data, Ended };

/// Messages of streams and of parts are longer.
static bool isEnd(const Message &message) { return message.size() == 1 && message[0] == Ended; }

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
      if (isEnd(*message))
        ended.insert(rank);
    }
  return Error::success();
}

Expected<MessageReader> Link::next(int rank) {
  Expected<Message> message = ranks.receive(rank, current->tag);
  if (!message)
    return message.takeError();
  if (isEnd(*message)) {
    current->ended.insert(rank);
    return llvm::make_error<Stopped>();
  }
  MessageReader reader(std::move(*message));
  (void)reader.number();
  return reader;
}

Error Link::nextInto(int rank, llvm::MutableArrayRef<float> place) {
  llvm::MutableArrayRef words(reinterpret_cast<uint64_t *>(place.data()), place.size() / 2);
  auto other = ranks.receiveInto(rank, current->tag, words);
  if (!other)
    return other.takeError();
  if (!*other)
    return Error::success();
  assert(isEnd(**other) && "a part of another size");
  current->ended.insert(rank);
  return llvm::make_error<Stopped>();
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

/// The numbers of a sum that rank `rank` of a stage of `ranks` adds up: about as many as each
/// other. A share begins with a line of the cache.
template <typename Array> static Array shareOf(Array all, int64_t rank, int64_t ranks) {
  constexpr int64_t line = 16;
  const int64_t count = all.size();
  auto begin = [&](int64_t of) { return of == ranks ? count : count * of / ranks / line * line; };
  return all.slice(begin(rank), begin(rank + 1) - begin(rank));
}

/// Whether so many numbers have a message of their own. It consists of words of two numbers.
static bool isLarge(size_t count) { return count >= size_t(1) << 12 && count % 2 == 0; }

/// Whether two ranks send each other all of their terms: as many bytes as shares of them and then
/// of the sums, in one message instead of two that follow each other.
static bool isDirect(const SharedRows &value, int tensor) {
  return isSum(value) && tensor == 2 && !isLarge(value.from->size());
}

/// The numbers of a sum that rank `rank` of the stage adds up.
template <typename Array>
static Array summedBy(const SharedRows &value, Array all, int64_t rank, int tensor) {
  return isDirect(value, tensor) ? all : shareOf(all, rank, tensor);
}

Error Link::send(int peer, llvm::ArrayRef<llvm::ArrayRef<float>> parts) {
  MessageWriter small;
  small.number(Data);
  for (llvm::ArrayRef<float> part : parts) {
    shared += part.size() * sizeof(float);
    if (!isLarge(part.size()))
      small.floats(part);
  }
  if (small.message().size() > 1)
    if (Error error = ranks.send(peer, current->tag, small.take()))
      return error;
  for (llvm::ArrayRef<float> part : parts)
    if (isLarge(part.size())) {
      llvm::ArrayRef words(reinterpret_cast<const uint64_t *>(part.data()), part.size() / 2);
      if (Error error = ranks.sendInPlace(peer, current->tag, words))
        return error;
    }
  return Error::success();
}

Error Link::sendParts(llvm::ArrayRef<SharedRows> values) {
  for (int peer : peers()) {
    llvm::SmallVector<llvm::ArrayRef<float>> parts;
    for (const SharedRows &value : values)
      if (isFor(peer, value))
        parts.push_back(isSum(value)
                            ? summedBy(value, llvm::ArrayRef(*value.from), peer - root(), tensor)
                            : llvm::ArrayRef(*value.from));
    if (Error error = send(peer, parts))
      return error;
  }
  return Error::success();
}

/// How many numbers this rank gets of rank `rank` of the stage for a value; `own` is this one.
static size_t sizeOfPart(const SharedRows &value, int64_t rank, int64_t own, int64_t ranks) {
  if (isSum(value))
    return summedBy(value, llvm::ArrayRef(*value.from), own, ranks).size();
  return value.to->size() / value.how->elements * value.how->cut.partSize(rank);
}

/// One rank's part of a value, which may be this one. Terms come in the order of the ranks.
Error Link::receivePart(int rank, const SharedRows &value, MessageReader *small) {
  const int own = ranks.rank();
  llvm::MutableArrayRef<float> sums;
  if (isSum(value))
    sums = summedBy(value, llvm::MutableArrayRef(*value.to), own - root(), tensor);
  StreamRows few;
  llvm::ArrayRef<float> part = *value.from;
  if (rank == own) {
    if (isSum(value))
      part = summedBy(value, part, own - root(), tensor);
  } else if (const size_t size = sizeOfPart(value, rank - root(), own - root(), tensor);
             !isLarge(size)) {
    part = few = small->floats();
  } else if (isSum(value) && rank == root()) {
    return nextInto(rank, sums);
  } else {
    received.resize(size);
    if (Error error = nextInto(rank, received))
      return error;
    part = received;
  }
  if (!isSum(value)) {
    place(value, rank - root(), part);
  } else if (rank == root()) {
    llvm::copy(part, sums.begin());
  } else {
    float *sum = sums.data();
    for (size_t i = 0, count = part.size(); i < count; ++i)
      sum[i] += part[i];
  }
  return Error::success();
}

Error Link::receiveParts(llvm::ArrayRef<SharedRows> values) {
  const int own = ranks.rank();
  for (int rank = root(); rank < root() + tensor; ++rank) {
    std::optional<MessageReader> small;
    const bool hasSmall = llvm::any_of(values, [&](const SharedRows &value) {
      return isFor(own, value) && !isLarge(sizeOfPart(value, rank - root(), own - root(), tensor));
    });
    if (rank != own && hasSmall)
      if (Error error = next(rank).moveInto(small))
        return error;
    for (const SharedRows &value : values)
      if (isFor(own, value))
        if (Error error = receivePart(rank, value, small ? &*small : nullptr))
          return error;
  }
  return Error::success();
}

/// Each rank's part of the sums, for the others, which do not have it.
Error Link::shareSums(llvm::ArrayRef<SharedRows> values) {
  auto shareOfRank = [&](const SharedRows &value, int rank) {
    return shareOf(llvm::MutableArrayRef(*value.to), rank - root(), tensor);
  };
  llvm::SmallVector<llvm::ArrayRef<float>> own;
  for (const SharedRows &value : values)
    if (isSum(value) && !isDirect(value, tensor))
      own.push_back(shareOfRank(value, ranks.rank()));
  for (int peer : peers())
    if (Error error = send(peer, own))
      return error;
  for (int peer : peers()) {
    std::optional<MessageReader> small;
    for (bool takesLarge : {false, true})
      for (const SharedRows &value : values) {
        if (!isSum(value) || isDirect(value, tensor))
          continue;
        llvm::MutableArrayRef<float> share = shareOfRank(value, peer);
        if (isLarge(share.size()) != takesLarge)
          continue;
        if (takesLarge) {
          if (Error error = nextInto(peer, share))
            return error;
          continue;
        }
        if (!small)
          if (Error error = next(peer).moveInto(small))
            return error;
        llvm::copy(small->floats(), share.begin());
      }
  }
  return Error::success();
}

Error Link::exchange(llvm::ArrayRef<SharedRows> values) {
  if (Error error = sendParts(values))
    return error;
  if (Error error = receiveParts(values))
    return error;
  const bool areShared = llvm::any_of(
      values, [&](const SharedRows &value) { return isSum(value) && !isDirect(value, tensor); });
  return areShared ? shareSums(values) : Error::success();
}

Error Link::makeWhole(llvm::ArrayRef<SharedRows> values) {
  const uint64_t before = shared;
  Error error = exchange(values);
  if (llvm::none_of(values, [](const SharedRows &value) { return value.isCounted; }))
    shared = before;
  if (error.isA<RanksLost>())
    return error;
  // Also after an error: its other ranks take what was sent to them until this one's call ends.
  if (Error lost = ranks.finishSending()) {
    llvm::consumeError(std::move(error));
    return lost;
  }
  return error;
}
