// Rank 0's calls: each asks the other ranks for their part, computes its own, and puts the results
// together.
#include "ctxc/Support/Error.h"
#include "lib/Runtime/Logits.h"
#include "lib/Runtime/Shard/ShardedExecutor.h"

using namespace mlir;
using namespace ctxc;
using llvm::ArrayRef;

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

MessageWriter RankExecutor::begin(Request request) {
  MessageWriter command;
  command.number(static_cast<int64_t>(request));
  command.number(onRanks.number);
  command.number(++lastCall);
  command.numbers(*dropped);
  dropped->clear();
  return command;
}

/// This rank's part of a run, in the run's state.
Run &RankExecutor::partOf(ShardedRun &run) {
  if (!run.part)
    run.part = local->start(run.capacity, run.keeps());
  run.part->truncate(run.count);
  return *run.part;
}

/// Names a run to the other ranks, which bring their parts of it to the same state.
void RankExecutor::name(MessageWriter &command, const ShardedRun &run) {
  command.number(run.number);
  command.number(run.capacity);
  command.number(run.keeps() == Keeps::Seen);
  command.number(run.count);
}

/// The same, and brings this rank's part to it.
void RankExecutor::describe(MessageWriter &command, ShardedRun &run) {
  partOf(run);
  name(command, run);
}

llvm::Error RankExecutor::sendToAll(const MessageWriter &command) {
  for (int rank = 1; rank < ranks.count(); ++rank)
    if (llvm::Error error = ranks.send(rank, CommandTag, command.message()))
      return error;
  return llvm::Error::success();
}

/// Those of the patch's changes that a rank's steps read.
Patch RankExecutor::partOf(const Patch &patch, int rank) const {
  Patch part;
  for (const ParameterPatch &each : patch.parameters) {
    Patch one{{each}};
    llvm::Error isOthers = names[stageOf(rank)].check(one, /*materialize=*/true);
    if (!isOthers)
      part.add(std::move(one.parameters));
    llvm::consumeError(std::move(isOthers));
  }
  return part;
}

/// `error`, a RanksLost, in place of what it brought with it.
llvm::Error RankExecutor::lost(llvm::Error error, llvm::Error other) {
  llvm::consumeError(std::move(other));
  return error;
}

/// The other ranks' last word on a call.
llvm::Expected<MessageReader> RankExecutor::lastReply(int rank) {
  for (;;) {
    llvm::Expected<Message> message = ranks.receive(rank, ReplyTag);
    if (!message)
      return message.takeError();
    MessageReader reply(std::move(*message));
    if (!reply.number())
      return reply;
    MessageWriter stop = begin(Request::Stop); // a row that nobody waits for any more
    if (llvm::Error error = ranks.send(rank, CommandTag, stop.take()))
      return std::move(error);
  }
}

