#include "ctxc/Planning/ModelCheck.h"
#include "ctxc/Analysis/ModelFlow.h"
#include "dialects/XF/BlockFacts.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace mlir;
using namespace ctxc;

namespace {
/// Where a model reads its stored tensors.
struct StoredUses {
  llvm::StringMap<unsigned> all; ///< once a layer, and twice by the model's ends
  std::map<std::pair<std::string, std::string>, unsigned> alike; ///< by layers, under one name

  unsigned runsOf(const std::string &tensor, xf::ParamOp param) const {
    auto own = alike.find({tensor, param.getName().str()});
    return own != alike.end() && own->second == all.lookup(tensor) ? own->second : 1;
  }
};

StoredUses countStoredNames(xf::ModelOp model, SymbolTableCollection &symbols) {
  StoredUses uses;
  for (Operation &op : model.getBody().front()) {
    if (auto param = dyn_cast<xf::ParamOp>(op))
      for (const std::string &tensor : xf::storedTensors(param, {}))
        uses.all[tensor] += 2; // embedding and head belong to no site set
    auto layer = dyn_cast<xf::LayerOp>(op);
    if (!layer)
      continue;
    llvm::StringSet<> own;
    auto block = symbols.lookupNearestSymbolFrom<xf::BlockOp>(layer, layer.getBlockAttr());
    block.walk([&](xf::ParamOp p) {
      for (const std::string &tensor : xf::storedTensors(p, layer))
        if (own.insert(tensor).second)
          ++uses.alike[{tensor, p.getName().str()}];
    });
    for (auto &name : own)
      ++uses.all[name.first()];
  }
  return uses;
}

Bindings bindingsOf(xf::LayerOp layer, xf::BlockOp block, const StoredUses &uses,
                    const ModelOptions &options) {
  Bindings bindings;
  for (const std::string &name : options.frozen)
    bindings.frozen.insert(name);
  if (ArrayAttr frozen = layer ? layer.getFrozenAttr() : ArrayAttr())
    for (Attribute name : frozen)
      bindings.frozen.insert(cast<StringAttr>(name).getValue());
  if (layer)
    block.walk([&](xf::ParamOp p) {
      auto tensors = xf::storedTensors(p, layer);
      if (llvm::none_of(tensors,
                        [&](const std::string &tensor) { return uses.all.lookup(tensor) > 1; }))
        return;
      bindings.shared.insert(p.getName());
      if (tensors.size() == 1)
        if (unsigned runs = uses.runsOf(tensors.front(), p); runs > 1)
          bindings.runs[p.getName()] = runs;
    });
  return bindings;
}

/// The matrix that is all that `plan` patches; null if it patches something else.
Operation *soleMatrixOf(const BlockPlan &plan) {
  llvm::SmallVector<Operation *> patched = plan.patchedOps();
  if (patched.size() != 1)
    return nullptr;
  auto matrix = cast<xf::AssignableOpInterface>(patched.front());
  auto type = cast<RankedTensorType>(matrix.getParameterOperand().get().getType());
  return matrix.getChangeForm() == xf::ChangeForm::Rank1 && type.getRank() == 2 ? patched.front()
                                                                                : nullptr;
}

int64_t inputsOf(Operation *matrix) {
  Value data = cast<xf::AssignableOpInterface>(matrix).getDataOperand().get();
  return cast<RankedTensorType>(data.getType()).getNumElements();
}

/// The verdict on a layer that runs several times with the same parameters, none of which is its
/// own. The runs are to one matrix what several tokens are (docs/joint.md): one change of it serves
/// as many as it reads numbers, if what it reads in them is independent.
Verdict planRuns(xf::BlockOp block, PlanOptions &options) {
  PlanOptions plan = options;
  for (auto &own : plan.bindings.runs)
    plan.bindings.shared.erase(own.first());
  Verdict ofOne = planBlock(block, plan);
  if (!ofOne.isSuccess() || ofOne.plan.isEmpty())
    return ofOne;
  plan.scope = SiteScope::All;
  std::string known;
  unsigned most = 0;
  std::vector<PlanCandidate> candidates = enumeratePlans(block, plan);
  // Plans that keep the MLP's internals first.
  std::vector<const PlanCandidate *> order;
  for (bool outputOnly : {false, true})
    for (const PlanCandidate &candidate : candidates)
      if (candidate.outputOnly == outputOnly)
        order.push_back(&candidate);
  for (const PlanCandidate *candidate : order) {
    Operation *matrix = soleMatrixOf(candidate->plan);
    if (!matrix)
      continue;
    const std::string name = Sites::name(matrix);
    const unsigned runs = plan.bindings.runs.lookup(name);
    if (!runs) // this layer's own
      continue;
    most = std::max(most, runs);
    if (inputsOf(matrix) < runs) {
      known += (known.empty() ? ": " : ", and ") + name + " reads " +
               std::to_string(inputsOf(matrix)) + " numbers";
      continue;
    }
    PlanOptions alone = plan;
    alone.parameters = {name};
    Verdict verdict = planBlock(block, alone);
    if (!verdict.isSuccess())
      continue;
    const std::string times = std::to_string(runs);
    verdict.remark += (verdict.remark.empty() ? "" : "; ") + ("the layer runs " + times) +
                      " times with the same parameters: one change of " + name + " of rank " +
                      times +
                      " serves a token in all runs, if what the matrix reads in them is "
                      "independent, and a patch for a whole text makes it";
    verdict.plan.runs = runs;
    options = std::move(alone);
    return verdict;
  }
  Verdict verdict;
  for (auto &own : plan.bindings.runs)
    most = std::max(most, own.second);
  Finding cause{block,
                "the layer runs " + std::to_string(most) +
                    " times with the same parameters, and no change of one matrix is known to "
                    "serve all runs" +
                    known,
                rules::JointCapacity};
  cause.notes.push_back({block, "one run by itself is " + stringify(ofOne.kind).str()});
  cause.advice = "fewer runs, a parameter that is each run's own, or a trainable matrix through "
                 "whose product the whole effect of the context passes";
  verdict.causes.push_back(std::move(cause));
  return verdict;
}

/// The plan by the layer's own parameters, if there is one; otherwise by those of all its runs.
Verdict planLayer(xf::BlockOp block, PlanOptions &options) {
  if (options.bindings.runs.empty())
    return planBlock(block, options);
  PlanOptions own = options;
  own.refute = nullptr;
  own.bindings.runs.clear();
  Verdict verdict = planBlock(block, own);
  if (!verdict.isSuccess())
    return planRuns(block, options);
  options = std::move(own);
  return verdict;
}

/// What settings and bindings make of a block: its facts, and its numbers.
struct Signature {
  std::string facts, settings;
};

/// What a verdict depends on, but for the numbers of settings; the last is the block's facts.
using VerdictKey = std::tuple<Operation *, InputSources, std::vector<std::string>,
                              std::vector<std::string>, std::string>;

/// The signature of a block in a layer, found once for all layers of like settings and bindings.
class Signatures {
public:
  const Signature &of(xf::BlockOp block, xf::LayerOp layer) {
    Attribute settings = layer ? Attribute(layer.getSettingsAttr()) : Attribute();
    Attribute bind = layer ? Attribute(layer.getBindAttr()) : Attribute();
    // What is bound elsewhere may meet what is stored under the prefix.
    Attribute prefix = bind ? Attribute(layer.getPrefixAttr()) : Attribute();
    auto [known, isNew] =
        found.try_emplace({block, settings.getAsOpaquePointer(), bind.getAsOpaquePointer(),
                           prefix.getAsOpaquePointer()});
    if (isNew)
      known->second = {xf::BlockFacts(block, layer).signature(), xf::settingValues(block, layer)};
    return known->second;
  }

private:
  std::map<std::tuple<Operation *, const void *, const void *, const void *>, Signature> found;
};

VerdictKey keyOf(xf::BlockOp block, const PlanOptions &options, const std::string &signature) {
  auto sorted = [](const llvm::StringSet<> &set) {
    std::vector<std::string> names;
    for (auto &name : set)
      names.push_back(name.first().str());
    llvm::sort(names);
    return names;
  };
  std::vector<std::string> shared = sorted(options.bindings.shared);
  for (auto &own : options.bindings.runs)
    shared.push_back(own.first().str() + " in " + std::to_string(own.second) + " runs");
  llvm::sort(shared);
  return {block, options.inputsAreSources, sorted(options.bindings.frozen), shared, signature};
}

/// Whether the two say the same of one block.
class SameVerdict {
public:
  bool operator()(const Verdict &a, const Verdict &b) const {
    return a.kind == b.kind && a.remark == b.remark && a.bound == b.bound && same(a.plan, b.plan) &&
           llvm::equal(a.causes, b.causes, [&](auto &x, auto &y) { return same(x, y); });
  }

private:
  static bool same(const Finding &a, const Finding &b) {
    return a.op == b.op && a.message == b.message && a.rule == b.rule && a.advice == b.advice &&
           llvm::equal(a.notes, b.notes, [](const Remark &x, const Remark &y) {
             return x.op == y.op && x.message == y.message;
           });
  }
  static bool same(const OutputPatch &a, const OutputPatch &b) {
    return a.site == b.site && a.goal == b.goal && a.normMatrix == b.normMatrix &&
           llvm::equal(a.links, b.links, [](const ChainLink &x, const ChainLink &y) {
             return x.op == y.op && x.operand == y.operand;
           });
  }
  static bool same(const BlockPlan &a, const BlockPlan &b) {
    return a.inputSites == b.inputSites && a.split == b.split && a.runs == b.runs &&
           llvm::equal(a.outputs, b.outputs, [](auto &x, auto &y) { return same(x, y); }) &&
           llvm::equal(
               a.obligations, b.obligations, [](const PlanObligation &x, const PlanObligation &y) {
                 return x.site == y.site && x.kind == y.kind && x.likelihood == y.likelihood &&
                        x.lemma == y.lemma && x.value == y.value;
               });
  }
};
} // namespace

