//===- Programs.h - the programs as functions ------------------------------===//
//
// Each has an executable that calls it, and the Python package, which holds all of them in one
// library, calls them too. They take and return what main() does, and may be called once in a
// process.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_PROGRAMS_H
#define CTXC_TOOLS_COMMANDLINE_PROGRAMS_H

namespace ctxc {

int runCtxc(int argc, char **argv);
int runCtxcOpt(int argc, char **argv);
int runCtxcLspServer(int argc, char **argv);

} // namespace ctxc

#endif // CTXC_TOOLS_COMMANDLINE_PROGRAMS_H
