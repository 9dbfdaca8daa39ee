//===- Patch.h - the patch dialect: what patches are made of --------------===//
#ifndef CTXC_DIALECTS_PATCH_PATCH_H
#define CTXC_DIALECTS_PATCH_PATCH_H

#include "dialects/XF/XF.h"

#include "dialects/Patch/PatchDialect.h.inc"
#include "dialects/Patch/PatchEnums.h.inc"

#define GET_OP_CLASSES
#include "dialects/Patch/PatchOps.h.inc"

#endif // CTXC_DIALECTS_PATCH_PATCH_H
