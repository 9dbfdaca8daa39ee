#include "ExperimentModels.h"
#include "ctxc/Runtime/StepChecks.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using namespace ctxc::driver;
using ctxc::experiments::OpenedModel;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// What a compiler and a model's kernels take, at most, while they are made.
constexpr uint64_t KernelBytes = 300 << 20;

/// A session of its own, or the one that has the weights. Norms of parameters are read once for
/// all of them.
class SessionModel : public OpenedModel {
public:
  SessionModel(Session &session, PatchNorms &parameterNorms, std::unique_ptr<Session> own = nullptr)
      : session(session), parameterNorms(parameterNorms), own(std::move(own)) {}
  Executor &executor() override { return session.executor(); }
  PatchNorms &norms() override { return parameterNorms; }
  const Program &program() const override { return session.getProgram(); }
  Weights &weights() override { return session.getWeights(); }

private:
  Session &session;
  PatchNorms &parameterNorms;
  std::unique_ptr<Session> own;
};

} // namespace

uint64_t MemoryNeed::total() const {
  uint64_t sum = materialized + kernels;
  for (const Weights &each : weights)
    sum += each.bytes;
  return sum;
}

Expected<std::unique_ptr<ExperimentModels>> ExperimentModels::create(StringRef model,
                                                                     RunOptions options) {
  std::unique_ptr<ExperimentModels> models(new ExperimentModels());
  models->directory = model.str();
  models->options = options;
  bool isText = model.ends_with(".mlir");
  if (!isText) {
    auto checkpoint = Checkpoint::open(model);
    if (!checkpoint)
      return checkpoint.takeError();
    models->stored = driver::storedType(**checkpoint);
    auto hash = (*checkpoint)->hash();
    if (!hash)
      return hash.takeError();
    models->modelHash = *hash;
  } else if (options.weights.empty()) {
    return makeError(model + ": has no weights; give a checkpoint with --weights DIR, or "
                             "--weights random:SEED");
  } else {
    models->modelHash = options.weights;
  }
  auto planned = Session::plan(model, options, Session::Use::Patch);
  if (!planned)
    return planned.takeError();
  models->planned = std::move(*planned);
  if (models->planned->getProgram().steps.empty())
    return makeError(model + ": has blocks and no xf.model; expected a model, to run it");
  models->name = models->planned->tokenName();
  models->options.quiet = true;
  return models;
}

Expected<std::unique_ptr<OpenedModel>> ExperimentModels::open(const experiments::Setting &setting) {
  RunOptions with = options;
  with.dtype = setting.dtype;
  with.update = setting.update;
  with.backend = setting.backend;
  with.scope = setting.sites == "all" ? SiteScope::All : SiteScope::MLP;
  llvm::SmallVector<StringRef> names;
  StringRef(setting.plan).split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  with.parameters.clear();
  for (StringRef each : names)
    with.parameters.push_back(each.trim().str());
  if (setting.threads)
    with.threads = setting.threads;
  std::unique_ptr<Session> &owner = owners[setting.dtype];
  auto session = Session::open(directory, std::move(with), owner.get());
  if (!session)
    return session.takeError();
  Session &opened = **session;
  if (owner)
    return std::make_unique<SessionModel>(opened, owner->norms(), std::move(*session));
  owner = std::move(*session);
  return std::make_unique<SessionModel>(opened, opened.norms());
}

bool ExperimentModels::isBidirectional() const {
  return ctxc::isBidirectional(planned->getProgram());
}

bool ExperimentModels::hasTokenizer() {
  return planned->checkpoint() && planned->checkpoint()->tokenizerPath();
}

Expected<std::vector<int64_t>> ExperimentModels::encode(StringRef text) {
  Expected<Tokenizer *> tokenizer = planned->tokenizer();
  if (!tokenizer)
    return tokenizer.takeError();
  return (*tokenizer)->encode(text, (*tokenizer)->addsSpecial());
}

MemoryNeed ExperimentModels::memoryNeed(llvm::ArrayRef<std::string> dtypes) const {
  MemoryNeed need;
  need.kernels = KernelBytes;
  const Checkpoint *checkpoint = planned->checkpoint();
  if (!checkpoint)
    return need;
  for (const std::string &dtype : dtypes) {
    bool asStored = dtype.empty() || dtype == stored;
    MemoryNeed::Weights weights{dtype.empty() ? "stored" : dtype, 0, asStored};
    for (const TensorView &tensor : checkpoint->tensors())
      weights.bytes += asStored ? tensor.bytes : bytesOf(storageNamed(dtype), tensor.elements());
    need.weights.push_back(weights);
  }
  llvm::StringSet<> patched = loadableNames(planned->getProgram());
  for (const TensorView &tensor : checkpoint->tensors())
    if (patched.contains(tensor.name))
      need.materialized += bytesOf(DType::BF16, tensor.elements());
  return need;
}
