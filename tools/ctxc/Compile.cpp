// ctxc compile
#include "CodeArguments.h"
#include "Commands.h"
#include "LinkLibrary.h"
#include "MarkCode.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Report/ShardReport.h"
#include "ctxc/Support/AtomicFile.h"
#include "ctxc/Support/Error.h"
#include "tools/CommandLine/ModelArguments.h"
#include "tools/CommandLine/Streams.h"
#include "tools/CommandLine/Values.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ctxc;
using namespace ctxc::driver;

static llvm::Error write(llvm::StringRef path, llvm::StringRef content) {
  if (path == "-") {
    out() << content;
    return llvm::Error::success();
  }
  return writeFileAtomically(path, [&](llvm::raw_pwrite_stream &os) {
    os << content;
    return llvm::Error::success();
  });
}

/// Writes a stage. On the screen it needs no mark.
static llvm::Error writeStage(llvm::StringRef path, llvm::StringRef stage, llvm::StringRef code) {
  return write(path, path == "-" ? code.str() : markCode(stage, code));
}

static llvm::Error writeModel(llvm::StringRef path, llvm::StringRef stage, mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printModel(module, os);
  return writeStage(path, stage, text);
}

static llvm::Error writePlanned(Model &model, llvm::StringRef path) {
  llvm::Expected<mlir::ModuleOp> planned = model.plannedModule();
  if (!planned)
    return planned.takeError();
  return writeModel(path, "patch", *planned);
}

static llvm::Error writeCost(Model &model, const CompileOptions &options, const CostOptions &at,
                             bool isJson, llvm::StringRef path) {
  llvm::Expected<TokenCosts> costs = model.cost(options, at);
  if (!costs)
    return costs.takeError();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (isJson)
    writeCostJson(*costs, os);
  else
    writeCostText(*costs, os);
  return isJson ? write(path, text) : writeStage(path, "cost", text);
}

/// The cost on many ranks, and of the other splits of as many.
static llvm::Error writeShardCost(Model &model, const shard::ShardRequest &request, bool isJson,
                                  llvm::StringRef path) {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::Expected<Program> program = model.programInAnyCase(module);
  if (!program)
    return program.takeError();
  auto cost = shard::costOf(*program, request);
  if (!cost)
    return cost.takeError();
  auto others = shard::costsOf(*program, request.tensor * request.pipeline, request);
  if (!others)
    return others.takeError();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (isJson) {
    writeShardJson(*cost, *others, os);
    return write(path, text);
  }
  writeShardText(*cost, os);
  os << "\n";
  writeShardTable(*others, os);
  return writeStage(path, "cost", text);
}

/// `path` with another ending.
static std::string beside(llvm::StringRef path, llvm::StringRef ending) {
  llvm::SmallString<256> result(path);
  llvm::sys::path::replace_extension(result, ending);
  return result.str().str();
}

/// Writes the code, and, for an object file or a library, a header and a manifest with the same
/// stem beside it.
static llvm::Error writeCode(Model &model, const CompileOptions &options, llvm::StringRef stage,
                             llvm::StringRef path) {
  std::string header = beside(path, ".h"), manifest = beside(path, ".json");
  if (options.stage == CodeStage::Object)
    for (const std::string &each : {header, manifest})
      if (llvm::Error error = checkOutput(each))
        return error;
  llvm::Expected<CompiledCode> made = model.compile(options);
  if (!made)
    return made.takeError();
  std::string code = std::move(made->code);
  if (stage == "shared") {
    llvm::Expected<std::string> library = linkLibrary(code, llvm::sys::path::filename(path));
    if (!library)
      return makeError(path + ": " + llvm::toString(library.takeError()));
    code = std::move(*library);
  }
  if (llvm::Error error = writeStage(path, stage, code))
    return error;
  if (options.stage != CodeStage::Object)
    return llvm::Error::success();
  if (llvm::Error error = write(header, made->header))
    return error;
  return write(manifest, made->manifest);
}