std::vector<LayerVerdict> ctxc::checkModel(ModuleOp module, const ModelOptions &options) {
  std::vector<LayerVerdict> result;
  std::map<VerdictKey, std::map<std::string, LayerVerdict>> known; // by the settings' numbers
  Signatures signatures;
  SymbolTableCollection symbols;
  StoredUses uses;
  std::optional<ModelFlow> flow;
  auto decide = [&](unsigned number, xf::LayerOp layer, xf::BlockOp block) {
    PlanOptions plan;
    plan.update = options.update;
    plan.scope = options.scope;
    plan.split = options.split;
    plan.objective = options.objective;
    plan.parameters = options.parameters;
    plan.measure = options.measure;
    plan.layer = layer;
    plan.refute = options.refute;
    plan.confirm = options.confirm;
    if (flow)
      plan.inputsAreSources = flow->sources(layer);
    plan.bindings = bindingsOf(layer, block, uses, options);
    const Signature &signature = signatures.of(block, layer);
    auto &alike = known[keyOf(block, plan, signature.facts)];
    LayerVerdict &verdict = alike[signature.settings];
    if (!verdict.verdict) {
      auto own = std::make_shared<Verdict>(planLayer(block, plan));
      for (auto &[settings, other] : alike)
        if (other.verdict && SameVerdict()(*other.verdict, *own))
          verdict.verdict = other.verdict;
      if (!verdict.verdict)
        verdict.verdict = std::move(own);
      verdict.options = std::make_shared<PlanOptions>(plan);
    }
    result.push_back({number, layer, block, verdict.verdict, verdict.options});
  };

  auto models = module.getOps<xf::ModelOp>();
  if (models.empty()) {
    for (auto [i, block] : llvm::enumerate(module.getOps<xf::BlockOp>()))
      decide(i, {}, block);
    return result;
  }
  xf::ModelOp model = *models.begin();
  uses = countStoredNames(model, symbols);
  flow.emplace(model, options.startLayer);
  for (auto [i, layer] : llvm::enumerate(model.getBody().getOps<xf::LayerOp>()))
    if (i >= options.startLayer)
      decide(i, layer, symbols.lookupNearestSymbolFrom<xf::BlockOp>(layer, layer.getBlockAttr()));
  return result;
}

