// What the cache of kernels returns, and what it does not trust.
#include "ctxc/Lowering/KernelCache.h"
#include "TextModel.h"
#include "ctxc/Lowering/Codegen.h"
#include "ctxc/Program/Executor.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <thread>

using namespace ctxc;
using namespace ctxc::test;
namespace fs = llvm::sys::fs;

namespace {

struct KernelCacheTest : testing::Test {
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(fs::createUniqueDirectory("ctxc-unit", path));
    root = path.str().str();
  }
  void TearDown() override { fs::remove_directories(root); }

  std::string only() {
    std::error_code error;
    for (fs::directory_iterator i(root + "/kernels", error), end; !error && i != end;
         i.increment(error))
      if (llvm::sys::path::filename(i->path()).starts_with("llvmcache-"))
        return i->path();
    return "";
  }
  static void write(const std::string &path, llvm::StringRef content) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << content;
    ASSERT_FALSE(error) << error.message();
  }
  static std::string read(const std::string &path) {
    return (*llvm::MemoryBuffer::getFile(path))->getBuffer().str();
  }

  std::string root, key = std::string(64, 'a');
};

TEST_F(KernelCacheTest, GivesBackWhatWasPutIn) {
  KernelCache cache(root + "/kernels");
  ASSERT_TRUE(cache.isOn());
  EXPECT_EQ(cache.find(key), nullptr);
  cache.insert(key, llvm::StringRef("code\0more", 9));
  KernelCache again(root + "/kernels");
  auto found = again.find(key);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->getBuffer(), llvm::StringRef("code\0more", 9));
  EXPECT_EQ(again.find(std::string(64, 'b')), nullptr);
}

TEST_F(KernelCacheTest, TrustsNoDamagedFile) {
  KernelCache cache(root + "/kernels");
  cache.insert(key, "some code");
  std::string path = only(), whole = read(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    write(path, damaged);
    EXPECT_EQ(cache.find(key), nullptr) << "byte " << at;
    write(path, llvm::StringRef(whole).take_front(at));
    EXPECT_EQ(cache.find(key), nullptr) << at << " bytes";
  }
  cache.insert(key, "some code");
  EXPECT_NE(cache.find(key), nullptr);
}

/// Another kernel's code under this kernel's name would run with this one's arguments.
TEST_F(KernelCacheTest, TrustsNoFileUnderAnotherName) {
  KernelCache cache(root + "/kernels");
  cache.insert(key, "some code");
  std::string other(64, 'b');
  ASSERT_FALSE(fs::copy_file(only(), root + "/kernels/llvmcache-" + other));
  EXPECT_EQ(cache.find(other), nullptr);
  EXPECT_NE(cache.find(key), nullptr);
}

TEST_F(KernelCacheTest, IsOffWhereOthersMayWrite) {
  std::string directory = root + "/kernels";
  for (int mode : {0770, 0720, 0702, 0777}) {
    ASSERT_FALSE(fs::create_directory(directory));
    ASSERT_FALSE(fs::setPermissions(directory, fs::perms(mode)));
    KernelCache cache(directory);
    EXPECT_FALSE(cache.isOn()) << mode;
    cache.insert(key, "some code");
    EXPECT_EQ(cache.find(key), nullptr);
    EXPECT_EQ(only(), "");
    ASSERT_FALSE(fs::remove_directories(directory));
  }
  write(directory, "a file");
  EXPECT_FALSE(KernelCache(directory).isOn());
  EXPECT_FALSE(KernelCache("").isOn());
}

TEST_F(KernelCacheTest, KeysAreOfTheKernelAndTheProcessor) {
  auto keyFor = [](int64_t out, CpuTarget target) {
    BlockText b("ops", 5);
    b.output(b.linear(b.input(), out));
    TextModel model(modelText({b}));
    EXPECT_EQ(model.compile(), "");
    auto kernels = buildKernelModule(kernelBlocks(model.program));
    return KernelCache::keyOf(**kernels, target);
  };
  CpuTarget host = CpuTarget::host(), other = host, wider = host, optimised = host, paired = host,
            ahead = host, tiled = host;
  other.features += ",-fma";
  wider.lanes += 1;
  optimised.optimisation = host.optimisation == 3 ? 1 : 3;
  paired.bfloatPairs = !host.bfloatPairs;
  tiled.tiles = !host.tiles;
  ahead.readings.half.asksAhead = !host.readings.half.asksAhead;
  EXPECT_EQ(keyFor(5, host), keyFor(5, host));
  EXPECT_NE(keyFor(5, host), keyFor(6, host));
  EXPECT_NE(keyFor(5, host), keyFor(5, other));
  EXPECT_NE(keyFor(5, host), keyFor(5, wider));
  EXPECT_NE(keyFor(5, host), keyFor(5, optimised));
  EXPECT_NE(keyFor(5, host), keyFor(5, paired));
  EXPECT_NE(keyFor(5, host), keyFor(5, ahead));
  EXPECT_NE(keyFor(5, host), keyFor(5, tiled));
}

