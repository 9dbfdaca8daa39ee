#include "tools/CommandLine/Programs.h"

int main(int argc, char **argv) { return ctxc::runCtxc(argc, argv); }
