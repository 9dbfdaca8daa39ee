// The extension module ctxc._core: Session's calls as Python objects, and nothing else. What is
// more convenient in Python is written in Python (python/ctxc).
#ifndef CTXC_PYTHON_CORE_CORE_H
#define CTXC_PYTHON_CORE_CORE_H

#include "ctxc/Session/Adapter.h"
#include "ctxc/Session/Context.h"
#include "ctxc/Session/Model.h"
#include <atomic>
#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <thread>

namespace ctxc::python {

/// How many calls run without Python's lock, and whether the interpreter is about to end, at which
/// they stop: a thread that asked for the lock later would never get it.
struct UnlockedCalls {
  std::atomic<int64_t> count{0};
  std::atomic<bool> isEnding{false};
  std::thread::id endedBy{}; ///< the thread that ends the interpreter, once it is about to end
};
inline UnlockedCalls unlockedCalls;

/// Keeps any other thread than the one that ends the interpreter: a later request for the lock
/// would end the thread in mid-frame. Needs the lock.
inline void stayWhileInterpreterEnds() {
  if (!unlockedCalls.isEnding || std::this_thread::get_id() == unlockedCalls.endedBy)
    return;
  nanobind::gil_scoped_release release;
  for (;;)
    std::this_thread::sleep_for(std::chrono::hours(1));
}

/// What a call does without Python's lock, so that other threads run.
template <typename Call> auto unlocked(Call call) -> decltype(call()) {
  stayWhileInterpreterEnds();
  struct Counted {
    Counted() { ++unlockedCalls.count; }
    ~Counted() { --unlockedCalls.count; }
  };
  Counted counted; // until the lock is held again
  nanobind::gil_scoped_release release;
  return call();
}

/// A model with what Python adds: Ctrl-C, and the exception of a callback.
class BoundModel {
public:
  /// `options`: what ctxc.load takes, as a dict (ctxc/_options.py has their meaning).
  static std::shared_ptr<BoundModel> load(const std::string &path, const nanobind::dict &options);
  static std::shared_ptr<BoundModel> fromTensors(const std::string &name, const std::string &config,
                                                 const nanobind::list &tensors,
                                                 const nanobind::dict &options);

  Model &get() { return *model; }
  /// The result of a call. Throws its error, or the exception that a signal or a callback raised in
  /// it, which a call may have been too near its end to notice.
  template <typename T> T take(llvm::Expected<T> value) {
    if (!value)
      raise(value.takeError());
    raisePending();
    return std::move(*value);
  }
  template <typename T> T &take(llvm::Expected<T &> value) {
    if (!value)
      raise(value.takeError());
    raisePending();
    return *value;
  }
  void check(llvm::Error error) {
    if (error)
      raise(std::move(error));
    raisePending();
  }
  /// Keeps the exception that is being handled until `raise`; the running call ends soon.
  void interruptWith(nanobind::python_error &error);
  /// Calls a function of Python, or None, from a call without Python's lock, which its exception
  /// ends.
  template <typename... Args> void callBack(const nanobind::object &callback, Args... args) {
    if (callback.is_none() || pending || unlockedCalls.isEnding)
      return;
    nanobind::gil_scoped_acquire acquire;
    try {
      callback(args...);
    } catch (nanobind::python_error &error) {
      interruptWith(error);
    }
  }
  /// Whom the calls that follow tell how many of their tokens are done, of how many; or None.
  void setProgress(nanobind::object told) { progress = std::move(told); }
  /// What adapters say of the model; null where it has no checkpoint.
  std::shared_ptr<const AdapterModel> adapter();
  /// Those that a call gave, in order, since the last time that Python took them.
  std::vector<ModelDiagnostic> takeDiagnostics() { return std::exchange(diagnostics, {}); }

private:
  BoundModel() = default;
  [[noreturn]] void raise(llvm::Error error);
  void raisePending();
  LoadOptions read(const nanobind::dict &options);
  bool asksToStop();

  std::vector<ModelDiagnostic> diagnostics;
  std::unique_ptr<nanobind::python_error> pending;
  std::chrono::steady_clock::time_point asked{};
  nanobind::object progress = nanobind::none();
  std::vector<nanobind::object> kept; ///< owners of tensors in memory
  std::unique_ptr<Model> model;       ///< destroyed before what it reads
  std::shared_ptr<const AdapterModel> adapterOfModel;
};

/// A patch, and what it was made for.
struct BoundPatch {
  std::shared_ptr<const Patch> patch;
  PatchMetadata metadata;
  std::shared_ptr<const AdapterModel> adapter = nullptr; ///< null where the model is not known
};

/// Throws `error` as an exception of ctxc; `diagnostics` are the model's since its last call.
[[noreturn]] void raiseError(llvm::Error error, std::vector<ModelDiagnostic> diagnostics = {});

/// A dict of a diagnostic: place, line, column, severity, rule, message, source, notes.
nanobind::dict toDict(const ModelDiagnostic &diagnostic);

/// An array that shows `numbers`, which `owner` keeps alive.
nanobind::object view(const std::vector<double> &numbers, const std::vector<int64_t> &shape,
                      nanobind::handle owner);

std::vector<Input> toInputs(const std::vector<int64_t> &tokens);

void addModel(nanobind::module_ &m);
void addGraph(nanobind::class_<BoundModel> &model);
void addBatch(nanobind::class_<BoundModel> &model, nanobind::module_ &m);
void addKept(nanobind::class_<BoundModel> &model);
void addContext(nanobind::module_ &m);
void addJoint(nanobind::module_ &m);
void addPatch(nanobind::module_ &m);
void addPrograms(nanobind::module_ &m);

} // namespace ctxc::python

#endif
