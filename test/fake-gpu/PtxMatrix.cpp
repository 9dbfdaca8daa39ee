// Instructions that the lanes of a warp execute together (shuffles, matrices), and asynchronous
// copies to shared memory.
//
// The data of a cp.async arrives when its thread waits for the copy's group, not before: an access
// to the destination before that is an error. After the wait, the copy counts as a store of that
// thread, so that other threads need a barrier. The model of a tensor core truncates its sums.
#include "PtxLaunch.h"
#include <cmath>

using namespace ptx;

void Launch::shuffle(unsigned first) {
  const Instruction &i = kernel.body[all[first].at];
  const std::string &mode = i.op[2];
  const bool isButterfly = mode == "bfly", isIndex = mode == "idx", isDown = mode == "down",
             isKnown = isButterfly || isIndex || isDown || mode == "up";
  uint64_t sent[32];
  for (unsigned lane = 0; lane < 32; ++lane)
    sent[lane] = read(all[first + lane], i.operands[0]);
  for (unsigned lane = 0; lane < 32; ++lane) {
    Thread &thread = all[first + lane];
    uint64_t by = read(thread, i.operands[1]);
    unsigned from = isButterfly ? lane ^ by : isIndex ? by : isDown ? lane + by : lane - by;
    if (uint32_t(read(thread, i.operands[3])) != 0xffffffff || !isKnown || from > 95)
      return fail(thread, "a shuffle of another kind");
    write(thread, i, sent[from < 32 ? from : lane]);
    thread.state = Thread::Running;
    ++thread.at;
  }
}

/// Lane 8 m + r gives the address of row r of matrix m, 16 bytes; lane l receives word l mod 4 of
/// row l / 4 of each matrix.
void Launch::loadMatrices(unsigned first) {
  const Instruction &i = kernel.body[all[first].at];
  for (size_t m = 0; m < i.results.size(); ++m) {
    unsigned banks = 0;
    for (unsigned r = 0; r < 8; ++r) {
      Thread &named = all[first + 8 * m + r];
      uint64_t address = read(named, i.operands[0]) + i.offset;
      if (!isInShared(address, 16))
        return fail(named, "a load from outside");
      if (address % 16)
        return fail(named, "an address that is not aligned");
      banks |= 1u << address / 16 % 8;
      for (unsigned word = 0; word < 4; ++word) {
        Thread &thread = all[first + 4 * r + word];
        touch(thread, true, address + 4 * word, false, false);
        uint32_t bits;
        std::memcpy(&bits, shared.data() + address + 4 * word, sizeof bits);
        thread.registers[i.results[m]] = bits;
      }
    }
    if (banks != 0xff)
      return fail(all[first + 8 * m], "rows of a matrix that are in the same banks");
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    all[first + lane].state = Thread::Running;
    ++all[first + lane].at;
  }
}

/// m16n8k16 of bfloat16, rows by columns, into float32. In lane 4 g + t, the words of A are the
/// elements (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), those of B are (2t, g), (2t + 8,
/// g), each together with the element of the next k; the sums are (g, 2t), (g, 2t + 1), (g + 8,
/// 2t), (g + 8, 2t + 1).
void Launch::multiplyMatrices(unsigned first) {
  const Instruction &i = kernel.body[all[first].at];
  float a[16][16], b[16][8];
  auto half = [](uint64_t word, unsigned which) {
    return as<float>(uint32_t(word >> (16 * which) << 16));
  };
  for (unsigned lane = 0; lane < 32; ++lane) {
    const Thread &thread = all[first + lane];
    unsigned g = lane / 4, t = lane % 4;
    for (unsigned word = 0; word < 4; ++word)
      for (unsigned h = 0; h < 2; ++h)
        a[g + word % 2 * 8][2 * t + word / 2 * 8 + h] = half(read(thread, i.operands[word]), h);
    for (unsigned word = 0; word < 2; ++word)
      for (unsigned h = 0; h < 2; ++h)
        b[2 * t + word * 8 + h][g] = half(read(thread, i.operands[4 + word]), h);
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    Thread &thread = all[first + lane];
    unsigned g = lane / 4, t = lane % 4;
    float sums[4];
    for (unsigned c = 0; c < 4; ++c) {
      double sum = as<float>(read(thread, i.operands[6 + c]));
      for (unsigned k = 0; k < 16; ++k)
        sum += double(a[g + c / 2 * 8][k]) * b[k][2 * t + c % 2];
      sums[c] = float(sum);
      if (std::fabs(sums[c]) > std::fabs(sum))
        sums[c] = std::nextafter(sums[c], 0.0f);
    }
    for (unsigned c = 0; c < 4; ++c)
      thread.registers[i.results[c]] = as<uint32_t>(sums[c]);
    thread.state = Thread::Running;
    ++thread.at;
  }
}

void Launch::beginCopy(Thread &thread, const Instruction &i) {
  AsyncCopy copy{read(thread, i.operands[0]) + i.offset};
  uint64_t from = read(thread, i.operands[1]) + i.sourceOffset;
  uint64_t bytes = i.operands.size() > 3 ? uint32_t(read(thread, i.operands[3])) : 16;
  if (read(thread, i.operands[2]) != 16 || bytes > 16)
    return fail(thread, "unknown form of copy");
  if (!isInShared(copy.to, 16))
    return fail(thread, "a store outside");
  if (bytes && !isValid(from, bytes))
    return fail(thread, "a load from outside");
  if (copy.to % 16 || from % 16)
    return fail(thread, "an address that is not aligned");
  for (uint64_t at = 0; at < bytes; at += 2)
    touch(thread, false, from + at, false, false);
  std::memcpy(copy.bytes, reinterpret_cast<char *>(from), bytes);
  for (uint64_t at = 0; at < 16; at += 4) {
    touch(thread, true, copy.to + at, true, false);
    sharedTouches[(copy.to + at) / 4].isUnderWay = true;
  }
  thread.copies.push_back(copy);
}

void Launch::waitForGroups(Thread &thread, size_t left) {
  for (; thread.groups.size() > left; thread.groups.erase(thread.groups.begin()))
    for (const AsyncCopy &copy : thread.groups.front()) {
      std::memcpy(shared.data() + copy.to, copy.bytes, 16);
      for (uint64_t at = 0; at < 16; at += 4) {
        sharedTouches[(copy.to + at) / 4].isUnderWay = false;
        touch(thread, true, copy.to + at, true, false);
      }
    }
}
