// Compiles kernels to object files, in parallel.
//
// The function of a contraction is the same in every kernel that contains it, and the contractions
// are half of the kernels' code. (A block's forward, dual and applied kernels have most of them in
// common.) Each contraction therefore is an object of its own, compiled once and cached under its
// name; a kernel's object refers to the contractions that it calls.
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Lowering/Passes.h"
#include "ctxc/Program/Executor.h"
#include "ctxc/Support/Error.h"
#include "lib/Lowering/CPU/Contraction.h"
#include "lib/Lowering/RunPipeline.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include <atomic>
#include <future>
#include <map>

using namespace mlir;
using namespace ctxc;

namespace {

using Object = std::unique_ptr<llvm::MemoryBuffer>;

/// A module that becomes one object file.
struct Unit {
  std::string key;
  OwningOpRef<ModuleOp> own; ///< a contraction's module
  ModuleOp module;
  Object object = nullptr;
  llvm::Error error = llvm::Error::success();
};

class KernelCompiler {
public:
  KernelCompiler(const CpuTarget &target, const KernelCache &cache)
      : target(target), cache(cache) {}

  llvm::Expected<std::vector<Object>> compile(ArrayRef<ModuleOp> kernels);
  /// From any thread: the units that are being compiled are the last.
  void cancel() { isCancelled = true; }
  bool wasCancelled() const { return isCancelled; }

private:
  bool findContractions(const llvm::MemoryBuffer &kernel);
  void separateContractions(ModuleOp kernel);
  llvm::Expected<Object> emit(Unit &unit);
  llvm::Error compile(MLIRContext *context, std::vector<Unit *> units);

  const CpuTarget &target;
  const KernelCache &cache;
  std::map<std::string, Unit, std::less<>> contractions; ///< by name
  std::atomic<bool> isCancelled = false;
};

} // namespace

/// The names of the contractions that an object calls.
static SmallVector<std::string> contractionsOf(const llvm::MemoryBuffer &object) {
  SmallVector<std::string> names;
  auto file = llvm::object::ObjectFile::createObjectFile(object.getMemBufferRef());
  if (!file) {
    llvm::consumeError(file.takeError());
    return names;
  }
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (flags && name && (*flags & llvm::object::SymbolRef::SF_Undefined) &&
        name->starts_with(Contraction::prefix))
      names.push_back(name->str());
    llvm::consumeError(flags.takeError());
    llvm::consumeError(name.takeError());
  }
  return names;
}

/// Whether the cache has all contractions that the kernel's object calls.
bool KernelCompiler::findContractions(const llvm::MemoryBuffer &kernel) {
  return llvm::all_of(contractionsOf(kernel), [&](const std::string &name) {
    if (contractions.count(name))
      return true;
    std::string key = KernelCache::keyOf(name, target);
    Object object = cache.find(key);
    if (!object)
      return false;
    contractions.emplace(name, Unit{key, {}, {}, std::move(object)});
    return true;
  });
}

/// Replaces the contractions in a kernel's module by declarations.
void KernelCompiler::separateContractions(ModuleOp kernel) {
  for (auto function : llvm::to_vector(kernel.getOps<func::FuncOp>())) {
    if (function.isExternal() || !function.getName().starts_with(Contraction::prefix))
      continue;
    std::string name = function.getName().str();
    if (!contractions.count(name)) {
      std::string key = KernelCache::keyOf(name, target);
      Unit unit{key, {}, {}, cache.find(key)};
      if (!unit.object) {
        unit.own = ModuleOp::create(function.getLoc());
        unit.module = *unit.own;
        OpBuilder b(unit.module.getBodyRegion());
        llvm::SetVector<Operation *> called;
        auto uses = SymbolTable::getSymbolUses(function);
        for (const SymbolTable::SymbolUse &use : *uses)
          called.insert(SymbolTable::lookupSymbolIn(kernel, use.getSymbolRef()));
        for (Operation *declaration : called)
          b.clone(*declaration);
        b.clone(*function);
      }
      contractions.emplace(name, std::move(unit));
    }
    function.eraseBody();
  }
}