static llvm::Expected<int> runCompile(const Arguments &arguments) {
  if (arguments.has("--print-pipeline"))
    return printPipeline(arguments);
  llvm::StringRef path = arguments.get("-o", "");
  llvm::StringRef stage = arguments.get("--emit", "");
  bool isFile = llvm::is_contained({"obj", "shared", "hsaco", "spirv"}, stage);
  if (isFile && path == "-")
    return makeError("-o: " + stage + " is no text for the screen; expected a file");
  // The other files are written beside this one, and a library is renamed to its name at the end.
  if (isFile && llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path))
    return makeError("-o: " + path + " is there and no regular file; expected a file to write");
  auto options = loadOptions(arguments);
  if (!options)
    return options.takeError();
  auto at = costOptions(arguments);
  if (!at)
    return at.takeError();
  const bool isSharded = arguments.has("--shard");
  if (arguments.has("--network") && !isSharded)
    return makeError("--network: is of --shard, which is not given");
  if (!isSharded && arguments.has("--bandwidth-of-two"))
    return makeError("--bandwidth-of-two: is of --shard, which is not given");
  auto request = isSharded ? shardRequest(arguments, *at) : shard::ShardRequest();
  if (!request)
    return request.takeError();
  auto code = isSharded ? CompileOptions() : compileOptions(arguments);
  if (!code)
    return code.takeError();
  options->needWeights = false;
  // --target is the code's, and nothing runs.
  options->engine = Engine::Compiled;
  auto opened = openModel(arguments.positional(0), std::move(*options));
  if (!opened)
    return opened.takeError();
  Model &model = **opened;
  if (stage == "xf") {
    if (llvm::Error error = writeModel(path, stage, model.module()))
      return std::move(error);
    return ExitGood;
  }
  if (llvm::Error error = checkPlanArguments(arguments, model))
    return std::move(error);
  bool isJson = arguments.get("--format", "text") == "json";
  if (llvm::Error error = isSharded          ? writeShardCost(model, *request, isJson, path)
                          : stage == "patch" ? writePlanned(model, path)
                          : stage == "cost"  ? writeCost(model, *code, *at, isJson, path)
                                             : writeCode(model, *code, stage, path))
    return std::move(error);
  return ExitGood;
}

/// What is written, and for which target.
static std::vector<OptionSpec> optionsOfStages() {
  static const std::string targets =
      "native (default), x86-64-v2, x86-64-v3, x86-64-v4, aarch64 (with any of\n"
      "+dotprod, +i8mm, +bf16), or LLVM's name of an x86-64 processor, such as\n"
      "znver4; the code runs on all processors that have its features, and refuses\n"
      "others. Or a GPU (docs/gpu.md):\n" +
      GpuTarget::names();
  return {{"--emit",
           "STAGE",
           "xf      the model\n"
           "patch   the model, with the dual and applied block of every plan\n"
           "linalg  the kernels of these blocks, on tensors\n"
           "llvm    the kernels as LLVM IR, optimised for the target\n"
           "asm     the kernels as assembly\n"
           "obj     an object file, with a C header and a manifest (JSON) beside it\n"
           "shared  a shared library, with header and manifest beside it\n"
           "gpu     for a GPU: launches and kernels, in MLIR's gpu dialect\n"
           "cost    bytes and operations of each launch, and of a token\n"
           "ptx     NVIDIA's assembly; hsaco: a code object for AMD;\n"
           "spirv: a binary module for Vulkan",
           {"xf", "patch", "linalg", "llvm", "asm", "obj", "shared", "gpu", "cost", "ptx", "hsaco",
            "spirv"},
           true},
          {"--target", "NAME", targets, {}},
          {"--prefix", "NAME", "prefix of all names in the library; default: ctxc", {}},
          {"--rows",
           "N",
           "tokens per call of a GPU kernel, such as a chunk of a prompt; default: 1",
           {}}};
}

