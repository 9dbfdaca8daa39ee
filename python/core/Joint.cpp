#include "ctxc/Distil/Joint.h"
#include "Core.h"
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

namespace nb = nanobind;
using namespace ctxc;
using namespace ctxc::python;

namespace {

/// A patch that grows with a text, and the model that must outlive it.
struct BoundJointRun {
  std::shared_ptr<BoundModel> model;
  JointRun run;
};

std::shared_ptr<BoundJointRun> makeRun(std::shared_ptr<BoundModel> model,
                                       const std::vector<int64_t> &context,
                                       const std::vector<int64_t> &prefix,
                                       const std::vector<int64_t> &text, int64_t most) {
  JointRequest request;
  request.context = context;
  request.prefix = prefix;
  request.texts = {{text, 0}};
  JointRun run = model->take(
      unlocked([&] { return model->get().jointRun(request, most, /*comparesControl=*/false); }));
  return std::make_shared<BoundJointRun>(BoundJointRun{std::move(model), std::move(run)});
}

/// Of a matrix: its name, left (rows, rank) and right (rank, columns).
using Change = std::tuple<std::string, nb::object, nb::object>;

nb::object owned(std::vector<float> numbers, int64_t rows, int64_t columns) {
  auto *kept = new std::vector<float>(std::move(numbers));
  nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<float> *>(p); });
  return nb::cast(
      nb::ndarray<nb::numpy, const float>(kept->data(), {size_t(rows), size_t(columns)}, owner));
}

/// The full run's next token, and what the patch has grown by.
std::pair<int64_t, std::vector<Change>> readTokens(BoundJointRun &self,
                                                   const std::vector<int64_t> &tokens) {
  VerifyStep step = self.model->take(unlocked([&] { return self.run.read(tokens); }));
  std::vector<Change> changes;
  for (MatrixChange &change : self.run.added())
    changes.emplace_back(change.parameter, owned(std::move(change.left), change.rows, change.rank),
                         owned(std::move(change.right), change.rank, change.columns));
  return {step.next, std::move(changes)};
}

} // namespace

void python::addJoint(nb::module_ &m) {
  nb::class_<BoundJointRun>(m, "JointRun")
      .def_static("make", &makeRun, nb::arg("model"), nb::arg("context"), nb::arg("prefix"),
                  nb::arg("text"), nb::arg("most"))
      .def("read", &readTokens, nb::arg("tokens"));
}
