// docs/op-capabilities.md: what each op takes part in, as its interfaces say, and why a hole is
// one. CTXC_WRITE_DOCS=1 writes the page.
#include "ctxc/Gradient/Tape.h"
#include "ctxc/Lowering/Kernel.h"
#include "ctxc/Lowering/KernelEmitter.h"
#include "ctxc/Reference/Evaluation.h"
#include "ctxc/Session/Model.h"
#include "ctxc/Shard/Split.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Patch/Patch.h"
#include "dialects/XF/Sizes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <fstream>
#include <set>

using namespace ctxc;
using llvm::StringRef;

namespace {

std::string read(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().str() : "";
}

/// All files of a folder, one after the other.
std::string readAll(StringRef folder) {
  std::string text;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(folder, error), end; at != end && !error;
       at.increment(error))
    text += read(at->path());
  return text;
}

template <typename Interface> bool has(mlir::OperationName op) {
  return op.hasInterface<Interface>();
}

bool isInPyTorch(mlir::OperationName op) {
  static const std::string text = readAll("python/ctxc/torch");
  return StringRef(text).contains(("@meaning(\"" + op.getStringRef() + "\")").str());
}

/// "xf.top_k" is made as xf::TopKOp.
bool isRaised(mlir::OperationName op) {
  if (op.getDialectNamespace() != "xf")
    return false;
  static const std::string text = readAll("lib/Import/Graph");
  std::string name = op.stripDialect() == "contextual" ? "xf::Opaque" : "xf::";
  bool starts = true;
  for (char letter : op.stripDialect()) {
    if (letter != '_')
      name += starts ? llvm::toUpper(letter) : letter;
    starts = letter == '_';
  }
  return StringRef(text).contains(name + "Op::create");
}

struct Column {
  const char *name;
  bool (*has)(mlir::OperationName);
};
constexpr Column columns[] = {
    {"facts", has<xf::FactsOpInterface>},
    {"reach", has<xf::ReachOpInterface>},
    {"sizes", has<xf::SizesOpInterface>},
    {"reference", has<reference::ReferenceOpInterface>},
    {"gradient", has<gradient::DifferentiableOpInterface>},
    {"kernel", has<LinalgLoweringOpInterface>},
    {"split", has<shard::SplitOpInterface>},
    {"PyTorch", isInPyTorch},
    {"raised", isRaised},
};

/// Why ops lack what a column says: those named, or all of a dialect ("patch.*"), or any ("*"). The
/// first that fits counts.
struct Reason {
  const char *columns, *ops, *why;
};
constexpr Reason reasons[] = {
    {"*", "kernel.*", "It stands in linalg, of which kernels are made, behind all of these."},
    {"*", "xf.contextual",
     "It stands for an unknown function that reads the context: only analyses go on with it, and "
     "assume the worst case."},
    {"facts reach sizes", "patch.*", "The analyses judge blocks before they are patched."},
    {"gradient", "patch.*", "Gradients are pulled back through blocks that are not patched."},
    {"raised", "patch.*", "The compiler writes it, into dual and applied blocks."},
    {"facts", "xf.constant xf.position xf.token xf.top_k",
     "Its results are whole numbers; facts are about floating-point numbers."},
    {"facts", "xf.decaying_mean xf.linear_attention",
     "Nothing is known of its result, which is the worst case for a verdict."},
    {"reach", "xf.constant xf.param xf.position xf.setting xf.token",
     "It has no operand that a patch could move."},
    {"reach", "*",
     "Its result may reach every value that its facts allow, which is the worst case for a "
     "rejection."},
    {"sizes", "*", "Sizes that are equal stay equal, and none of its attributes has one."},
    {"gradient", "xf.conv xf.decaying_mean xf.linear_attention xf.scan",
     "Gradients through a state are not written: `ctxc distil` refuses to refine such a model."},
    {"gradient", "xf.combine xf.expert_linear xf.gather xf.outer xf.top_k",
     "Gradients through a selection of experts are not written: `ctxc distil` refuses to refine "
     "such a model."},
    {"gradient", "xf.constant xf.embed xf.token",
     "`ctxc distil` refuses to refine a model whose layers read it."},
    {"split", "*", "Every rank computes it, on whole values."},
    {"PyTorch", "xf.decaying_mean", "It is not written: `ctxc.torch` refuses a module with it."},
    {"raised", "xf.scan",
     "PyTorch's recurrences are raised as `xf.linear_attention` or `xf.decaying_mean`."},
    {"raised", "xf.outer",
     "PyTorch writes it as a product of broadcast values, which is raised as one."},
};

