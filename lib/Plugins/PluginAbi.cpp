// What plugins of this build of ctxc need (cmake/NeedPluginAbi.cpp).
#include "ctxc/Plugins/PluginAbi.h.inc"

extern "C" {
extern const char CTXC_PLUGIN_ABI;
const char CTXC_PLUGIN_ABI = 0;
}
