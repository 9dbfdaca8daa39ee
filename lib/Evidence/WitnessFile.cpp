// A witness on disk: JSON for the claims, safetensors for the numbers.
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Evidence/Witness.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/InputFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using llvm::StringRef;
using reference::Matrix;
namespace json = llvm::json;

static constexpr const char *format = "ctxc-witness";
static constexpr int64_t version = 1;
/// More text than any witness has, so that a wrong file is not read in full.
static constexpr uint64_t textLimit = 64 << 20;

/// a.json: a.safetensors; a: a.safetensors.
static std::string tensorsPath(StringRef path) {
  llvm::SmallString<128> name(path);
  if (llvm::sys::path::extension(path) == ".json")
    llvm::sys::path::replace_extension(name, "safetensors");
  else
    name += ".safetensors";
  return std::string(name);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static TensorSource source(std::string name, DType dtype, llvm::ArrayRef<int64_t> shape,
                           std::vector<uint8_t> bytes) {
  TensorSource tensor{std::move(name), dtype, {}, {}};
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.write = [bytes = std::move(bytes)](llvm::raw_ostream &os) {
    os.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return llvm::Error::success();
  };
  return tensor;
}

static std::vector<uint8_t> bytesOf(DType dtype, llvm::ArrayRef<double> numbers) {
  std::vector<uint8_t> bytes(numbers.size() * bitsOf(dtype) / 8);
  writeDoubles(dtype, numbers, bytes.data());
  return bytes;
}

static void addTensors(const Witness &witness, const std::string &prefix,
                       std::vector<TensorSource> &tensors) {
  for (const WitnessTensor &weight : witness.weights)
    tensors.push_back(
        source(prefix + "weight." + weight.name, weight.dtype, weight.shape, weight.bytes));
  auto rows = [&](const char *name, const Activations &all) {
    for (auto [i, m] : llvm::enumerate(all))
      tensors.push_back(source(prefix + name + "." + std::to_string(i), DType::F32,
                               {m.rows(), m.cols()},
                               bytesOf(DType::F32, {m.data(), size_t(m.size())})));
  };
  rows("context", witness.sample.context);
  rows("full", witness.sample.full);
  rows("reduced", witness.sample.reduced);
  auto vector = [&](const char *name, const Eigen::VectorXd &v) {
    tensors.push_back(source(prefix + name, DType::F64, {v.size()},
                             bytesOf(DType::F64, {v.data(), size_t(v.size())})));
  };
  vector("T_C", witness.full);
  vector("T", witness.reduced);
  vector("direction", witness.direction);
}

static json::Object toJson(const Witness &witness) {
  return json::Object{{"name", witness.name},
                      {"block", witness.block},
                      {"why", witness.why},
                      {"sites", witness.allSites ? "all" : "mlp"},
                      {"seed", int64_t(witness.seed)},
                      {"scaled", witness.scaled},
                      {"bound", witness.byRank ? "rank" : "direction"},
                      {"change", witness.change()},
                      {"target", witness.target},
                      {"limit", witness.limit},
                      {"leastError", witness.leastError},
                      {"attained", witness.attained}};
}

llvm::Error ctxc::writeWitnesses(llvm::ArrayRef<Witness> witnesses, StringRef path) {
  json::Array list;
  std::vector<TensorSource> tensors;
  for (auto [i, witness] : llvm::enumerate(witnesses)) {
    list.push_back(toJson(witness));
    addTensors(witness, std::to_string(i) + ".", tensors);
  }
  std::string numbers = tensorsPath(path);
  if (llvm::Error error = writeSafetensors(numbers, std::move(tensors), {{"format", format}}))
    return error;
  json::Object file{{"format", format},
                    {"version", version},
                    {"tensors", llvm::sys::path::filename(numbers)},
                    {"witnesses", std::move(list)}};
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    os << llvm::formatv("{0:2}\n", json::Value(std::move(file)));
    return llvm::Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// Reads one witness; the error names the first problem.
class Reader {
public:
  Reader(StringRef path, const SafetensorsFile &file, std::string prefix)
      : path(path), file(file), prefix(std::move(prefix)) {}

  llvm::Error read(const json::Value &value, Witness &witness);

private:
  llvm::Error fail(const llvm::Twine &message) const { return makeError(path + ": " + message); }
  llvm::Error text(const json::Object &object, StringRef key, std::string &to) const;
  llvm::Error number(const json::Object &object, StringRef key, double &to) const;
  llvm::Error numbers(const json::Object &object, Witness &witness) const;
  llvm::Error activations(StringRef name, Activations &to) const;
  llvm::Error vector(StringRef name, Eigen::VectorXd &to) const;

  StringRef path;
  const SafetensorsFile &file;
  std::string prefix;
};
} // namespace

llvm::Error Reader::text(const json::Object &object, StringRef key, std::string &to) const {
  std::optional<StringRef> value = object.getString(key);
  if (!value)
    return fail("a witness has no text '" + key + "'");
  to = value->str();
  return llvm::Error::success();
}

llvm::Error Reader::number(const json::Object &object, StringRef key, double &to) const {
  std::optional<double> value = object.getNumber(key);
  if (!value)
    return fail("a witness has no number '" + key + "'");
  to = *value;
  return llvm::Error::success();
}

llvm::Error Reader::numbers(const json::Object &object, Witness &witness) const {
  double seed = 0;
  for (auto [key, to] : {std::pair<const char *, double *>{"target", &witness.target},
                         {"limit", &witness.limit},
                         {"leastError", &witness.leastError},
                         {"attained", &witness.attained},
                         {"seed", &seed}})
    if (llvm::Error error = number(object, key, *to))
      return error;
  if (!(seed >= 0 && seed < 0x1p64))
    return fail("'seed' is not a number from 0 to below 2^64");
  witness.seed = uint64_t(seed);
  return llvm::Error::success();
}

/// One matrix for each of the block's arguments.
llvm::Error Reader::activations(StringRef name, Activations &to) const {
  for (unsigned i = 0;; ++i) {
    const TensorView *view = file.find(prefix + name.str() + "." + std::to_string(i));
    if (!view)
      return llvm::Error::success();
    if (view->shape.size() != 2 || !isFloating(view->dtype))
      return fail("tensor '" + view->name + "' is no matrix of floating numbers");
    if (llvm::Error error = checkFinite(*view))
      return error;
    Matrix rows(view->shape[0], view->shape[1]);
    readDoubles(view->dtype, view->data, {rows.data(), size_t(rows.size())});
    to.push_back(std::move(rows));
  }
}

llvm::Error Reader::vector(StringRef name, Eigen::VectorXd &to) const {
  const TensorView *view = file.find(prefix + name.str());
  if (!view || view->shape.size() != 1 || !isFloating(view->dtype))
    return fail("there is no vector '" + prefix + name + "'");
  if (llvm::Error error = checkFinite(*view))
    return error;
  to.resize(view->shape[0]);
  readDoubles(view->dtype, view->data, {to.data(), size_t(to.size())});
  return llvm::Error::success();
}

llvm::Error Reader::read(const json::Value &value, Witness &witness) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return fail("a witness is no object");
  for (auto [key, to] : {std::pair<const char *, std::string *>{"name", &witness.name},
                         {"block", &witness.block},
                         {"why", &witness.why},
                         {"scaled", &witness.scaled}})
    if (llvm::Error error = text(*object, key, *to))
      return error;
  if (llvm::Error error = numbers(*object, witness))
    return error;
  std::string sites;
  if (llvm::Error error = text(*object, "sites", sites))
    return error;
  if (sites != "mlp" && sites != "all")
    return fail("found \"sites\": " + quoted(sites) + ", expected mlp or all");
  witness.allSites = sites == "all";
  StringRef bound = object->getString("bound").value_or("direction"); // of older files
  if (bound != "direction" && bound != "rank")
    return fail("found \"bound\": " + quoted(bound) + ", expected direction or rank");
  witness.byRank = bound == "rank";
  for (auto [name, to] :
       {std::pair<const char *, Activations *>{"context", &witness.sample.context},
        {"full", &witness.sample.full},
        {"reduced", &witness.sample.reduced}})
    if (llvm::Error error = activations(name, *to))
      return error;
  for (auto [name, to] : {std::pair<const char *, Eigen::VectorXd *>{"T_C", &witness.full},
                          {"T", &witness.reduced},
                          {"direction", &witness.direction}})
    if (llvm::Error error = vector(name, *to))
      return error;
  std::string weights = prefix + "weight.";
  for (const TensorView &view : file.tensors()) {
    StringRef name = view.name;
    if (!name.consume_front(weights))
      continue;
    if (llvm::Error error = checkFinite(view))
      return error;
    WitnessTensor tensor{name.str(), view.dtype, {}, {}};
    tensor.shape.assign(view.shape.begin(), view.shape.end());
    tensor.bytes.assign(view.data, view.data + view.bytes);
    witness.weights.push_back(std::move(tensor));
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<Witness>> ctxc::readWitnesses(StringRef path) {
  llvm::Expected<std::string> content = readSmallFile(path, textLimit);
  if (!content)
    return content.takeError();
  llvm::Expected<json::Value> value = parseStrictJson(*content, path);
  if (!value)
    return value.takeError();
  const json::Object *object = value->getAsObject();
  if (!object || object->getString("format") != std::optional<StringRef>(format))
    return makeError(path + ": found no \"format\": \"" + format + "\"; expected a witness file");
  if (object->getInteger("version") != std::optional<int64_t>(version))
    return makeError(path + ": is of another version; expected version " + llvm::Twine(version));
  std::optional<StringRef> numbers = object->getString("tensors");
  const json::Array *list = object->getArray("witnesses");
  if (!numbers || !list || llvm::sys::path::filename(*numbers) != *numbers)
    return makeError(path + ": expected \"tensors\", the name of a file beside it, and "
                            "\"witnesses\", an array");
  llvm::SmallString<128> beside(path);
  llvm::sys::path::remove_filename(beside);
  llvm::sys::path::append(beside, *numbers);
  auto file = SafetensorsFile::open(beside);
  if (!file)
    return file.takeError();
  std::vector<Witness> witnesses(list->size());
  for (auto [i, witness] : llvm::enumerate(witnesses))
    if (llvm::Error error = Reader(path, **file, std::to_string(i) + ".").read((*list)[i], witness))
      return std::move(error);
  return witnesses;
}