/// The process may use LLVM for other things as well.
TEST_F(KernelCacheTest, CompilingLeavesLlvmsOptionsAsTheyAre) {
  BlockText b("ops", 5);
  b.output(b.linear(b.input(), 5));
  EXPECT_EQ(TextModel(modelText({b})).compile(), "");
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    EXPECT_EQ(option->getNumOccurrences(), 0) << name.str();
}

/// Two kernels that call one contraction.
std::string twoKernels() {
  std::string text;
  for (const char *block : {"plain", "normed"}) {
    BlockText b(block, 33);
    auto y = b.linear(b.input(), 33, "bf16");
    b.output(block[0] == 'p' ? y : b.unary("normalize rms", y, " eps 1.0e-5"));
    text += b.text();
  }
  return text;
}

llvm::Expected<std::vector<std::unique_ptr<llvm::MemoryBuffer>>>
compileBlocks(llvm::StringRef text, const KernelCache &cache,
              const std::function<bool()> &isCancelled = {}) {
  mlir::DialectRegistry registry;
  registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto source = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> kernels;
  std::vector<mlir::ModuleOp> modules;
  for (xf::BlockOp block : source->getOps<xf::BlockOp>()) {
    kernels.push_back(*buildKernelModule(block));
    modules.push_back(*kernels.back());
  }
  return compileKernels(modules, CpuTarget::host(), cache, isCancelled);
}

/// A kernel refers to the contractions that it calls. It is found in the cache with all of them or
/// not at all.
TEST_F(KernelCacheTest, ContractionsAreCompiledOnce) {
  KernelCache cache(root + "/kernels");
  std::string path =
      root + "/kernels/llvmcache-" + KernelCache::keyOf("contract_33x33_bf16", CpuTarget::host());
  auto compile = [&] {
    auto objects = llvm::cantFail(compileBlocks(twoKernels(), cache));
    EXPECT_EQ(objects.size(), 3u);
    auto library = llvm::cantFail(KernelLibrary::load(std::move(objects)));
    for (const char *kernel : {"ctxc_plain", "ctxc_normed"})
      EXPECT_NE(llvm::cantFail(library->kernel(kernel)), nullptr);
  };
  compile();
  EXPECT_TRUE(fs::exists(path));
  compile();
  ASSERT_FALSE(fs::remove(path));
  compile();
  EXPECT_TRUE(fs::exists(path));
}

/// Whenever it is that a compilation is cancelled, what is in the cache afterwards can be used.
TEST_F(KernelCacheTest, ACompilationIsCancelled) {
  KernelCache cache(root + "/kernels");
  for (int after : {0, 1, 2, 4, 8}) {
    std::thread::id self = std::this_thread::get_id();
    int asked = 0;
    auto objects = compileBlocks(twoKernels(), cache, [&] {
      EXPECT_EQ(std::this_thread::get_id(), self);
      return ++asked > after;
    });
    EXPECT_EQ(bool(objects), asked <= after) << after;
    if (!objects) {
      llvm::Error error = objects.takeError();
      EXPECT_TRUE(error.isA<Cancelled>()) << after;
      llvm::consumeError(std::move(error));
    }
  }
  EXPECT_EQ(llvm::cantFail(compileBlocks(twoKernels(), cache)).size(), 3u);
}

/// What one executor has compiled, the next takes from the cache, with the same results bit for
/// bit.
TEST_F(KernelCacheTest, CachedKernelsGiveTheSameNumbers) {
  ::setenv("XDG_CACHE_HOME", root.c_str(), 1);
  BlockText b("ops", 33);
  b.output(b.unary("normalize rms", b.linear(b.input(), 33, "bf16"), " eps 1.0e-5"));
  std::vector<int64_t> tokens = someTokens(5, 1), at = upTo(5);
  auto logits = [&] {
    TextModel model(modelText({b}), 1);
    EXPECT_EQ(model.compile(/*cached=*/true), "");
    auto run = model.compiled->start(5);
    return see(*model.compiled, *run, tokens, at).logits;
  };
  std::vector<double> first = logits();
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator i(root + "/ctxc/kernels", error), end; !error && i != end;
       i.increment(error))
    if (llvm::sys::path::filename(i->path()).starts_with("llvmcache-"))
      files.push_back(i->path());
  EXPECT_GE(files.size(), 2u); // the block and the head
  EXPECT_EQ(first, logits());
  // A kernel whose code is damaged is compiled again.
  for (const std::string &file : files)
    write(file, "nonsense");
  EXPECT_EQ(first, logits());
  for (const std::string &file : files)
    EXPECT_NE(read(file), "nonsense");
  ::setenv("CTXC_KERNEL_CACHE", "off", 1);
}

} // namespace
