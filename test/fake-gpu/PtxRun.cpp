#include "PtxLaunch.h"

using namespace ptx;

std::string Launch::run() {
  all.resize(threads);
  registers.resize(threads * kernel.registers.size());
  // Blocks may run in any order; this one is unusual on purpose.
  for (block = blocks; block-- > 0 && error.empty();)
    runBlock();
  return error;
}

void Launch::fail(const Thread &thread, const std::string &what) {
  if (error.empty())
    error = kernel.name + ", block " + std::to_string(block) + ", thread " +
            std::to_string(thread.id) + ": " + what + ": " +
            kernel.body[std::min(thread.at, kernel.body.size() - 1)].text;
}

void Launch::beginBlock() {
  for (unsigned i = 0; i < threads; ++i) {
    Thread &thread = all[i];
    thread.id = i;
    thread.at = 0;
    thread.state = Thread::Running;
    thread.registers = registers.data() + i * kernel.registers.size();
    std::copy(kernel.registers.begin(), kernel.registers.end(), thread.registers);
    for (auto [place, special] : kernel.specials)
      thread.registers[place] = special == Kernel::Thread    ? i
                                : special == Kernel::Block   ? block
                                : special == Kernel::Threads ? threads
                                                             : blocks;
    thread.copies.clear();
    thread.groups.clear();
  }
  shared.assign(kernel.sharedBytes, char(0xff));
  sharedTouches.assign((kernel.sharedBytes + 3) / 4, Touch());
  epoch = 1;
}

void Launch::runBlock() {
  beginBlock();
  for (;;) {
    for (unsigned first = 0; first < threads && error.empty(); first += 32)
      runWarp(first, std::min(first + 32, threads));
    if (!error.empty())
      return;
    size_t done = std::count_if(all.begin(), all.end(),
                                [](const Thread &t) { return t.state == Thread::Done; });
    if (done == all.size())
      return;
    size_t barrier = all[0].at;
    for (Thread &thread : all) {
      if (thread.state == Thread::Done || thread.at != barrier)
        return fail(thread, "a barrier that not all threads come to");
      thread.state = Thread::Running;
      ++thread.at;
    }
    ++epoch;
  }
}

/// Runs until all threads of the warp are done or at a barrier.
void Launch::runWarp(unsigned first, unsigned last) {
  for (;;) {
    for (unsigned i = first; i < last && error.empty(); ++i)
      while (all[i].state == Thread::Running && error.empty())
        step(all[i]);
    if (!error.empty())
      return;
    auto together = [&](const Thread &t) { return t.state == Thread::AtWarp; };
    if (std::none_of(&all[first], &all[first] + (last - first), together))
      return;
    for (unsigned i = first; i < last; ++i)
      if (last - first < 32 || !together(all[i]) || all[i].at != all[first].at)
        return fail(all[i],
                    std::string(kernel.body[all[first].at].code == Instruction::MultiplyMatrices
                                    ? "a product"
                                : kernel.body[all[first].at].code == Instruction::LoadMatrices
                                    ? "a load of matrices"
                                    : "a shuffle") +
                        " that not all lanes come to");
    switch (kernel.body[all[first].at].code) {
    case Instruction::LoadMatrices:
      loadMatrices(first);
      break;
    case Instruction::MultiplyMatrices:
      multiplyMatrices(first);
      break;
    default:
      shuffle(first);
    }
  }
}