llvm::Expected<Object> KernelCompiler::emit(Unit &unit) {
  if (failed(runPipeline(unit.module,
                         [&](OpPassManager &pm) { buildContractedToLLVMPipeline(pm, target); })))
    return makeError("the kernels could not be lowered");
  if (unit.own) // called by the other objects of a library
    for (auto function : unit.module.getOps<LLVM::LLVMFuncOp>())
      if (!function.isExternal())
        function.setVisibility_(LLVM::Visibility::Hidden);
  llvm::LLVMContext context;
  auto module = translateKernels(unit.module, context, target);
  if (!module)
    return module.takeError();
  SmallVector<char, 0> object;
  llvm::raw_svector_ostream os(object);
  if (llvm::Error error = emitMachineCode(**module, target, llvm::CodeGenFileType::ObjectFile, os))
    return std::move(error);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(object),
                                                         /*RequiresNullTerminator=*/false);
}

/// Compiles the largest units first, so that all threads end at about the same time.
llvm::Error KernelCompiler::compile(MLIRContext *context, std::vector<Unit *> units) {
  llvm::DenseMap<Unit *, int64_t> sizes;
  for (Unit *unit : units)
    unit->module.walk([&](Operation *) { ++sizes[unit]; });
  llvm::sort(units, [&](Unit *a, Unit *b) { return sizes[a] > sizes[b]; });
  parallelForEach(context, units, [&](Unit *unit) {
    llvm::ErrorAsOutParameter checked(unit->error);
    if (isCancelled)
      return;
    auto object = emit(*unit);
    if (!object) {
      unit->error = object.takeError();
      return;
    }
    cache.insert(unit->key, (*object)->getBuffer());
    unit->object = std::move(*object);
  });
  llvm::Error failure = llvm::Error::success();
  for (Unit *unit : units)
    failure = llvm::joinErrors(std::move(failure), std::move(unit->error));
  return failure;
}

llvm::Expected<std::vector<Object>> KernelCompiler::compile(ArrayRef<ModuleOp> kernels) {
  std::vector<Unit> units;
  std::vector<Unit *> missing;
  for (ModuleOp kernel : kernels)
    units.push_back({KernelCache::keyOf(kernel, target), {}, kernel});
  for (Unit &unit : units) {
    unit.object = cache.find(unit.key);
    if (unit.object && !findContractions(*unit.object))
      unit.object.reset();
    if (!unit.object)
      missing.push_back(&unit);
  }

  if (!missing.empty()) {
    MLIRContext *context = missing.front()->module.getContext();
    if (failed(failableParallelForEach(context, missing, [&](Unit *unit) -> LogicalResult {
          if (isCancelled)
            return success();
          return runPipeline(unit->module,
                             [&](OpPassManager &pm) { buildContractPipeline(pm, target); });
        })))
      return makeError("the kernels could not be lowered");
    if (isCancelled)
      return llvm::make_error<Cancelled>();
    for (Unit *unit : missing)
      separateContractions(unit->module);
    for (auto &[name, unit] : contractions)
      if (!unit.object)
        missing.push_back(&unit);
    if (llvm::Error error = compile(context, std::move(missing)))
      return std::move(error);
    if (isCancelled)
      return llvm::make_error<Cancelled>();
  }

  std::vector<Object> objects;
  for (Unit &unit : units)
    objects.push_back(std::move(unit.object));
  for (auto &[name, unit] : contractions)
    objects.push_back(std::move(unit.object));
  return objects;
}

llvm::Expected<std::vector<Object>> ctxc::compileKernels(ArrayRef<ModuleOp> kernels,
                                                         const CpuTarget &target,
                                                         const KernelCache &cache,
                                                         const std::function<bool()> &isCancelled) {
  KernelCompiler compiler(target, cache);
  if (!isCancelled || kernels.empty())
    return compiler.compile(kernels);
  if (isCancelled())
    return llvm::make_error<Cancelled>();
  // The caller's thread is the one that may ask, and the one that diagnostics are emitted in.
  ModuleOp first = kernels.front();
  MLIRContext *context = first.getContext();
  std::vector<Diagnostic> emitted;
  auto objects = [&]() -> llvm::Expected<std::vector<Object>> {
    ScopedDiagnosticHandler keep(context, [&](Diagnostic &diagnostic) {
      emitted.push_back(std::move(diagnostic));
      return success();
    });
    auto compiled = std::async(std::launch::async, [&] { return compiler.compile(kernels); });
    while (compiled.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout)
      if (isCancelled())
        compiler.cancel();
    return compiled.get();
  }();
  for (Diagnostic &diagnostic : emitted)
    context->getDiagEngine().emit(std::move(diagnostic));
  if (objects && compiler.wasCancelled())
    return llvm::make_error<Cancelled>();
  return objects;
}