/// Ends a call: takes each rank's reply, from `early` where that has come, and gives the results of
/// the good ones to `take`. Returns the errors of all ranks, equal ones once.
llvm::Error RankExecutor::settle(llvm::Error own,
                                 llvm::function_ref<void(int, MessageReader &)> take,
                                 EarlyReplies early) {
  if (own.isA<RanksLost>())
    return own;
  const bool isCancelled = own.isA<Cancelled>();
  bool isStopped = own.isA<Stopped>();
  if (isStopped) { // by another rank, which says why
    llvm::consumeError(std::move(own));
    own = llvm::Error::success();
  }
  std::string text;
  llvm::StringSet<> seen;
  if (own)
    llvm::raw_string_ostream(text) << own;
  seen.insert(text);
  for (int rank = 1; rank < ranks.count(); ++rank) {
    auto found = early.find(rank);
    llvm::Expected<MessageReader> reply =
        found == early.end() ? lastReply(rank) : std::move(found->second);
    if (!reply)
      return lost(reply.takeError(), std::move(own));
    const bool isBad = reply->number(), isSecond = reply->number();
    isStopped |= isSecond;
    if (!isBad && isSpeaker(rank))
      take(rank, *reply);
    else if (isBad && !isSecond && !isCancelled && seen.insert(text = reply->text()).second)
      own = llvm::joinErrors(std::move(own), makeError("rank " + llvm::Twine(rank) + ": " + text));
  }
  if (!own && isStopped)
    return llvm::make_error<Stopped>();
  return own;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

void RankExecutor::readObserved(MessageReader &reply, const LayerObserver &observer,
                                const LayerObserver &ofReduced) {
  for (int64_t i = 0, count = reply.number(); i < count; ++i) {
    const bool isReduced = reply.number();
    const int64_t layer = reply.number(), rows = reply.number();
    const std::vector<double> numbers = reply.doubles();
    if (const LayerObserver &seen = isReduced ? ofReduced : observer)
      seen(layer, numbers, rows);
  }
}

llvm::Error RankExecutor::sendForward(Request request, ShardedRun &run, ArrayRef<Input> tokens,
                                      ArrayRef<int64_t> positions, const ForwardOptions &options) {
  MessageWriter command = begin(request);
  describe(command, run);
  command.inputs(tokens);
  command.numbers(positions);
  command.number(options.materialize);
  command.number(options.append);
  command.number(options.allLogits);
  command.number(bool(options.observer));
  command.number(options.patch != nullptr);
  for (int rank = 1; rank < ranks.count(); ++rank) {
    MessageWriter ofRank = command;
    if (options.patch)
      ofRank.patch(partOf(*options.patch, rank));
    if (llvm::Error error = ranks.send(rank, CommandTag, ofRank.take()))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<Logits> RankExecutor::computeLogits(Run &opaque, ArrayRef<Input> tokens,
                                                   ArrayRef<int64_t> positions,
                                                   const ForwardOptions &options) {
  auto &run = static_cast<ShardedRun &>(opaque);
  if (llvm::Error error = sendForward(Request::Forward, run, tokens, positions, options))
    return std::move(error);
  Link::Call call(link, lastCall);
  llvm::Expected<Logits> own = local->logits(*run.part, tokens, positions, options);
  if (llvm::Error error = call.finish())
    return lost(std::move(error), own.takeError());
  Logits logits = own ? std::move(*own) : Logits();
  if (llvm::Error error = settle(own.takeError(), [&](int rank, MessageReader &reply) {
        readObserved(reply, options.observer, nullptr);
        if (Logits of = reply.logits(); !of.empty())
          logits = std::move(of);
      }))
    return std::move(error);
  if (options.append)
    run.count += tokens.size();
  return logits;
}

llvm::Expected<int64_t> RankExecutor::computeNext(Run &opaque, const Input &token, int64_t position,
                                                  const ForwardOptions &options) {
  auto &run = static_cast<ShardedRun &>(opaque);
  if (llvm::Error error = sendForward(Request::Next, run, token, position, options))
    return std::move(error);
  Link::Call call(link, lastCall);
  llvm::Expected<int64_t> next = local->next(*run.part, token, position, options);
  if (llvm::Error error = call.finish())
    return lost(std::move(error), next.takeError());
  int64_t chosen = next ? *next : -1;
  if (llvm::Error error = settle(next.takeError(), [&](int rank, MessageReader &reply) {
        readObserved(reply, options.observer, nullptr);
        chosen = std::max(chosen, reply.number());
      }))
    return std::move(error);
  if (options.append)
    ++run.count;
  return chosen;
}

//===----------------------------------------------------------------------===//
// Runs, the head, questions
//===----------------------------------------------------------------------===//

llvm::Error RankExecutor::copyState(const Run &given, Run &made) {
  auto &from = const_cast<ShardedRun &>(static_cast<const ShardedRun &>(given));
  auto &to = static_cast<ShardedRun &>(made);
  MessageWriter command = begin(Request::Copy);
  describe(command, from);
  command.number(to.number);
  command.number(to.capacity);
  if (llvm::Error error = sendToAll(command))
    return error;
  llvm::Expected<std::unique_ptr<Run>> part = local->copy(*from.part, to.capacity);
  if (part)
    to.part = std::move(*part);
  to.count = from.count;
  return settle(part.takeError(), [](int, MessageReader &) {});
}

/// What this rank has of the head's logits: none, where it is of another stage.
llvm::Expected<Logits> RankExecutor::ownHead(ArrayRef<double> vectors, int64_t count) {
  if (!hasHead())
    return Logits();
  auto logits = local->readHead(vectors, count);
  if (!logits)
    return logits.takeError();
  return Logits(std::vector<float>(logits->begin(), logits->end()));
}

llvm::Expected<Logits> RankExecutor::computeHead(ArrayRef<double> vectors, int64_t count) {
  MessageWriter command = begin(Request::Head);
  command.doubles(vectors);
  command.number(count);
  if (llvm::Error error = sendToAll(command))
    return std::move(error);
  Link::Call call(link, lastCall);
  llvm::Expected<Logits> own = ownHead(vectors, count);
  if (llvm::Error error = call.finish())
    return lost(std::move(error), own.takeError());
  Logits logits = own ? std::move(*own) : Logits();
  if (llvm::Error error = settle(own.takeError(), [&](int rank, MessageReader &reply) {
        if (rank == lastSpeaker())
          logits = reply.logits();
      }))
    return std::move(error);
  return logits;
}

llvm::Error RankExecutor::computeStep(const StepRows &rows, Run *opaque,
                                      std::vector<Rows> &outputs) {
  if (rows.weights && rows.weights != &weights)
    return makeError("ranks run a model with its own weights; changed ones are run in one process");
  auto *run = static_cast<ShardedRun *>(opaque);
  MessageWriter command = begin(Request::Step), what;
  command.number(rows.step);
  // Ranks that do not have the step leave their parts of the run as they are: with these tokens, if
  // they have run theirs.
  what.number(run != nullptr);
  if (run)
    name(what, *run);
  what.numbers(std::vector<int64_t>(rows.tokens.begin(), rows.tokens.end()));
  what.numbers(std::vector<int64_t>(rows.positions.begin(), rows.positions.end()));
  what.number(rows.inputs.size());
  for (const Rows *input : rows.inputs)
    what.floats(*input);
  for (int rank = 1; rank < ranks.count(); ++rank) {
    MessageWriter ofRank = command;
    if (stages[stageOf(rank)].has(rows.step))
      ofRank.append(what);
    if (llvm::Error error = ranks.send(rank, CommandTag, ofRank.take()))
      return error;
  }
  Link::Call call(link, lastCall);
  llvm::Error own = has(rows.step) ? local->runStep(rows, run ? &partOf(*run) : nullptr, outputs)
                                   : llvm::Error::success();
  if (llvm::Error error = call.finish())
    return lost(std::move(error), std::move(own));
  if (llvm::Error error = settle(std::move(own), [&](int rank, MessageReader &reply) {
        if (!stages[stageOf(rank)].has(rows.step))
          return;
        outputs.resize(reply.number());
        for (Rows &output : outputs)
          output = reply.floats();
      }))
    return error;
  if (run)
    run->count += rows.tokens.size();
  return llvm::Error::success();
}

llvm::Expected<MessageReader> RankExecutor::askOne(int rank, MessageWriter command) {
  if (llvm::Error error = ranks.send(rank, CommandTag, command.take()))
    return std::move(error);
  llvm::Expected<MessageReader> reply = lastReply(rank);
  if (!reply)
    return reply;
  const bool isBad = reply->number();
  (void)reply->number();
  if (isBad)
    return makeError("rank " + llvm::Twine(rank) + ": " + reply->text());
  return reply;
}

int RankExecutor::rankOf(int64_t layer) const {
  for (auto [number, stage] : llvm::enumerate(stages))
    for (size_t i = stage.first; i < stage.end; ++i)
      if (program.steps[i].index == layer)
        return number * tensor;
  return layer < 0 ? 0 : lastSpeaker();
}

llvm::Expected<double> RankExecutor::queryRank(int rank, llvm::StringRef question) {
  MessageWriter command = begin(Request::Question);
  command.text(question);
  auto reply = askOne(rank, std::move(command));
  if (!reply)
    return reply.takeError();
  return reply->doubles().front();
}

llvm::Expected<std::vector<RankFacts>> RankExecutor::facts() {
  std::vector<RankFacts> all = {ownFacts()};
  for (int rank = 1; rank < ranks.count(); ++rank) {
    auto reply = askOne(rank, begin(Request::Facts));
    if (!reply)
      return reply.takeError();
    const std::vector<int64_t> numbers = reply->numbers();
    all.push_back(
        {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]});
  }
  return all;
}