std::vector<VerdictGroup> ctxc::groupVerdicts(ArrayRef<LayerVerdict> verdicts) {
  std::vector<VerdictGroup> groups;
  for (const LayerVerdict &v : verdicts) {
    auto it = llvm::find_if(groups, [&](const VerdictGroup &g) { return g.verdict == v.verdict; });
    if (it == groups.end())
      it = groups.insert(groups.end(), {v.block, v.verdict, v.options, {}, {}, {}});
    it->layers.push_back(v.layer);
    if (v.op)
      it->ops.push_back(v.op);
    auto own =
        llvm::find_if(it->cases, [&](const VerdictCase &c) { return c.options == v.options; });
    if (own == it->cases.end())
      own = it->cases.insert(it->cases.end(), VerdictCase{v.options, {}});
    own->layers.push_back(v.layer);
  }
  return groups;
}

std::vector<PlanCandidate> ctxc::enumeratePlans(const VerdictGroup &group) {
  std::vector<PlanCandidate> plans = enumeratePlans(group.block, *group.options);
  if (group.verdict->plan.runs > 1)
    llvm::erase_if(plans,
                   [](const PlanCandidate &candidate) { return !soleMatrixOf(candidate.plan); });
  for (const VerdictCase &other : ArrayRef(group.cases).drop_front())
    if (const Confirmation &confirm = other.options->confirm)
      llvm::erase_if(plans, [&](const PlanCandidate &candidate) {
        return !confirm(group.block, *other.options, candidate).empty();
      });
  return plans;
}

