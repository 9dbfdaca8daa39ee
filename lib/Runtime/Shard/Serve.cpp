// What ranks other than 0 do: they compute their stage of what rank 0 asks for, and reply.
//
// A reply begins with whether it is a row of PatchEach, of which more follow. The last one of a
// call has two more numbers: whether there was an error, and whether that was another rank's; then
// the error's text, or the results.
#include "lib/Runtime/Shard/ShardedExecutor.h"

using namespace ctxc;

llvm::Expected<int>
ctxc::serveRanks(Ranks &ranks,
                 llvm::function_ref<llvm::Expected<ShardedExecutor &>(int64_t number)> executor,
                 ShardedExecutor::Answer answer) {
  for (;;) {
    llvm::Expected<Message> message = ranks.receive(0, CommandTag);
    if (!message)
      return message.takeError();
    MessageReader command(std::move(*message));
    const auto request = static_cast<Request>(command.number());
    if (request == Request::End)
      return int(command.number());
    llvm::Expected<ShardedExecutor &> own = executor(command.number());
    if (!own)
      return llvm::make_error<RanksLost>("rank " + llvm::Twine(ranks.rank()) + ": " +
                                         llvm::toString(own.takeError()));
    if (llvm::Error error = static_cast<RankExecutor &>(*own).take(request, command, answer))
      return std::move(error);
  }
}

llvm::Error RankExecutor::take(Request request, MessageReader &command, Answer answer) {
  const int64_t number = command.number();
  for (int64_t run : command.numbers())
    runs.erase(run);
  switch (request) {
  case Request::Begin:
    return takeBegin(number);
  case Request::Forward:
  case Request::Next:
    return takeForward(request, command, number);
  case Request::Patch:
    return takePatch(command, number);
  case Request::PatchEach:
    return takePatchEach(command, number, answer);
  case Request::Step:
    return takeStep(command, number);
  case Request::Copy:
    return takeCopy(command);
  case Request::Head:
    return takeHead(command, number);
  case Request::Question: {
    llvm::Expected<double> number = answer(command.text());
    MessageWriter results;
    if (number)
      results.doubles(*number);
    return reply(number.takeError(), results);
  }
  case Request::Facts: {
    const RankFacts facts = ownFacts();
    MessageWriter results;
    results.numbers({facts.firstLayer, facts.endLayer, facts.weightBytes, facts.residentBytes,
                     facts.streamBytes, facts.sharedBytes, facts.sentBytes});
    return reply(llvm::Error::success(), results);
  }
  case Request::GoOn:
  case Request::Stop:
  case Request::End:
    break; // where they are waited for
  }
  llvm_unreachable("a request that nobody waits for");
}

llvm::Error RankExecutor::reply(llvm::Error error, const MessageWriter &results) {
  if (error.isA<RanksLost>())
    return error;
  MessageWriter message;
  message.number(/*isRow=*/false);
  message.number(bool(error));
  message.number(error.isA<Stopped>());
  if (error)
    message.text(llvm::toString(std::move(error)));
  else
    message.append(results);
  return ranks.send(0, ReplyTag, message.take());
}

/// Ends a call, of which this rank's part has given `error` or what `write` writes.
llvm::Error RankExecutor::end(Link::Call &call, llvm::Error error,
                              llvm::function_ref<void(MessageWriter &)> write) {
  if (error.isA<RanksLost>())
    return error;
  if (llvm::Error lost = call.finish()) {
    llvm::consumeError(std::move(error));
    return lost;
  }
  MessageWriter results;
  if (!error && isSpeaker(ranks.rank()))
    write(results);
  return reply(std::move(error), results);
}

/// This rank's part of the run that the command names, in the state that rank 0's has.
Run &RankExecutor::runOf(MessageReader &command) {
  const int64_t number = command.number(), capacity = command.number();
  const Keeps keeps = command.number() ? Keeps::Seen : Keeps::All;
  std::unique_ptr<Run> &run = runs[number];
  if (!run)
    run = local->start(capacity, keeps);
  run->truncate(command.number());
  return *run;
}

