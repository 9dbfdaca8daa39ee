#include "ctxc/Distil/Examples.h"
#include "ctxc/Distil/Sample.h"

using namespace ctxc;

llvm::Expected<std::vector<Example>> ctxc::examples(SplitModel model, const Adapter &adapter,
                                                    const EvaluateRequest &request, size_t count,
                                                    int64_t length, llvm::ArrayRef<int64_t> stops) {
  SampleRequest asked;
  for (const TextSequence &text : request.texts) {
    auto prompt = llvm::ArrayRef(text.tokens).take_front(text.prompt).vec();
    if (asked.prompts.size() < count && !llvm::is_contained(asked.prompts, prompt))
      asked.prompts.push_back(std::move(prompt));
  }
  asked.length = length;
  asked.stops = stops.vec();
  asked.temperature = 0;
  AdaptedWeights adapted(model.weights);
  if (llvm::Error error = adapted.add(adapter))
    return std::move(error);
  std::vector<Example> all(asked.prompts.size());
  auto answer = [&](Weights &weights, llvm::ArrayRef<int64_t> front,
                    std::vector<int64_t> Example::*part) -> llvm::Error {
    asked.context = front.vec();
    if (front.empty()) // nothing stands in front of a prompt, and an empty one cannot be answered
      return llvm::Error::success();
    auto written = sample({model.split, model.steps, model.targets, weights}, asked);
    if (!written)
      return written.takeError();
    for (auto [example, text] : llvm::zip(all, written->texts))
      example.*part = llvm::ArrayRef(text.tokens).drop_front(text.prompt).vec();
    return llvm::Error::success();
  };
  for (auto [example, prompt] : llvm::zip(all, asked.prompts))
    example.prompt = prompt;
  if (llvm::Error error = answer(model.weights, request.context, &Example::full))
    return std::move(error);
  if (llvm::Error error = answer(adapted, adapter.prefix, &Example::adapted))
    return std::move(error);
  if (llvm::Error error = answer(model.weights, request.front, &Example::plain))
    return std::move(error);
  return all;
}
