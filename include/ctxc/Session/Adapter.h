//===- Adapter.h - a model's part of a patch's adapter --------------------===//
//
// What Export/Adapter.h needs to know about a model to write a patch as a LoRA adapter, and which
// plan to propose to a user whose patch no adapter can hold:
//
//   auto adapter = ctxc::adapterModel(model);
//   auto error = ctxc::writePeftAdapter("adapter", step->patch, metadata, *adapter);
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_SESSION_ADAPTER_H
#define CTXC_SESSION_ADAPTER_H

#include "ctxc/Export/Adapter.h"
#include <string>
#include <vector>

namespace ctxc {

class Model;

/// The model's directory and type, and which matrices of its patched layers are stored as (in,
/// out). Errors: the model has no checkpoint; the errors of Model::program().
llvm::Expected<AdapterModel> adapterModel(Model &model);

/// The parameters, by the names of the blocks, of a plan that every layer has and that patches only
/// whole matrices, so that a LoRA adapter can hold its patches; empty if there is no such plan.
/// Errors: those of Model::check().
llvm::Expected<std::vector<std::string>> planOfMatrices(Model &model);

} // namespace ctxc

#endif // CTXC_SESSION_ADAPTER_H
