//===- FreeName.h - names of blocks that are made from a block ------------===//
#ifndef CTXC_LIB_TRANSFORMS_FREENAME_H
#define CTXC_LIB_TRANSFORMS_FREENAME_H

#include "dialects/XF/XF.h"
#include "mlir/IR/BuiltinOps.h"

namespace ctxc {

/// The block's name with `suffix`, numbered from 2 where the module has it already.
inline std::string freeName(mlir::ModuleOp module, xf::BlockOp block, llvm::StringRef suffix) {
  std::string base = (block.getSymName() + suffix).str(), name = base;
  for (unsigned i = 2; mlir::SymbolTable::lookupSymbolIn(module, name); ++i)
    name = base + "_" + std::to_string(i);
  return name;
}

} // namespace ctxc

#endif // CTXC_LIB_TRANSFORMS_FREENAME_H
