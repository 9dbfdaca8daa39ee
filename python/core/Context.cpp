#include "Core.h"
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

namespace nb = nanobind;
using namespace ctxc;
using namespace ctxc::python;

namespace {

/// A context, and the model that must outlive it.
struct BoundContext {
  std::shared_ptr<BoundModel> model;
  Context context;

  std::vector<int64_t> tokens() const { return tokensOf(context.tokens()); }
  std::vector<int64_t> kept() const { return context.keptPositions().vec(); }
};

/// What one call of patch gives.
struct BoundStep {
  std::shared_ptr<BoundPatch> patch;
  std::shared_ptr<PatchStep> step;
  StreamSizes sizes;
};

/// An array that shows `logits`, which `owner` keeps alive.
nb::object show(const Logits &logits, nb::handle owner) {
  size_t size = logits.size();
  if (logits.isFloat32())
    return nb::cast(nb::ndarray<nb::numpy, const float>(logits.floats().data(), {size}, owner));
  return nb::cast(nb::ndarray<nb::numpy, const double>(logits.float64s().data(), {size}, owner));
}

nb::object owned(Logits logits) {
  auto *kept = new Logits(std::move(logits));
  nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<Logits *>(p); });
  return show(*kept, owner);
}

std::shared_ptr<BoundContext> makeContext(std::shared_ptr<BoundModel> model,
                                          const std::vector<int64_t> &tokens,
                                          const std::vector<int64_t> &kept) {
  Context context = model->take(unlocked([&] { return model->get().context(tokens, kept); }));
  return std::make_shared<BoundContext>(BoundContext{std::move(model), std::move(context)});
}

BoundStep patchOf(BoundContext &self) {
  BoundModel &model = *self.model;
  StreamSizes sizes;
  auto step =
      std::make_shared<PatchStep>(model.take(unlocked([&] { return self.context.patch(&sizes); })));
  RunRequest request;
  request.tokens = self.context.tokens().vec();
  request.kept = self.kept();
  BoundPatch patch;
  if (model.get().checkpoint())
    patch.metadata = model.take(model.get().metadata(request, int64_t(request.tokens.size()) - 1));
  patch.adapter = model.adapter();
  patch.patch = std::shared_ptr<const Patch>(step, &step->patch);
  return {std::make_shared<BoundPatch>(std::move(patch)), std::move(step), std::move(sizes)};
}

/// (positions, why, layer, times) that a reduced run keeps by default, and the sink that the last
/// token is where nothing is kept. `every` and `conversations` are what texts
/// and conversations begin with (TextFront); `measure` gives the lengths of layers' outputs for
/// tokens (MeasureLengths), where it is not None.
std::tuple<std::vector<int64_t>, std::string, int64_t, double>
keptByDefault(BoundModel &model, const std::vector<int64_t> &tokens,
              const std::vector<int64_t> &every, const std::vector<int64_t> &conversations,
              const nb::object &measure) {
  using Lengths = std::vector<std::vector<double>>;
  auto inputs = python::toInputs(tokens);
  auto byPython = [&](llvm::ArrayRef<int64_t> ids) -> llvm::Expected<Lengths> {
    nb::gil_scoped_acquire acquire;
    try {
      return nb::cast<Lengths>(measure(ids.vec()));
    } catch (nb::python_error &error) {
      model.interruptWith(error);
      return llvm::make_error<Cancelled>();
    }
  };
  KeptTokens kept = model.take(unlocked([&] {
    return model.get().keptByDefault(inputs, {every, conversations},
                                     measure.is_none() ? MeasureLengths() : byPython);
  }));
  Sink sink = kept.sink.value_or(Sink());
  return {kept.positions, kept.why, sink.layer, sink.times};
}

} // namespace

void python::addKept(nb::class_<BoundModel> &model) {
  model.def("kept_by_default", &keptByDefault, nb::arg("tokens"), nb::arg("every"),
            nb::arg("conversations"), nb::arg("measure").none());
}

void python::addContext(nb::module_ &m) {
  nb::class_<BoundStep>(m, "PatchStep")
      .def_ro("patch", &BoundStep::patch)
      .def_prop_ro(
          "full_logits",
          [](nb::handle self) { return show(nb::cast<BoundStep &>(self).step->fullLogits, self); })
      .def_prop_ro("full_next", [](BoundStep &self) { return self.step->fullNext; })
      .def_prop_ro("reduced_next", [](BoundStep &self) { return self.step->reducedNext; })
      .def_prop_ro("replay_error", [](BoundStep &self) { return self.step->replayError; })
      .def("replay_in",
           [](BoundStep &self, const std::string &type, int64_t layer, double times) {
             auto sink = times > 0 ? std::optional<Sink>({layer, times}) : std::nullopt;
             ReplayError found = replayErrorIn(type, *self.step, self.sizes, sink);
             return std::pair(found.relative, replayWarning(type, found));
           })
      .def_prop_ro("harmful", [](BoundStep &self) {
        int64_t sum = 0;
        for (const LayerObligations &layer : self.step->obligations)
          sum += layer.harmful;
        return sum;
      });

  nb::class_<BoundContext>(m, "Context")
      .def_static("make", &makeContext)
      .def_prop_ro("tokens", &BoundContext::tokens)
      .def_prop_ro("kept", &BoundContext::kept)
      .def("extend",
           [](BoundContext &self, const std::vector<int64_t> &more) {
             std::vector<Input> inputs = python::toInputs(more);
             self.model->check(unlocked([&] { return self.context.extend(inputs); }));
           })
      .def("fork",
           [](BoundContext &self) {
             return std::make_shared<BoundContext>(BoundContext{
                 self.model, self.model->take(unlocked([&] { return self.context.fork(); }))});
           })
      .def("patch", &patchOf)
      .def("logits",
           [](BoundContext &self) {
             return owned(self.model->take(unlocked([&] { return self.context.logits(); })));
           })
      .def("patched_logits", [](BoundContext &self, const BoundPatch &patch) {
        return owned(self.model->take(unlocked([&] { return self.context.logits(*patch.patch); })));
      });
}