/// An observer that adds to `seen`, where one is asked for.
static LayerObserver observerInto(std::vector<Observed> &seen, bool isAsked, bool isReduced) {
  if (!isAsked)
    return nullptr;
  return [&seen, isReduced](int64_t layer, llvm::ArrayRef<double> numbers, int64_t rows) {
    seen.push_back({isReduced, layer, rows, numbers.vec()});
  };
}

static void write(MessageWriter &results, llvm::ArrayRef<Observed> seen) {
  results.number(seen.size());
  for (const Observed &each : seen) {
    results.number(each.isReduced);
    results.number(each.layer);
    results.number(each.rows);
    results.doubles(each.numbers);
  }
}

static void write(MessageWriter &results, llvm::ArrayRef<Rows> outputs) {
  results.number(outputs.size());
  for (const Rows &output : outputs)
    results.floats(output);
}

llvm::Error RankExecutor::takeForward(Request request, MessageReader &command, int64_t number) {
  Run &run = runOf(command);
  const std::vector<Input> tokens = command.inputs();
  const std::vector<int64_t> positions = command.numbers();
  ForwardOptions options;
  options.materialize = command.number();
  options.append = command.number();
  options.allLogits = command.number();
  std::vector<Observed> seen;
  options.observer = observerInto(seen, command.number(), false);
  Patch patch;
  if (command.number()) {
    patch = command.patch();
    options.patch = &patch;
  }
  Link::Call call(link, number);
  // Only the last stage has logits.
  const bool isNext = request == Request::Next && hasHead();
  Logits logits;
  int64_t next = -1;
  llvm::Error error = llvm::Error::success();
  if (isNext) {
    auto chosen = local->next(run, tokens.front(), positions.front(), options);
    error = llvm::joinErrors(std::move(error), chosen.takeError());
    next = chosen ? *chosen : -1;
  } else {
    auto made = local->logits(run, tokens, positions, options);
    if (made)
      logits = std::move(*made);
    error = llvm::joinErrors(std::move(error), made.takeError());
  }
  return end(call, std::move(error), [&](MessageWriter &results) {
    write(results, seen);
    if (request == Request::Next)
      results.number(next);
    else
      results.logits(logits);
  });
}

llvm::Error RankExecutor::takeBegin(int64_t number) {
  Link::Call call(link, number);
  llvm::Error error = makeLocal();
  return end(call, std::move(error), [](MessageWriter &) {});
}

llvm::Error RankExecutor::takePatch(MessageReader &command, int64_t number) {
  Run &full = runOf(command);
  Run &reduced = runOf(command);
  const std::vector<Input> token = command.inputs();
  const int64_t position = command.number();
  PatchOptions options;
  options.startLayer = command.number();
  options.materialize = command.number();
  options.logits = command.number();
  options.reducedHead = command.number();
  std::vector<Observed> seen;
  options.fullObserver = observerInto(seen, command.number(), false);
  options.reducedObserver = observerInto(seen, command.number(), true);
  Link::Call call(link, number);
  llvm::Expected<PatchStep> step = local->patch(full, reduced, token.front(), position, options);
  llvm::Error error = step.takeError();
  return end(call, std::move(error), [&](MessageWriter &results) {
    write(results, seen);
    results.patch(step->patch);
    results.obligations(step->obligations);
    results.doubles(step->replayError);
    results.logits(step->fullLogits);
    results.logits(step->reducedLogits);
    results.number(step->fullNext);
    results.number(step->reducedNext);
  });
}

