// Part of every plugin: it needs the symbol of the headers that it was built with.
#include "ctxc/Plugins/PluginAbi.h.inc"

extern "C" const char CTXC_PLUGIN_ABI;
__attribute__((used)) const char *const ctxcPluginAbi = &CTXC_PLUGIN_ABI;