/// The options of --emit=cost.
static std::vector<OptionSpec> optionsOfCost() {
  return {
      {"--visible",
       "N,M",
       "for cost: how many KV slots a token reads, N in the full run's cache and\n"
       "M in the reduced run's; default: 1024,1",
       {}},
      {"--bandwidth", "GB/S", "for cost: the device's memory bandwidth; adds predicted times", {}},
      {"--rate",
       "TFLOP/S",
       "for cost: the rate of float32 arithmetic, for compute-bound kernels",
       {}},
      {"--shard", "SPLIT",
       "for cost: split over ranks, such as tensor=8,pipeline=4: what each stores, reads\n"
       "and sends, the least time of a token, and the same for other splits"},
      {"--bandwidth-of-two", "GB/S",
       "for --shard: the speed at which a rank reads a matrix for two vectors, those of both\n"
       "runs (`ctxc tune` measures it); default: --bandwidth"},
      {"--network", "GB/S,US", "for --shard: speed and latency of a message between two ranks"},
      {"--format", "NAME", "for cost: text (default) or json", {"text", "json"}}};
}

/// Where it is written, and how the kernels compute.
static std::vector<OptionSpec> optionsOfCode() {
  return {writes({"-o", "PATH", "the file to write; - for standard output", {}, true}),
          updateOption(),
          {"--dtype", "TYPE", "storage type of the weights; default: as stored", storageNames()},
          {"--round-prompts", "",
           "kernels that read prompts round activations to bfloat16 before products with\n"
           "bfloat16 weights, in calls of 16 tokens or more, for a target with\n"
           "avx512_bf16, or with --rows for NVIDIA's GPUs; other kernels, and patches,\n"
           "are not changed"},
          {"--split-prompts", "",
           "kernels that read prompts split activations and weights into bfloat16 numbers\n"
           "for AMX's tile registers, in calls of 16 tokens or more; as exact as without"},
          {"--integer-products", "",
           "CPU kernels multiply quantised matrices (not fp8) in integers, with activations\n"
           "rounded to 8 bits, with a scale for each 32"},
          {"--remarks", "", "say for each op that cannot use its fast form which form, and why"},
          {"--start-layer", "L", "leave the layers before layer L (from 0) unpatched"},
          {"--print-pipeline",
           "",
           "print the passes that lower --emit=linalg for --target (and --rows), as\n"
           "`ctxc-opt --pass-pipeline=` reads them; takes no MODEL, --emit or -o",
           {},
           false,
           false,
           false,
           false,
           true}};
}

Command driver::compileCommand() {
  std::vector<OptionSpec> options = optionsOfStages();
  llvm::append_range(options, optionsOfCost());
  llvm::append_range(options, optionsOfCode());
  return {
      "compile",
      "write any stage of the compilation, from readable IR to a library",
      {"MODEL"},
      options,
      "Weights are not needed. A kernel computes one block: its ordinary forward, its full and\n"
      "reduced run together with the patch between them (dual), or its forward with a given\n"
      "patch (applied). Layers of the same structure share their kernels. The header says how to\n"
      "call them from C; an object file also needs libCtxcNumerics.a. See\n"
      "docs/kernel-library.md.",
      "  ctxc compile gemma-3-270m --emit=patch -o -\n"
      "  ctxc compile gemma-3-270m --emit=shared -o kernels.so\n"
      "  ctxc compile gemma-3-270m --emit=shared --target=x86-64-v3 -o kernels.so\n"
      "  ctxc compile gemma-3-270m --emit=ptx --target=cuda:sm_90 -o kernels.ptx\n"
      "  ctxc compile gemma-3-270m --emit=cost --target=cuda:sm_90 --bandwidth 4000 -o -\n"
      "  ctxc compile llama-405b --emit=cost --shard tensor=8,pipeline=4 --bandwidth 3350 \\\n"
      "    --network 50,2 -o -\n"
      "  ctxc compile block.mlir --emit=linalg -o block-linalg.mlir\n"
      "  ctxc-opt block-linalg.mlir --mlir-timing \\\n"
      "    --pass-pipeline=\"$(ctxc compile --print-pipeline --target=x86-64-v3)\"\n",
      runCompile};
}
