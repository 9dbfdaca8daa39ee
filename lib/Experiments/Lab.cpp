// How an experiment opens its model.
#include "ctxc/Experiments/Lab.h"

using namespace ctxc;
using namespace ctxc::experiments;
using llvm::Expected;

Expected<std::unique_ptr<ReadyModel>> ReadyModel::create(std::unique_ptr<Model> model) {
  std::unique_ptr<ReadyModel> ready(new ReadyModel());
  ready->model = std::move(model);
  Expected<Executor &> executor = ready->model->executor();
  if (!executor)
    return executor.takeError();
  Expected<PatchNorms &> norms = ready->model->norms();
  if (!norms)
    return norms.takeError();
  Expected<const Program &> program = ready->model->program();
  if (!program)
    return program.takeError();
  Expected<Weights &> weights = ready->model->weights();
  if (!weights)
    return weights.takeError();
  ready->computes = &*executor;
  ready->parameterNorms = &*norms;
  ready->runs = &*program;
  ready->numbers = &*weights;
  return ready;
}

Expected<std::unique_ptr<Model>> Lab::openModel(const Setting &setting) const {
  LoadOptions options = model.options();
  options.needWeights = true;
  options.storage.reset();
  if (!setting.dtype.empty())
    options.storage = setting.dtype == "bf16"  ? DType::BF16
                      : setting.dtype == "f16" ? DType::F16
                                               : DType::F32;
  options.planning.update = *patch::symbolizeUpdateKind(setting.update);
  options.engine = setting.backend == "reference" ? Engine::Reference : Engine::Compiled;
  options.planning.scope = setting.sites == "all" ? SiteScope::All : SiteScope::MLP;
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef(setting.plan).split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  options.planning.parameters.clear();
  for (llvm::StringRef name : names)
    options.planning.parameters.push_back(name.trim().str());
  if (setting.threads)
    options.threads = setting.threads;
  // The importer's warnings were reported when the lab's own model was loaded.
  options.diagnostics = [tell = options.diagnostics](const ModelDiagnostic &diagnostic) {
    if (tell && diagnostic.place.isKnown())
      tell(diagnostic);
  };
  return model.reopen(std::move(options));
}

Expected<std::unique_ptr<ReadyModel>> Lab::open(const Setting &setting) const {
  auto opened = openModel(setting);
  if (!opened)
    return opened.takeError();
  return ReadyModel::create(std::move(*opened));
}
