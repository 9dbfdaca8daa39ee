//===- ModelArguments.h - MODEL and the options that steer how it is run --===//
//
// Shared by the commands that plan or run a model, those of ctxc and of the benchmark programs:
// their options, the model that is opened with these options, and its diagnostics on the terminal.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TOOLS_COMMANDLINE_MODELARGUMENTS_H
#define CTXC_TOOLS_COMMANDLINE_MODELARGUMENTS_H

#include "ctxc/Session/Model.h"
#include "tools/CommandLine/CommandLine.h"

namespace ctxc::driver {

/// The storage types that --dtype can name, and the one named `name`.
std::vector<llvm::StringRef> storageNames();
DType storageNamed(llvm::StringRef name);

/// The options of Options.def that commands have which plan; which run a model.
std::vector<OptionSpec> planOptions();
std::vector<OptionSpec> runOptions();
/// --update, for commands that do not run.
OptionSpec updateOption();

/// The values of runOptions() except --keep.
llvm::Expected<LoadOptions> loadOptions(const Arguments &arguments);

/// What --round-prompts and --split-prompts say, of which one may be given.
llvm::Expected<PromptProducts> promptProducts(const Arguments &arguments);

/// The positions that --keep names; none of them if it is not given.
llvm::Expected<std::optional<std::vector<int64_t>>> keptPositions(const Arguments &arguments);

/// The value of --weights: a checkpoint, or random:SEED.
llvm::Expected<WeightSource> weightSource(const Arguments &arguments);

/// Loads the file of every --load-dialect-plugin among `words`, and removes these options.
llvm::Error loadDialectPlugins(std::vector<llvm::StringRef> &words);

/// Those files.
llvm::ArrayRef<std::string> pluginFiles();

/// The dialects of those plugins.
const mlir::DialectRegistry &pluginDialects();

/// Prints a diagnostic to stderr.
void printDiagnostic(const ModelDiagnostic &diagnostic);

/// Opens `path` with the plugins' dialects, and prints its diagnostics to stderr.
llvm::Expected<std::unique_ptr<Model>> openModel(llvm::StringRef path, LoadOptions options);

/// Fails where a planning option that was given does not apply to anything in the model.
llvm::Error checkPlanArguments(const Arguments &arguments, Model &model);

/// Opens MODEL, checks the options for its plans, and makes it ready to run.
llvm::Expected<std::unique_ptr<Model>> openToRun(const Arguments &arguments, llvm::StringRef path,
                                                 LoadOptions options);

} // namespace ctxc::driver

#endif // CTXC_TOOLS_COMMANDLINE_MODELARGUMENTS_H
