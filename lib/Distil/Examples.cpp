#include "ctxc/Distil/Examples.h"
#include "Sequences.h"
#include "ctxc/Distil/Sample.h"

using namespace ctxc;

llvm::Expected<std::vector<Example>> ctxc::examples(SplitModel model, const Adapter &adapter,
                                                    const EvaluateRequest &request, size_t count,
                                                    int64_t length, llvm::ArrayRef<int64_t> stops) {
  SampleRequest asked;
  size_t longest = 0, longestPrompt = 0;
  for (const TextSequence &text : request.texts) {
    longest = std::max(longest, text.tokens.size());
    auto prompt = llvm::ArrayRef(text.tokens).take_front(text.prompt).vec();
    if (asked.prompts.size() < count && !llvm::is_contained(asked.prompts, prompt))
      asked.prompts.push_back(std::move(prompt));
  }
  for (const std::vector<int64_t> &prompt : asked.prompts)
    longestPrompt = std::max(longestPrompt, prompt.size());
  // No position beyond those of the texts, which the model has.
  asked.length = std::min<int64_t>(length, longest - longestPrompt);
  asked.stops = stops.vec();
  asked.temperature = 0;
  AdaptedWeights adapted(model.weights);
  if (llvm::Error error = adapted.add(adapter))
    return std::move(error);
  std::vector<Example> all(asked.prompts.size());
  for (auto [example, prompt] : llvm::zip(all, asked.prompts))
    example.prompt = prompt;
  using Part = std::vector<int64_t> Example::*;
  auto write = [&](Weights &weights, SampleRequest request, llvm::MutableArrayRef<Example> some,
                   Part part) -> llvm::Error {
    auto written = sample({model.split, model.steps, model.targets, weights}, request);
    if (!written)
      return written.takeError();
    for (auto [example, text] : llvm::zip(some, written->texts))
      example.*part = llvm::ArrayRef(text.tokens).drop_front(text.prompt).vec();
    return llvm::Error::success();
  };
  auto answer = [&](Weights &weights, llvm::ArrayRef<int64_t> front, Part part) -> llvm::Error {
    asked.context = front.vec();
    if (!front.empty() && !asked.entries)
      return write(weights, asked, all, part);
    // Nothing predicts the first token of an empty prompt: it has no answer. Without entries a
    // prompt is the first that is read.
    SampleRequest alone = asked;
    for (Example &example : all) {
      alone.prompts = {asked.entries ? example.prompt : std::vector<int64_t>()};
      if (!asked.entries)
        alone.context = example.prompt;
      if (!example.prompt.empty())
        if (llvm::Error error = write(weights, alone, example, part))
          return error;
    }
    return llvm::Error::success();
  };
  if (llvm::Error error = answer(model.weights, request.context, &Example::full))
    return std::move(error);
  auto prefix = OwnedFront::make(model, adapter);
  if (!prefix)
    return prefix.takeError();
  asked.pinned = prefix->get().pinned;
  asked.entries = prefix->get().entries;
  if (llvm::Error error = answer(adapted, adapter.prefix, &Example::adapted))
    return std::move(error);
  asked.pinned = nullptr;
  asked.entries = nullptr;
  if (llvm::Error error = answer(model.weights, request.front, &Example::plain))
    return std::move(error);
  return all;
}
