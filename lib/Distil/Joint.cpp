#include "ctxc/Distil/Joint.h"
#include "JointRuns.h"
#include "Room.h"
#include "ctxc/Analysis/Sites.h"
#include "ctxc/Support/Error.h"
#include "dialects/XF/BlockFacts.h"
#include <map>
#include <numeric>

using namespace mlir;
using namespace ctxc;

/// Whether a value of a block depends on other tokens.
static bool readsOtherTokens(Value value) {
  llvm::SmallVector<Value> open = {value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (isa_and_nonnull<xf::ContextualOpInterface>(op))
      return true;
    if (op && seen.insert(op).second)
      llvm::append_range(open, op->getOperands());
  }
  return false;
}

std::vector<JointMatrix> ctxc::findJointMatrices(const LayerVerdict &layer) {
  auto sites = findFitSites(layer);
  if (sites.empty() || !sites.front().toSum.empty())
    return {};
  auto dataOf = [](const FitSite &site) {
    return cast<xf::AssignableOpInterface>(site.first()).getDataOperand().get();
  };
  std::vector<JointMatrix> matrices;
  auto add = [&](const FitSite &site) {
    auto read = cast<RankedTensorType>(dataOf(site).getType());
    const std::string name = Sites::name(site.first());
    const int64_t runs = std::max(1u, layer.options->bindings.runs.lookup(name));
    if (const int64_t tokens = read.getNumElements() / runs; tokens > 0)
      matrices.push_back({name, tokens});
  };
  add(sites.front());
  if (const FitSite &last = sites.back();
      sites.size() > 1 && last.toSum.empty() && !last.normMatrix && readsOtherTokens(dataOf(last)))
    add(last);
  return matrices;
}

int64_t ctxc::jointCapacity(const SplitModel &model) {
  int64_t least = 0;
  for (const auto &candidates : jointSites(model.split)) {
    int64_t own = capacityOf(model.split, model.split.sites[widestOf(model.split, candidates)]);
    least = least ? std::min(least, own) : own;
  }
  return least;
}

/// Fails where a matrix that runs again is also read where it is no site: a change of it would
/// change that run as well.
static llvm::Error checkRuns(const SplitProgram &split) {
  std::map<std::string, int64_t> uses;
  for (ProgramStep step : split.program.steps)
    step.block.walk([&](xf::ParamOp param) {
      for (const std::string &tensor : xf::storedTensors(param, step.layer))
        ++uses[tensor];
    });
  for (const auto &candidates : jointSites(split))
    for (size_t number : candidates) {
      const SplitSite &site = split.sites[number];
      if (const int64_t runs = runsOf(split, site); runs > 1 && uses[site.matrix] != runs)
        return makeError(site.matrix + ": is read in " + llvm::Twine(uses[site.matrix]) +
                         " runs of its layers, and takes the context in " + llvm::Twine(runs) +
                         " of them; expected all");
    }
  return llvm::Error::success();
}

static int64_t rowsOf(const JointRequest &request) {
  int64_t tokens = request.prefix.size();
  for (const TextSequence &text : request.texts)
    tokens += text.tokens.size();
  return tokens;
}

llvm::Error ctxc::checkJointRequest(const SplitModel &model, const JointRequest &request,
                                    int64_t more) {
  if (request.context.empty())
    return makeError("the context is empty");
  if (request.texts.empty())
    return makeError("there is no text to be exact on");
  const auto layers = jointSites(model.split);
  if (layers.empty())
    return makeError("no matrix of this model can take a context: none is on the way of all that "
                     "the context changes; ctxc check says more");
  if (llvm::Error error = checkRuns(model.split))
    return error;
  const int64_t tokens = rowsOf(request) + more;
  for (const auto &candidates : layers) {
    if (const SplitSite &first = model.split.sites[candidates.front()]; first.experts)
      return makeError(first.matrix + ": one patch for several tokens cannot change a mixture's "
                                      "experts; patch one token at a time");
    const SplitSite &site = model.split.sites[widestOf(model.split, candidates)];
    const int64_t most = capacityOf(model.split, site), runs = runsOf(model.split, site);
    if (tokens > most && !request.goesOn)
      return makeError(
          site.matrix + " reads " + llvm::Twine(inputsOf(site)) +
          " numbers, so that one patch is exact for at most " +
          (runs > 1
               ? std::to_string(most) + " tokens in " + std::to_string(runs) + " runs of its layer"
               : "as many tokens") +
          "; found " + llvm::Twine(tokens) + " (" + llvm::Twine(request.prefix.size()) +
          " of them in front); expected a shorter text, or ctxc distil, which is "
          "approximate and has no limit");
  }
  return llvm::Error::success();
}

