#include "ctxc/Report/TuneReport.h"
#include "ctxc/Lowering/CpuTarget.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using llvm::formatv;

/// What is less faster is not worth an option that costs memory or exactness.
static constexpr double worth = 1.1;

/// All ways that any kind was read, in the order in which they were tried.
static llvm::SmallVector<Reading> waysOf(const Tuning &tuning) {
  llvm::SmallVector<Reading> ways;
  for (const TunedKind &kind : tuning.kinds)
    for (const TimedReading &timed : kind.tried)
      if (!llvm::is_contained(ways, timed.reading))
        ways.push_back(timed.reading);
  return ways;
}

static void writeReadings(const Tuning &tuning, llvm::raw_ostream &os) {
  const llvm::SmallVector<Reading> ways = waysOf(tuning);
  os << "GB/s of a matrix, in the mean of one vector and two, by how it is read: as so many\n"
        "streams of rows side by side, with + where lines are asked for ahead\n\n";
  os << formatv("{0,-10} {1,-14}", "kind", "matrix");
  for (const Reading &way : ways)
    os << formatv("{0,7}", way.text());
  os << "   chosen\n";
  for (const TunedKind &kind : tuning.kinds) {
    os << formatv("{0,-10} {1,-14}", kind.name,
                  formatv("{0} × {1}", kind.outputs, kind.inputs).str());
    for (const Reading &way : ways) {
      auto timed = llvm::find_if(kind.tried, [&](auto &each) { return each.reading == way; });
      os << (timed == kind.tried.end() ? std::string(7, ' ')
                                       : formatv("{0,7:F1}", timed->mean()).str());
    }
    const TimedReading &chosen = kind.tried[kind.chosen];
    os << "   " << chosen.reading.text();
    if (kind.chosen != kind.byDefault)
      os << formatv(", {0:F2} × the default, {1}",
                    chosen.mean() / kind.tried[kind.byDefault].mean(),
                    kind.tried[kind.byDefault].reading.text());
    os << "\n";
  }
}

static llvm::StringRef productsName(PromptProducts products) {
  switch (products) {
  case PromptProducts::Exact:
    return "exact";
  case PromptProducts::Split:
    return "split";
  case PromptProducts::Rounded:
    return "rounded";
  }
  llvm_unreachable("products of no known kind");
}

void ctxc::writeTuneText(const Tuning &tuning, llvm::StringRef kept, llvm::raw_ostream &os) {
  os << formatv("machine    {0}, {1} thread{2}\n", CpuTarget::host().cpu, tuning.threads,
                tuning.threads == 1 ? "" : "s");
  os << formatv("memory     {0:F1} GB/s in ordinary pages, {1:F1} in large ones\n\n",
                tuning.ordinaryPages, tuning.largePages);
  writeReadings(tuning, os);
  os << "\n";
  if (tuning.largePages > worth * tuning.ordinaryPages)
    os << formatv(
        "pages      large pages are read {0:F2} times as fast: weights that are copied into "
        "them may be, too (docs/measurements.md#large-pages)\n",
        tuning.largePages / tuning.ordinaryPages);
  if (!tuning.prompts.empty()) {
    os << "prompts    bfloat16 weights: ";
    llvm::interleaveComma(tuning.prompts, os, [&](const Tuning::TimedPrompt &each) {
      os << formatv("{0:F1} ms {1}", each.milliseconds, productsName(each.products));
    });
    os << formatv(" (256 tokens, {0} × {1})\n", tuning.kinds[1].outputs, tuning.kinds[1].inputs);
  }
  if (!kept.empty())
    os << formatv("kept       in {0}, for kernels that {1} thread{2} run\n", kept, tuning.threads,
                  tuning.threads == 1 ? "" : "s");
}

void ctxc::writeTuneJson(const Tuning &tuning, llvm::raw_ostream &os) {
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("format", "ctxc-tune");
    json.attribute("version", 1);
    json.attribute("processor", CpuTarget::host().cpu);
    json.attribute("threads", tuning.threads);
    json.attributeObject("memoryGBps", [&] {
      json.attribute("ordinaryPages", tuning.ordinaryPages);
      json.attribute("largePages", tuning.largePages);
    });
    json.attributeArray("kinds", [&] {
      for (const TunedKind &kind : tuning.kinds)
        json.object([&] {
          json.attribute("kind", kind.name);
          json.attribute("outputs", kind.outputs);
          json.attribute("inputs", kind.inputs);
          json.attribute("element", kind.element);
          json.attribute("default", kind.tried[kind.byDefault].reading.text());
          json.attribute("chosen", kind.tried[kind.chosen].reading.text());
          json.attributeArray("tried", [&] {
            for (const TimedReading &timed : kind.tried)
              json.object([&] {
                json.attribute("reading", timed.reading.text());
                json.attribute("oneVectorGBps", timed.gigabytesPerSecond[0]);
                json.attribute("twoVectorsGBps", timed.gigabytesPerSecond[1]);
              });
          });
        });
    });
    json.attributeObject("promptMilliseconds", [&] {
      for (const Tuning::TimedPrompt &each : tuning.prompts)
        json.attribute(productsName(each.products), each.milliseconds);
    });
  });
  os << "\n";
}
