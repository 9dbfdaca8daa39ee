// Rank 0's calls that make patches (ShardedCalls.cpp has the others).
#include "lib/Runtime/Shard/ShardedExecutor.h"

using namespace mlir;
using namespace ctxc;
using llvm::ArrayRef;

/// Adds what a rank's layers gave; those of the others are zero in it.
static void addErrors(std::vector<double> &sum, ArrayRef<double> part) {
  for (auto [total, each] : llvm::zip_equal(sum, part))
    total += each;
}

llvm::Expected<PatchStep> RankExecutor::computePatch(Run &opaqueFull, Run &opaqueReduced,
                                                     const Input &token, int64_t position,
                                                     const PatchOptions &options) {
  auto &full = static_cast<ShardedRun &>(opaqueFull);
  auto &reduced = static_cast<ShardedRun &>(opaqueReduced);
  MessageWriter command = begin(Request::Patch);
  describe(command, full);
  describe(command, reduced);
  command.inputs(token);
  command.number(position);
  command.number(options.startLayer);
  command.number(options.materialize);
  command.number(options.logits);
  command.number(options.reducedHead);
  command.number(bool(options.fullObserver));
  command.number(bool(options.reducedObserver));
  if (llvm::Error error = sendToAll(command))
    return std::move(error);

  Link::Call call(link, lastCall);
  llvm::Expected<PatchStep> own = local->patch(*full.part, *reduced.part, token, position, options);
  if (llvm::Error error = call.finish())
    return lost(std::move(error), own.takeError());
  PatchStep step = own ? std::move(*own) : PatchStep();
  if (llvm::Error error = settle(own.takeError(), [&](int rank, MessageReader &reply) {
        readObserved(reply, options.fullObserver, options.reducedObserver);
        step.patch.add(reply.patch().parameters);
        step.obligations.resize(program.layers);
        reply.obligations(step.obligations);
        step.replayError.resize(program.layers);
        addErrors(step.replayError, reply.doubles());
        if (rank != lastSpeaker())
          return;
        step.fullLogits = reply.logits();
        step.reducedLogits = reply.logits();
        step.fullNext = reply.number();
        step.reducedNext = reply.number();
      }))
    return std::move(error);
  ++full.count;
  return step;
}

/// Puts a row of all ranks together for `sink`, and has them go on.
llvm::Error RankExecutor::giveRow(const TokenPatch &own, PatchSink sink, EarlyReplies &early) {
  TokenPatch whole = own;
  std::vector<Patch> parts;
  std::vector<int> waiting;
  for (int rank = 1; rank < ranks.count(); ++rank) {
    llvm::Expected<Message> message = ranks.receive(rank, ReplyTag);
    if (!message)
      return message.takeError();
    MessageReader reply(std::move(*message));
    if (!reply.number()) {
      early.emplace(rank, std::move(reply));
      continue;
    }
    waiting.push_back(rank);
    if (!isSpeaker(rank))
      continue;
    parts.push_back(reply.patch());
    reply.obligations(whole.obligations);
    addErrors(whole.replayError, reply.doubles());
    whole.fullLogits = reply.logits(); // the last rank's stay
    whole.reducedLogits = reply.logits();
  }
  auto makePatch = [&]() -> llvm::Expected<Patch> {
    llvm::Expected<Patch> patch = own.patch();
    for (Patch &part : parts)
      if (patch)
        patch->add(part.parameters);
    return patch;
  };
  whole.patch = makePatch;
  llvm::Error error = early.empty() ? sink(whole) : llvm::make_error<Stopped>();
  if (error.isA<RanksLost>())
    return error;
  for (int rank : waiting) {
    MessageWriter command = begin(error ? Request::Stop : Request::GoOn);
    if (llvm::Error sending = ranks.send(rank, CommandTag, command.take()))
      return lost(std::move(sending), std::move(error));
  }
  return error;
}

llvm::Error RankExecutor::computePatchEach(Run &opaqueFull, Run &opaqueReduced,
                                           ArrayRef<Input> tokens, ArrayRef<int64_t> positions,
                                           const PatchEachOptions &options, PatchSink sink) {
  auto &full = static_cast<ShardedRun &>(opaqueFull);
  auto &reduced = static_cast<ShardedRun &>(opaqueReduced);
  PatchEachOptions chunked = options;
  chunked.chunk = patchChunk(options);
  MessageWriter command = begin(Request::PatchEach);
  describe(command, full);
  describe(command, reduced);
  command.inputs(tokens);
  command.numbers(positions);
  command.number(chunked.startLayer);
  command.number(chunked.logits);
  command.number(chunked.chunk);
  if (llvm::Error error = sendToAll(command))
    return error;

  Link::Call call(link, lastCall);
  EarlyReplies early;
  llvm::Error own =
      local->patchEach(*full.part, *reduced.part, tokens, positions, chunked,
                       [&](const TokenPatch &row) { return giveRow(row, sink, early); });
  if (own.isA<RanksLost>())
    return own;
  // Ranks that wait with a row, because this one alone failed, are let go before they are heard.
  if (llvm::Error error = call.tell())
    return lost(std::move(error), std::move(own));
  if (llvm::Error error = settle(std::move(own), [](int, MessageReader &) {}, std::move(early))) {
    if (!error.isA<RanksLost>())
      if (llvm::Error other = call.hear())
        return lost(std::move(other), std::move(error));
    return error;
  }
  if (llvm::Error error = call.hear())
    return error;
  full.count += tokens.size();
  return llvm::Error::success();
}