static std::vector<int64_t> positionsFrom(int64_t from, size_t count) {
  std::vector<int64_t> positions(count);
  std::iota(positions.begin(), positions.end(), from);
  return positions;
}

/// `front` at `positions`, unless it is empty, and each of the texts from position `from` on.
static std::vector<PassageSequence> sequencesOf(llvm::ArrayRef<int64_t> front,
                                                std::vector<int64_t> positions, int64_t from,
                                                llvm::ArrayRef<TextSequence> texts) {
  std::vector<PassageSequence> sequences;
  if (!front.empty())
    sequences.push_back({front.vec(), std::move(positions)});
  const std::optional<size_t> after =
      front.empty() ? std::nullopt : std::optional<size_t>(sequences.size() - 1);
  for (const TextSequence &text : texts)
    sequences.push_back({text.tokens, positionsFrom(from, text.tokens.size()), after});
  return sequences;
}

std::vector<PassageSequence> ctxc::behindContext(const JointRequest &request) {
  const size_t count = request.context.size();
  return sequencesOf(request.context, positionsFrom(0, count), count, request.texts);
}

std::vector<PassageSequence> ctxc::behindPrefix(const JointRequest &request) {
  const size_t count = request.prefix.size();
  return sequencesOf(request.prefix, request.kept.value_or(positionsFrom(0, count)),
                     request.kept ? request.context.size() : count, request.texts);
}

std::vector<std::string> ctxc::rowNames(const JointRequest &request) {
  auto named = [&](int64_t token) {
    return request.nameOf ? request.nameOf(token) : "the token " + std::to_string(token);
  };
  std::vector<std::string> names;
  for (int64_t token : request.prefix)
    names.push_back(named(token) + " in front");
  for (auto [text, sequence] : llvm::enumerate(request.texts))
    for (auto [place, token] : llvm::enumerate(sequence.tokens))
      names.push_back(named(token) + " at place " + std::to_string(place) +
                      (request.texts.size() == 1 ? "" : " of text " + std::to_string(text + 1)));
  return names;
}

llvm::Expected<JointPatch> ctxc::patchJointly(SplitModel model, const JointRequest &request) {
  if (llvm::Error error = checkJointRequest(model, request))
    return std::move(error);
  std::vector<PassageSequence> first = behindContext(request), second = behindPrefix(request);
  DistilRequest room;
  room.context = request.context;
  room.texts = request.texts;
  if (llvm::Error error = checkRoomToFit(model, room, first, second))
    return std::move(error);
  const size_t texts = request.texts.size(), taught = first.size() - texts,
               learned = second.size() - texts;
  auto full = Passage::start(model.steps, model.weights, std::move(first));
  if (!full)
    return full.takeError();
  auto reduced = Passage::start(model.steps, model.weights, std::move(second));
  if (!reduced)
    return reduced.takeError();
  JointPatcher patcher(model, rowsOf(request), /*chooses=*/true);
  const int64_t from = reduced->firstRow(learned);
  if (llvm::Error error = patcher.read(
          {*full, *reduced, full->firstRow(taught), /*begin=*/0, from, rowNames(request)},
          request.fitted))
    return std::move(error);
  if (patcher.served() < reduced->rows())
    return makeError(patcher.whyNotServed());
  auto patch = patcher.patch(reduced->rows() - from);
  if (!patch)
    return patch;
  patch->adapter.prefix = request.prefix;
  for (double strength : request.ridges) {
    patch->ridged.push_back(patcher.ridged(strength, from));
    patch->ridged.back().prefix = request.prefix;
  }
  return patch;
}

llvm::Expected<JointCheck> ctxc::checkJointly(SplitModel model, const Adapter &adapter,
                                              const JointRequest &request) {
  auto changes = JointChanges::of(model.split, adapter);
  if (!changes)
    return changes.takeError();
  return compareRuns(model, *changes, request);
}
