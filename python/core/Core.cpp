#include "Core.h"

NB_MODULE(_core, m) {
  m.doc() = "ctxc's library; use the package ctxc, which is made of it.";
  m.attr("__version__") = CTXC_VERSION;
  ctxc::python::addPatch(m);
  ctxc::python::addModel(m);
  ctxc::python::addContext(m);
}
