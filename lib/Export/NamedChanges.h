// An adapter by the names of stored parameters, for models whose parameters are of no module: for
// each matrix NAME the factors NAME.u (rows × rank) and NAME.v (columns × rank), for each vector
// NAME.delta.
#ifndef CTXC_LIB_EXPORT_NAMEDCHANGES_H
#define CTXC_LIB_EXPORT_NAMEDCHANGES_H

#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Export/LastingAdapter.h"

namespace ctxc {

/// The changes as tensors of the file, and what its metadata says of them.
void addNamedChanges(const Adapter &adapter, std::vector<TensorSource> &tensors,
                     std::map<std::string, std::string> &metadata);

/// The changes of such a file; `directory` is for messages. Errors: another format or version; half
/// of a pair of factors, other tensors; a parameter that `checkpoint` does not have, or has in
/// another shape; numbers that are not finite.
llvm::Error readNamedChanges(llvm::StringRef directory, const SafetensorsFile &file,
                             const Checkpoint &checkpoint, Adapter &adapter);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_NAMEDCHANGES_H
