// Ranks that share a model's layers, as threads of one process.
#ifndef CTXC_TEST_UNIT_SHARD_TENSORRANKS_H
#define CTXC_TEST_UNIT_SHARD_TENSORRANKS_H

#include "ctxc/Shard/Split.h"
#include "test/unit/PatchAll.h"
#include <condition_variable>
#include <mutex>
#include <thread>

namespace ctxc::test {

/// Where ranks make values whole: the last one to come computes them for all.
class Meeting {
public:
  explicit Meeting(int64_t ranks) : given(ranks) {}

  void come(int64_t rank, llvm::ArrayRef<SharedRows> values) {
    std::unique_lock<std::mutex> lock(mutex);
    given[rank] = values;
    if (++there == given.size()) {
      for (size_t i = 0; i < values.size(); ++i)
        makeWhole(i);
      there = 0;
      ++meetings;
      changed.notify_all();
      return;
    }
    changed.wait(lock, [this, number = meetings] { return meetings != number; });
  }

private:
  void makeWhole(size_t i) {
    StreamRows whole(given[0][i].to->size());
    for (auto [rank, values] : llvm::enumerate(given)) {
      const StreamRows &part = *values[i].from;
      const shard::Transfer &how = *values[i].how;
      if (how.kind == shard::Transfer::Sum) {
        EXPECT_EQ(part.size(), whole.size());
        for (auto [sum, term] : llvm::zip(whole, part))
          sum += term;
        continue;
      }
      const size_t rows = whole.size() / how.cut.wholeSize();
      EXPECT_EQ(part.size(), rows * how.cut.partSize(rank));
      for (size_t row = 0; row < rows; ++row)
        how.cut.visitRuns(
            rank, [&, rank = rank, row = row](int64_t inWhole, int64_t inPart, int64_t count) {
              std::copy_n(part.begin() + row * how.cut.partSize(rank) + inPart, count,
                          whole.begin() + row * how.cut.wholeSize() + inWhole);
            });
    }
    for (auto [rank, values] : llvm::enumerate(given))
      if (rank == 0 || values[i].how->kind != shard::Transfer::Collect)
        *values[i].to = whole;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<llvm::ArrayRef<SharedRows>> given;
  size_t there = 0, meetings = 0;
};

/// One rank's way to the others. There is one stage.
class Member : public Neighbours {
public:
  Member(Meeting &meeting, int64_t rank) : meeting(meeting), rank(rank) {}
  llvm::Error receive(llvm::ArrayRef<StreamRows *>) override { llvm_unreachable("one stage"); }
  llvm::Error send(llvm::ArrayRef<const StreamRows *>) override { llvm_unreachable("one stage"); }
  llvm::Error makeWhole(llvm::ArrayRef<SharedRows> values) override {
    meeting.come(rank, values);
    return llvm::Error::success();
  }

private:
  Meeting &meeting;
  int64_t rank;
};

/// Executors that share the layers of a model.
class TensorRanks {
public:
  TensorRanks(Model &model, int64_t ranks) : meeting(ranks) {
    mlir::DialectRegistry registry;
    shard::registerSplitModels(registry);
    model.context.appendDialectRegistry(registry);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      blocks.push_back(std::make_unique<shard::LocalBlocks>(model.context, rank, ranks));
      refusal = llvm::toString(blocks.back()->add(model.program));
      if (!refusal.empty())
        return;
      members.push_back(std::make_unique<Member>(meeting, rank));
      CompiledOptions options;
      options.threads = 1;
      options.neighbours = members.back().get();
      options.local = blocks.back().get();
      auto made = createCompiledExecutor(model.program, *model.weights, options);
      if (!made) {
        refusal = llvm::toString(made.takeError());
        return;
      }
      executors.push_back(std::move(*made));
    }
  }

  /// Has every rank do the same, and returns what each gives.
  template <typename Result> std::vector<Result> each(llvm::function_ref<Result(Executor &)> work) {
    std::vector<Result> results(executors.size());
    std::vector<std::thread> threads;
    for (auto [executor, result] : llvm::zip_equal(executors, results))
      threads.emplace_back(
          [&work, &executor = *executor, &result = result] { result = work(executor); });
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }

  std::string refusal; ///< empty, or why the model cannot be shared
  std::vector<std::unique_ptr<shard::LocalBlocks>> blocks;

private:
  Meeting meeting;
  std::vector<std::unique_ptr<Member>> members;
  std::vector<std::unique_ptr<Executor>> executors;
};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_SHARD_TENSORRANKS_H