/// Whether a word of `words` is `name`, or begins like it and ends in a star.
bool has(StringRef words, StringRef name) {
  llvm::SmallVector<StringRef> each;
  words.split(each, ' ');
  return llvm::any_of(each, [&](StringRef word) {
    return word == name || (word.consume_back("*") && name.starts_with(word));
  });
}

constexpr const char *head =
    R"(<!-- Written by test/unit/Session/CapabilitiesTest.cpp with CTXC_WRITE_DOCS=1; edit that. -->

# What each op takes part in

An op takes part in what it has an interface for ([adding an op](new-op.md)). A number is a hole, and says below why it is one.

- *facts*, *reach*: what the analyses know of its result; *sizes*: a block with it can be rewritten with other sizes
- *reference*: it runs in float64; *gradient*: gradients are pulled back through it
- *kernel*: it is compiled, for processors and for GPUs, which get the same linalg; *split*: ranks share it
- *PyTorch*: `ctxc.torch` carries it out; *raised*: PyTorch's programs are read as it

)";

TEST(Capabilities, ArePublished) {
  mlir::DialectRegistry registry;
  registerModelDialects(registry);
  registerLoweringModels(registry);
  registry.insert<kernel::KernelDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();

  std::string page = head;
  page += "| op |";
  for (const Column &column : columns)
    page += std::string(" ") + column.name + " |";
  page += "\n|---|";
  for (size_t i = 0; i < std::size(columns); ++i)
    page += ":-:|";
  page += "\n";
  const std::set<StringRef> structure = {"xf.block", "xf.layer", "xf.model", "xf.yield"};
  std::vector<const Reason *> used;
  auto ops = llvm::to_vector(context.getRegisteredOperations());
  llvm::sort(ops, [](auto a, auto b) { return a.getStringRef() < b.getStringRef(); });
  for (mlir::RegisteredOperationName op : ops) {
    StringRef dialect = op.getDialectNamespace();
    if ((dialect != "xf" && dialect != "patch" && dialect != "kernel") ||
        structure.count(op.getStringRef()))
      continue;
    page += ("| `" + op.getStringRef() + "` |").str();
    for (const Column &column : columns) {
      if (column.has(op)) {
        page += " ✓ |";
        continue;
      }
      const Reason *why = llvm::find_if(reasons, [&](const Reason &r) {
        return has(r.columns, column.name) && has(r.ops, op.getStringRef());
      });
      ASSERT_NE(why, std::end(reasons)) << op.getStringRef().str() << ": " << column.name;
      if (!llvm::is_contained(used, why))
        used.push_back(why);
      page += " " + std::to_string(llvm::find(used, why) - used.begin() + 1) + " |";
    }
    page += "\n";
  }
  page += "\n";
  for (auto [number, why] : llvm::enumerate(used))
    page += std::to_string(number + 1) + ". " + why->why + "\n";
  for (const Reason &reason : reasons)
    EXPECT_TRUE(llvm::is_contained(used, &reason)) << reason.columns << " " << reason.ops;

  constexpr const char *file = "docs/op-capabilities.md";
  if (getenv("CTXC_WRITE_DOCS"))
    std::ofstream(file) << page;
  EXPECT_EQ(page, read(file))
      << "CTXC_WRITE_DOCS=1 unit-Session --gtest_filter=Capabilities.* writes it";
}

} // namespace
