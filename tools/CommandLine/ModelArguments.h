//===- ModelArguments.h - MODEL and the options that steer how it is run --===//
//
// What the commands that plan or run a model share, those of ctxc and the programs that measure:
// their options, the model that these open, and its diagnostics on the terminal.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_MODELARGUMENTS_H
#define CTXC_TOOLS_COMMANDLINE_MODELARGUMENTS_H

#include "ctxc/Session/Model.h"
#include "tools/CommandLine/CommandLine.h"

namespace ctxc::driver {

/// The storage types of weights that --dtype names, and the one that `name` is.
std::vector<llvm::StringRef> storageNames();
DType storageNamed(llvm::StringRef name);

/// --sites, --objective, --plan, --split.
std::vector<OptionSpec> planOptions();

/// Those, and --update, --dtype, --round-prompts, --start-layer, --keep, --backend, --target,
/// --threads, --weights.
std::vector<OptionSpec> runOptions();

/// The values of runOptions(), but for --keep.
llvm::Expected<LoadOptions> loadOptions(const Arguments &arguments);

/// The positions of --keep.
llvm::Expected<std::vector<int64_t>> keptPositions(const Arguments &arguments);

/// --weights: a checkpoint, or random:SEED.
llvm::Expected<WeightSource> weightSource(const Arguments &arguments);

/// Loads the files of every --load-dialect-plugin among `words`, and removes the option.
llvm::Error loadDialectPlugins(std::vector<llvm::StringRef> &words);

/// The dialects of those plugins.
const mlir::DialectRegistry &pluginDialects();

/// Prints a diagnostic to stderr.
void printDiagnostic(const ModelDiagnostic &diagnostic);

/// Opens `path` with its diagnostics on stderr, and the plugins' dialects.
llvm::Expected<std::unique_ptr<Model>> openModel(llvm::StringRef path, LoadOptions options);

/// Fails where an option on planning that was given applies to nothing in the model.
llvm::Error checkPlanArguments(const Arguments &arguments, Model &model);

/// Opens MODEL, checks the options on its plans, and makes it ready to run.
llvm::Expected<std::unique_ptr<Model>> openToRun(const Arguments &arguments, llvm::StringRef path,
                                                 LoadOptions options);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_MODELARGUMENTS_H
