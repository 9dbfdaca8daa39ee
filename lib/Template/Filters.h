// What filters have in common.
#ifndef CTXC_LIB_TEMPLATE_FILTERS_H
#define CTXC_LIB_TEMPLATE_FILTERS_H

#include "Machine.h"

namespace ctxc::jinja {

bool isFilter(llvm::StringRef name);
bool isTest(llvm::StringRef name);

/// map, select, reject, selectattr and rejectattr.
bool isSelection(llvm::StringRef name);
Value select(Machine &machine, llvm::StringRef name, const Value &subject, Arguments arguments);

/// "a.b.0" of a value: item by item; undefined where one is missing.
Value attributeByPath(Machine &machine, const Value &value, const Value &path);

} // namespace ctxc::jinja

#endif // CTXC_LIB_TEMPLATE_FILTERS_H
