#include "Layers.h"
#include "JoinLayers.h"
#include "Raise.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;
using namespace ctxc;
using namespace ctxc::pt2;

/// More layers than any model has.
static constexpr size_t mostLayers = 4096;

/// "model.layers.0" of "model.layers.0.mlp.experts.3"; empty where no part is a number.
static StringRef outermostElement(StringRef path) {
  for (size_t end = 0; end < path.size();) {
    size_t begin = end;
    end = std::min(path.find('.', begin), path.size());
    StringRef part = path.slice(begin, end);
    if (begin && !part.empty() && llvm::all_of(part, llvm::isDigit))
      return path.take_front(end);
    ++end;
  }
  return "";
}

llvm::Expected<std::vector<Layer>> ctxc::pt2::findLayers(graph::ProgramOp program,
                                                         const TokenAxes &axes) {
  std::vector<Layer> layers;
  llvm::StringMap<size_t> byPath;
  llvm::StringSet<> mixing; // lists of which an element joins tokens
  for (auto call : program.getBody().getOps<graph::CallOp>()) {
    StringRef element = outermostElement(call.getPath());
    if (element.empty() ||
        llvm::none_of(call.getResults(), [&](Value v) { return axes.isData(v); }))
      continue;
    auto [known, isNew] = byPath.try_emplace(element, layers.size());
    if (isNew)
      layers.push_back({element.str()});
    layers[known->second].calls.push_back(call);
    if (axes.mixing(call) != Mixing::None)
      mixing.insert(element.rsplit('.').first);
  }
  joinLists(layers, mixing, program, axes);
  if (layers.size() > mostLayers)
    return makeError("found " + Twine(layers.size()) + " layers; expected at most " +
                     Twine(mostLayers));
  if (llvm::Error error = takeSums(layers, program, axes))
    return std::move(error);
  return layers;
}

llvm::Error ctxc::pt2::keepLive(std::vector<Layer> &layers, const llvm::DenseSet<Operation *> &live,
                                graph::ProgramOp program) {
  llvm::erase_if(layers, [&](const Layer &layer) {
    return llvm::none_of(layer.calls, [&](graph::CallOp call) { return live.contains(call); });
  });
  if (!layers.empty())
    return llvm::Error::success();
  size_t results = program.getBody().front().getTerminator()->getNumOperands();
  std::string which = results > 1 ? "first of " + std::to_string(results) + " results" : "result";
  return makeError("the program's " + which +
                   " is made without its layers; expected the logits, which are made of what the "
                   "last layer gives" +
                   (results > 1 ? ", in front of the other results" : ""));
}

StringRef ctxc::pt2::nameOfList(StringRef path) {
  StringRef list = path.rsplit('.').first;
  return list.contains('.') ? list.rsplit('.').second : list;
}

bool ctxc::pt2::isOfOneToken(Value value, const TokenAxes &axes) {
  llvm::Expected<RankedTensorType> type = tokenType(value, axes);
  bool isSized = bool(type);
  llvm::consumeError(type.takeError());
  return isSized && axes.axis(value);
}

bool ctxc::pt2::isOfParameter(Value value, const TokenAxes &axes) {
  Operation *op = value.getDefiningOp();
  if (auto stored = dyn_cast<graph::StoredOp>(op))
    return !stored.getFixed();
  return !axes.isData(value) && llvm::any_of(op->getOperands(), [&](Value operand) {
    return isOfParameter(operand, axes);
  });
}

void ctxc::pt2::borrowCalls(std::vector<Layer> &layers, const TokenAxes &axes) {
  for (Layer &layer : layers) {
    llvm::DenseSet<Operation *> own(llvm::from_range, layer.calls), borrowed;
    SmallVector<graph::CallOp> work(layer.calls.begin(), layer.calls.end());
    bool mayBorrow = true;
    while (!work.empty() && mayBorrow)
      for (Value operand : work.pop_back_val().getOperands()) {
        auto from = operand.getDefiningOp<graph::CallOp>();
        if (!from || !axes.isData(operand) || own.contains(from) || isOfOneToken(operand, axes) ||
            !borrowed.insert(from).second)
          continue;
        mayBorrow &= llvm::none_of(from->getOperands(),
                                   [&](Value each) { return isOfParameter(each, axes); });
        work.push_back(from);
      }
    if (!mayBorrow || borrowed.empty())
      continue;
    for (Operation *op : borrowed)
      layer.calls.push_back(cast<graph::CallOp>(op));
    llvm::sort(layer.calls,
               [](graph::CallOp a, graph::CallOp b) { return a != b && a->isBeforeInBlock(b); });
    layer.borrowed = std::move(borrowed);
  }
}
