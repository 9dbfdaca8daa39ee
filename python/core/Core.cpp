#include "Core.h"
#include <thread>

namespace nb = nanobind;

/// Ends the calls of other threads before the interpreter ends.
static void endCalls() {
  using namespace ctxc::python;
  unlockedCalls.endedBy = std::this_thread::get_id();
  unlockedCalls.isEnding = true;
  nb::gil_scoped_release release;
  // A call looks between kernels. One that compiles takes seconds, and is waited for.
  for (int i = 0; i < 60000 && unlockedCalls.count > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

NB_MODULE(_core, m) {
  m.doc() = "ctxc's library; use the package ctxc, which is made of it.";
  m.attr("__version__") = CTXC_VERSION;
  ctxc::python::addPatch(m);
  ctxc::python::addModel(m);
  ctxc::python::addContext(m);
  python::addJoint(m);
  ctxc::python::addPrograms(m);
  // Whoever ends the interpreter in the middle of a call leaves the call's model behind.
  nb::set_leak_warnings(false);
  m.def("end_calls", &endCalls);
  nb::module_::import_("atexit").attr("register")(m.attr("end_calls"));
}