std::string ctxc::formatRanges(ArrayRef<unsigned> ascending) {
  std::string text;
  for (size_t i = 0, end; i < ascending.size(); i = end) {
    for (end = i + 1; end < ascending.size() && ascending[end] == ascending[end - 1] + 1;)
      ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(ascending[i]);
    if (end - i > 1)
      text += "-" + std::to_string(ascending[end - 1]);
  }
  return text;
}

/// The place of `op`, or of `root` where that is null: its own, or that of an op around it; where
/// none has a place, the name of `root`, which is a block or a model.
static Location placeOf(Operation *op, Operation *root) {
  for (op = op ? op : root; op; op = op->getParentOp()) {
    bool known = false;
    op->getLoc()->walk([&](Location loc) {
      known = isa<FileLineColLoc, NameLoc>(loc);
      return known ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (known)
      return op->getLoc();
  }
  StringRef kind = isa<xf::ModelOp>(root) ? "model '" : "block '";
  StringRef name = SymbolTable::getSymbolName(root).getValue();
  return NameLoc::get(StringAttr::get(root->getContext(), kind + name + "'"));
}

/// Emits a finding on the block or model `root`; `layers` says which layers it concerns, at the
/// first of them, and is empty where that is said already.
static void emitFinding(Operation *root, const Finding &finding, DiagnosticSeverity severity,
                        Operation *layer, const Twine &layers) {
  auto where = [&](Operation *op) { return placeOf(op, root); };
  InFlightDiagnostic diag = root->getContext()->getDiagEngine().emit(where(finding.op), severity);
  diag << finding.message << " [" << finding.rule << "]";
  for (const Remark &note : finding.notes)
    diag.attachNote(where(note.op)) << note.message;
  if (layer)
    diag.attachNote(where(layer)) << layers;
  if (!finding.advice.empty())
    diag.attachNote(where(finding.op)) << "way out: " << finding.advice;
}

void ctxc::emitFinding(const VerdictGroup &group, const Finding &finding,
                       DiagnosticSeverity severity) {
  xf::BlockOp block = group.block;
  bool isOne = group.layers.size() == 1;
  ::emitFinding(block, finding, severity, group.ops.empty() ? nullptr : group.ops.front(),
                (isOne ? "in layer " : "in layers ") + formatRanges(group.layers) +
                    (isOne ? ", which runs" : ", which run") + " block '" + block.getSymName() +
                    "'");
}

void ctxc::emitFinding(xf::ModelOp model, const Finding &finding, DiagnosticSeverity severity) {
  ::emitFinding(model, finding, severity, nullptr, "");
}

LogicalResult ctxc::emitVerdict(const VerdictGroup &group) {
  for (const Finding &cause : group.verdict->causes)
    emitFinding(group, cause, DiagnosticSeverity::Error);
  return success(group.verdict->isSuccess());
}
