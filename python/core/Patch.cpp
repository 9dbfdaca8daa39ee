#include "Core.h"
#include "ctxc/Export/PatchSet.h"
#include "ctxc/Support/Error.h"
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace ctxc;
using namespace ctxc::python;

nb::object python::view(const std::vector<double> &numbers, const std::vector<int64_t> &shape,
                        nb::handle owner) {
  std::vector<size_t> sizes(shape.begin(), shape.end());
  return nb::cast(
      nb::ndarray<nb::numpy, const double>(numbers.data(), sizes.size(), sizes.data(), owner));
}

namespace {

/// (name, shape, u, v, delta) of each parameter; what it has not is None. Arrays show the patch's
/// own numbers.
nb::list parametersOf(nb::handle self) {
  nb::list all;
  for (const ParameterPatch &p : nb::cast<BoundPatch &>(self).patch->parameters) {
    nb::object none = nb::none();
    bool isRank1 = p.kind == ParameterPatch::Kind::Rank1;
    int64_t m = p.u.size(), n = p.v.size();
    all.append(nb::make_tuple(
        p.parameter, nb::tuple(nb::cast(p.shape)), isRank1 ? view(p.u, {m, 1}, self) : none,
        isRank1 ? view(p.v, {n, 1}, self) : none, isRank1 ? none : view(p.delta, p.shape, self)));
  }
  return all;
}

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

std::vector<double> copied(nb::handle array) {
  auto numbers = nb::cast<Numbers>(array);
  return {numbers.data(), numbers.data() + numbers.size()};
}

/// The inverse of parametersOf and metadataOf.
std::shared_ptr<BoundPatch> madeOf(const nb::list &parameters, const nb::dict &metadata) {
  Patch patch;
  for (nb::handle each : parameters) {
    auto fields = nb::cast<nb::tuple>(each);
    ParameterPatch p;
    p.parameter = nb::cast<std::string>(fields[0]);
    p.shape = nb::cast<std::vector<int64_t>>(fields[1]);
    if (fields[4].is_none()) {
      p.kind = ParameterPatch::Kind::Rank1;
      p.u = copied(fields[2]);
      p.v = copied(fields[3]);
    } else {
      p.kind = ParameterPatch::Kind::Delta;
      p.delta = copied(fields[4]);
    }
    patch.parameters.push_back(std::move(p));
  }
  if (llvm::Error error = checkPatch(patch))
    raiseError(std::move(error));
  PatchMetadata about;
  about.modelHash = nb::cast<std::string>(metadata["model_hash"]);
  about.tokens = nb::cast<std::vector<int64_t>>(metadata["tokens"]);
  about.position = nb::cast<int64_t>(metadata["position"]);
  about.kept = nb::cast<std::vector<int64_t>>(metadata["kept"]);
  about.update = nb::cast<std::string>(metadata["update"]);
  about.dtype = nb::cast<std::string>(metadata["dtype"]);
  about.embeddingsDigest = nb::cast<std::string>(metadata["embeddings_digest"]);
  return std::make_shared<BoundPatch>(
      BoundPatch{std::make_shared<const Patch>(std::move(patch)), std::move(about), nullptr});
}

nb::dict metadataOf(const BoundPatch &patch) {
  const PatchMetadata &about = patch.metadata;
  nb::dict result;
  result["model_hash"] = about.modelHash;
  result["tokens"] = about.tokens;
  result["position"] = about.position;
  result["kept"] = about.kept;
  result["update"] = about.update;
  result["dtype"] = about.dtype;
  result["embeddings_digest"] = about.embeddingsDigest;
  return result;
}

/// With a position, that patch of a file of several.
std::shared_ptr<BoundPatch> readFile(const std::string &path, std::optional<int64_t> position) {
  auto read = [&]() -> llvm::Expected<std::pair<Patch, PatchMetadata>> {
    if (!position)
      return readPatchFile(path);
    auto set = PatchSet::open(path);
    return set ? set->read(*position) : set.takeError();
  };
  auto file = read();
  if (!file)
    raiseError(file.takeError());
  return std::make_shared<BoundPatch>(BoundPatch{
      std::make_shared<const Patch>(std::move(file->first)), std::move(file->second), nullptr});
}

void writeFile(const BoundPatch &patch, const std::string &path) {
  if (llvm::Error error = writePatchFile(path, *patch.patch, patch.metadata))
    raiseError(std::move(error));
}

/// A patch that was read, or made of others, does not know its model, which `model` then is.
void writeAdapter(const BoundPatch &patch, const std::string &path, bool isPeft,
                  BoundModel *model) {
  std::shared_ptr<const AdapterModel> adapter = model ? model->adapter() : patch.adapter;
  if (!adapter)
    raiseError(makeError("an adapter says which model it is for: give the model (model=)"));
  auto write = isPeft ? writePeftAdapter : writeGgufLora;
  if (llvm::Error error = write(path, *patch.patch, patch.metadata, *adapter))
    raiseError(std::move(error));
}

} // namespace

void python::addPatch(nb::module_ &m) {
  nb::class_<BoundPatch>(m, "Patch")
      .def_static("make", &madeOf)
      .def_static("read", &readFile, nb::arg("path"), nb::arg("position").none())
      .def("write", &writeFile)
      .def("write_adapter", &writeAdapter, nb::arg("path"), nb::arg("is_peft"),
           nb::arg("model").none())
      .def_prop_ro("parameters", [](nb::handle self) { return parametersOf(self); })
      .def_prop_ro("metadata", &metadataOf);
}