void Launch::step(Thread &thread) {
  if (thread.at >= kernel.body.size())
    return fail(thread, "the end without a return");
  const Instruction &i = kernel.body[thread.at];
  if (i.isGuarded && bool(read(thread, i.guard)) == i.isNegated) {
    ++thread.at;
    return;
  }
  switch (i.code) {
  case Instruction::Branch:
    thread.at = i.target;
    return;
  case Instruction::Return:
    thread.state = Thread::Done;
    return;
  case Instruction::Barrier:
    thread.state = Thread::AtBarrier;
    return;
  case Instruction::Shuffle:
  case Instruction::LoadMatrices:
  case Instruction::MultiplyMatrices:
    thread.state = Thread::AtWarp;
    return;
  case Instruction::LoadParameter:
    write(thread, i, arguments[i.offset]);
    break;
  case Instruction::Load:
  case Instruction::Store:
    access(thread, i);
    break;
  case Instruction::Move:
    write(thread, i, narrow(read(thread, i.operands[0]), i.type));
    break;
  case Instruction::Unpack: {
    uint64_t bits = read(thread, i.operands[0]);
    unsigned width = 8 * sizeOf(i.type) / i.results.size();
    for (size_t k = 0; k < i.results.size(); ++k)
      thread.registers[i.results[k]] = bits >> (k * width) & ((uint64_t(1) << width) - 1);
    break;
  }
  case Instruction::Pack: {
    uint64_t bits = 0;
    unsigned width = 8 * sizeOf(i.type) / i.operands.size();
    for (size_t k = 0; k < i.operands.size(); ++k)
      bits |= (read(thread, i.operands[k]) & ((uint64_t(1) << width) - 1)) << (k * width);
    write(thread, i, bits);
    break;
  }
  case Instruction::Select:
    write(thread, i,
          narrow(read(thread, i.operands[read(thread, i.operands[2]) & 1 ? 0 : 1]), i.type));
    break;
  case Instruction::MulWide:
    write(thread, i,
          narrow(whole(read(thread, i.operands[0]), i.type) *
                     whole(read(thread, i.operands[1]), i.type),
                 sizeOf(i.type) == 2 ? Type::B32 : Type::B64));
    break;
  case Instruction::Compare:
    compare(thread, i);
    break;
  case Instruction::Convert:
    convert(thread, i);
    break;
  case Instruction::Arithmetic:
    write(thread, i, arithmetic(thread, i));
    break;
  case Instruction::BeginCopy:
    beginCopy(thread, i);
    break;
  case Instruction::CommitCopies:
    thread.groups.push_back(std::move(thread.copies));
    thread.copies.clear();
    break;
  case Instruction::WaitForCopies:
    waitForGroups(thread, read(thread, i.operands[0]));
    break;
  }
  ++thread.at;
}

bool Launch::isValid(uint64_t address, uint64_t bytes) {
  for (Range range : ranges)
    if (range.holds(address, bytes))
      return true;
  ranges.push_back(rangeOf(address));
  return ranges.back().holds(address, bytes);
}

/// Loads a number of `size` bytes.
static uint64_t load(const char *at, unsigned size) {
  switch (size) {
  case 1:
    return uint8_t(*at);
  case 2: {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return bits;
  }
  case 4: {
    uint32_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return bits;
  }
  }
  uint64_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

void Launch::access(Thread &thread, const Instruction &i) {
  unsigned size = sizeOf(i.type), bytes = size * i.results.size();
  uint64_t address = read(thread, i.operands[0]) + i.offset;
  bool stores = i.code == Instruction::Store;
  if (i.isShared ? !isInShared(address, bytes) : !isValid(address, bytes))
    return fail(thread, stores ? "a store outside" : "a load from outside");
  if (address % bytes)
    return fail(thread, "an address that is not aligned");
  char *memory = i.isShared ? shared.data() + address : reinterpret_cast<char *>(address);
  for (size_t k = 0; k < i.results.size(); ++k) {
    char *at = memory + k * size;
    uint64_t there = load(at, size);
    uint64_t bits = stores ? narrow(read(thread, i.results[k]), i.type) : there;
    touch(thread, i.isShared, address + k * size, stores, stores && bits == there);
    if (!stores)
      thread.registers[i.results[k]] = isSigned(i.type) ? uint64_t(whole(bits, i.type)) : bits;
    else if (bits != there)
      std::memcpy(at, &bits, size);
  }
}

Touch &Launch::touchOf(uint64_t address) {
  uint64_t number = address / 256;
  auto &known = lately[number % std::size(lately)];
  if (!known.page || known.number != number)
    known = {number, &touches[number]};
  return known.page->pieces[address % 256 / 2];
}

/// Finds races: another thread reads or writes what a thread has written, before both have passed a
/// barrier, or from another block. Storing the value that is already there is allowed.
void Launch::touch(Thread &thread, bool isShared, uint64_t address, bool stores, bool isSame) {
  Touch &word = isShared ? sharedTouches[address / 4] : touchOf(address);
  if (word.isUnderWay)
    return fail(thread, "memory that a copy is under way to");
  int32_t who = isShared ? thread.id : block * threads + thread.id;
  auto isOther = [&](int32_t other, uint32_t when) {
    return other >= 0 && other != who &&
           (when == epoch || (!isShared && other / int32_t(threads) != int32_t(block)));
  };
  if (isOther(word.writer, word.written) && !isSame)
    return fail(thread, "a race with thread " + std::to_string(word.writer) + "'s store");
  if (stores && !isSame && isOther(word.reader, word.read))
    return fail(thread, "a race with thread " + std::to_string(word.reader) + "'s load");
  if (stores && !isSame)
    word.writer = who, word.written = epoch;
  else if (!stores)
    word.reader = who, word.read = epoch;
}

std::string ptx::run(const Kernel &kernel, unsigned blocks, unsigned threads,
                     const std::vector<uint64_t> &arguments, const RangeOf &rangeOf) {
  return Launch(kernel, blocks, threads, arguments, rangeOf).run();
}
