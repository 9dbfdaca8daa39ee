//===- Graph.h - the graph dialect: exported PyTorch programs -------------===//
#ifndef CTXC_DIALECTS_GRAPH_GRAPH_H
#define CTXC_DIALECTS_GRAPH_GRAPH_H

#include "dialects/XF/XF.h"
#include <optional>

#include "dialects/Graph/GraphDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Graph/GraphAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Graph/GraphTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Graph/GraphOps.h.inc"

#endif // CTXC_DIALECTS_GRAPH_GRAPH_H