/// Gives rank 0 this rank's part of a row, and does what it asks for meanwhile.
llvm::Error RankExecutor::giveOwnRow(const TokenPatch &row, Answer answer) {
  MessageWriter message;
  message.number(/*isRow=*/true);
  if (isSpeaker(ranks.rank())) {
    llvm::Expected<Patch> patch = row.patch();
    if (!patch)
      return patch.takeError();
    message.patch(*patch);
    message.obligations(row.obligations);
    message.doubles(row.replayError);
    message.logits(row.fullLogits);
    message.logits(row.reducedLogits);
  }
  if (llvm::Error error = ranks.send(0, ReplyTag, message.take()))
    return error;
  for (;;) {
    llvm::Expected<Message> next = ranks.receive(0, CommandTag);
    if (!next)
      return next.takeError();
    MessageReader command(std::move(*next));
    const auto request = static_cast<Request>(command.number());
    if (request == Request::GoOn)
      return llvm::Error::success();
    if (request == Request::Stop)
      return llvm::make_error<Stopped>();
    if (request == Request::End)
      return llvm::make_error<RanksLost>("rank 0 ended in the middle of a call");
    assert(command.number() == onRanks.number && "a sink calls the executor that calls it");
    if (llvm::Error error = take(request, command, answer))
      return error;
  }
}

llvm::Error RankExecutor::takePatchEach(MessageReader &command, int64_t number, Answer answer) {
  Run &full = runOf(command);
  Run &reduced = runOf(command);
  const std::vector<Input> tokens = command.inputs();
  const std::vector<int64_t> positions = command.numbers();
  PatchEachOptions options;
  options.startLayer = command.number();
  options.logits = command.number();
  options.chunk = command.number();
  Link::Call call(link, number);
  llvm::Error error =
      local->patchEach(full, reduced, tokens, positions, options,
                       [&](const TokenPatch &row) { return giveOwnRow(row, answer); });
  if (error.isA<RanksLost>())
    return error;
  if (llvm::Error lost = call.tell()) {
    llvm::consumeError(std::move(error));
    return lost;
  }
  // Where this rank alone failed, others of its stage wait with a row for rank 0, which lets them
  // go when it has this reply.
  if (llvm::Error lost = reply(std::move(error), MessageWriter()))
    return lost;
  return call.hear();
}

llvm::Error RankExecutor::takeHead(MessageReader &command, int64_t number) {
  const std::vector<double> vectors = command.doubles();
  const int64_t count = command.number();
  Link::Call call(link, number);
  llvm::Expected<Logits> logits = ownHead(vectors, count);
  llvm::Error error = logits.takeError();
  return end(call, std::move(error), [&](MessageWriter &results) {
    if (ranks.rank() == lastSpeaker())
      results.logits(*logits);
  });
}

llvm::Error RankExecutor::takeStep(MessageReader &command, int64_t number) {
  StepRows rows;
  rows.step = command.number();
  const bool isOwn = has(rows.step);
  Run *run = isOwn && command.number() ? &runOf(command) : nullptr;
  std::vector<int32_t> tokens, positions;
  std::vector<Rows> inputs, outputs;
  if (isOwn) {
    for (std::vector<int32_t> *each : {&tokens, &positions}) {
      const std::vector<int64_t> numbers = command.numbers();
      each->assign(numbers.begin(), numbers.end());
    }
    for (int64_t count = command.number(); int64_t(inputs.size()) < count;)
      inputs.push_back(command.floats());
  }
  rows.tokens = tokens;
  rows.positions = positions;
  for (const Rows &input : inputs)
    rows.inputs.push_back(&input);
  Link::Call call(link, number);
  llvm::Error error = isOwn ? local->runStep(rows, run, outputs) : llvm::Error::success();
  return end(call, std::move(error), [&](MessageWriter &results) {
    if (isOwn)
      write(results, outputs);
  });
}

llvm::Error RankExecutor::takeCopy(MessageReader &command) {
  Run &from = runOf(command);
  const int64_t number = command.number(), capacity = command.number();
  llvm::Expected<std::unique_ptr<Run>> copy = local->copy(from, capacity);
  if (copy)
    runs[number] = std::move(*copy);
  return reply(copy.takeError(), MessageWriter());
}
