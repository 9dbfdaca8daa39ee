#include "lib/Runtime/GPU/GpuRanks.h"
#include "ctxc/Runtime/Shard/Ranks.h"
#include "ctxc/Support/Error.h"
#include "lib/Runtime/KernelArguments.h"

using namespace ctxc;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using shard::Transfer;

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

/// The sum of numbers of each rank, through the hosts.
static Error sumOf(Neighbours &neighbours, Rows &numbers) {
  Transfer how;
  how.kind = Transfer::Sum;
  how.elements = numbers.size();
  const Rows own = numbers;
  SharedRows shared{&how, &own, &numbers, /*isCounted=*/false};
  return neighbours.makeWhole(shared);
}

Expected<bool> GpuRanks::all(bool mine) {
  Rows refusing(1, mine ? 0 : 1);
  if (Error error = sumOf(*share.neighbours, refusing))
    return std::move(error);
  return refusing.front() == 0;
}

/// Gives all ranks the bytes of the first; those of the others are zero.
Error GpuRanks::sumBytes(std::vector<char> &bytes) {
  Rows numbers;
  for (char byte : bytes)
    numbers.push_back(static_cast<unsigned char>(byte));
  if (Error error = sumOf(*share.neighbours, numbers))
    return error;
  for (auto [byte, number] : llvm::zip_equal(bytes, numbers))
    byte = static_cast<char>(static_cast<unsigned char>(number));
  return Error::success();
}

Error GpuRanks::join() {
  auto opened = device.openSums();
  if (opened)
    sums = std::move(*opened);
  else
    whyHosts = llvm::toString(opened.takeError());
  Expected<bool> can = all(bool(sums));
  if (!can || !*can) {
    if (sums)
      whyHosts = "another rank lacks the library that adds up numbers of several devices";
    sums.reset();
    return can.takeError();
  }
  std::vector<char> id(sums->idBytes());
  std::string refusal;
  if (rank() == 0) {
    auto made = sums->makeId();
    if (made)
      id = std::move(*made);
    else
      refusal = llvm::toString(made.takeError());
  }
  if (auto isMade = all(refusal.empty()); !isMade || !*isMade)
    return isMade ? makeError(refusal.empty() ? "the first rank could not make a group of devices"
                                              : refusal)
                  : isMade.takeError();
  if (Error error = sumBytes(id))
    return error;
  // From here on, a rank that fails leaves others waiting within the library.
  return fatal(sums->join(id, int(rank()), int(blocks().ranks()), *share.neighbours));
}

Error GpuRanks::meet() {
  if (!sums)
    return Error::success(); // the hosts meet at each transfer
  return all(true).takeError();
}

Error GpuRanks::fatal(Error error) const {
  if (!error || !sums || error.isA<RanksLost>())
    return error;
  return llvm::make_error<RanksLost>(llvm::toString(std::move(error)));
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

static size_t floats(int64_t count) { return count * sizeof(float); }

/// Copies rank `of`'s part of each row into the whole value, or out of it. The parts lie together
/// in `part`, from `offset` on.
Error GpuRanks::copyPart(const DeviceTransfer &transfer, int64_t rows, int64_t of,
                         Device::Buffer *part, size_t offset, bool intoWhole) {
  const shard::Cut &cut = transfer.how->cut;
  Error error = Error::success();
  cut.visitRuns(of, [&](int64_t inWhole, int64_t inPart, int64_t count) {
    if (error)
      return;
    DeviceSums::Piece inside{intoWhole ? transfer.to : transfer.from, floats(inWhole),
                             floats(cut.wholeSize())};
    DeviceSums::Piece alone{part, offset + floats(inPart), floats(cut.partSize(of))};
    error = sums->copy(intoWhole ? inside : alone, intoWhole ? alone : inside, floats(count), rows);
  });
  return error;
}

Error GpuRanks::sumOnDevices(const DeviceTransfer &transfer, int64_t rows) {
  const int64_t whole = rows * transfer.how->elements, ranks = blocks().ranks();
  if (Error error = sums->copy({transfer.to, 0, floats(whole)}, {transfer.from, 0, floats(whole)},
                               floats(whole), 1))
    return error;
  // Each rank adds a share of the numbers: it sends the others' terms, and its sums to each.
  const int64_t share = whole * (rank() + 1) / ranks - whole * rank() / ranks;
  this->share.neighbours->countShared(floats(whole + (ranks - 2) * share));
  return sums->sum(*transfer.to, whole);
}

/// Every rank, or the first alone, gets the others' parts.
Error GpuRanks::gatherOnDevices(const DeviceTransfer &transfer, int64_t rows) {
  const shard::Cut &cut = transfer.how->cut;
  const bool isForAll = transfer.how->kind == Transfer::Gather, isMine = isForAll || rank() == 0;
  const size_t own = rows * cut.partSize(rank());
  std::vector<DeviceSums::Passed> sent, got;
  size_t bytes = 0;
  for (int64_t other = 0; other < blocks().ranks(); ++other) {
    if (other == rank())
      continue;
    if (isForAll || other == 0)
      sent.push_back({int(other), transfer.from, 0, own});
    if (!isMine)
      continue;
    got.push_back({int(other), nullptr, bytes, size_t(rows * cut.partSize(other))});
    bytes += floats(got.back().count);
  }
  if (bytes && (!received || received->bytes < bytes)) {
    received.reset();
    auto made = device.allocate(bytes);
    if (!made)
      return made.takeError();
    received = std::move(*made);
  }
  for (DeviceSums::Passed &each : got)
    each.buffer = received.get();
  share.neighbours->countShared(floats(own) * sent.size());
  if (Error error = sums->pass(sent, got))
    return error;
  if (!isMine)
    return sums->clear(*transfer.to, floats(rows * transfer.how->elements));
  for (const DeviceSums::Passed &each : got)
    if (Error error = copyPart(transfer, rows, each.rank, each.buffer, each.offset, true))
      return error;
  return copyPart(transfer, rows, rank(), transfer.from, 0, /*intoWhole=*/true);
}

Error GpuRanks::onDevices(const DeviceTransfer &transfer, int64_t rows) {
  if (!transfer.how) {
    const size_t bytes = transfer.from->bytes;
    return sums->copy({transfer.to, 0, bytes}, {transfer.from, 0, bytes}, bytes, 1);
  }
  switch (transfer.how->kind) {
  case Transfer::Take:
    return copyPart(transfer, rows, rank(), transfer.to, 0, /*intoWhole=*/false);
  case Transfer::Sum:
    return sumOnDevices(transfer, rows);
  case Transfer::Gather:
  case Transfer::Collect:
    return gatherOnDevices(transfer, rows);
  }
  llvm_unreachable("all kinds are above");
}

Error GpuRanks::throughHosts(ArrayRef<DeviceTransfer> transfers, int64_t rows) {
  std::vector<Rows> from, to;
  std::vector<SharedRows> shared;
  std::vector<const DeviceTransfer *> sent;
  auto download = [&](const DeviceTransfer &each, int64_t count) -> Expected<Rows> {
    Rows numbers(count);
    if (Error error = device.download({reinterpret_cast<char *>(numbers.data()), floats(count)},
                                      *each.from, 0))
      return std::move(error);
    return numbers;
  };
  auto upload = [&](const DeviceTransfer &each, const Rows &numbers) {
    return device.upload(*each.to, 0,
                         {reinterpret_cast<const char *>(numbers.data()), floats(numbers.size())});
  };
  for (const DeviceTransfer &each : transfers)
    if (each.how && each.how->isSent()) {
      const bool isSum = each.how->kind == Transfer::Sum;
      const int64_t own = isSum ? each.how->elements : each.how->cut.partSize(rank());
      auto numbers = download(each, rows * own);
      if (!numbers)
        return numbers.takeError();
      from.push_back(std::move(*numbers));
      to.emplace_back(rows * each.how->elements);
      sent.push_back(&each);
    }
  for (auto [i, each] : llvm::enumerate(sent))
    shared.push_back({each->how, &from[i], &to[i]});
  if (!shared.empty())
    if (Error error = share.neighbours->makeWhole(shared))
      return error;
  for (auto [each, numbers] : llvm::zip_equal(sent, to))
    if (Error error = upload(*each, numbers))
      return error;
  for (const DeviceTransfer &each : transfers) {
    if (each.how && each.how->isSent())
      continue;
    auto whole =
        download(each, each.how ? rows * each.how->elements : each.from->bytes / sizeof(float));
    if (!whole)
      return whole.takeError();
    Rows numbers = *whole;
    if (each.how) {
      const int64_t width = each.how->cut.partSize(rank());
      numbers.resize(rows * width);
      for (int64_t row = 0; row < rows; ++row)
        each.how->cut.visitRuns(rank(), [&](int64_t inWhole, int64_t inPart, int64_t count) {
          std::copy_n(whole->begin() + row * each.how->elements + inWhole, count,
                      numbers.begin() + row * width + inPart);
        });
    }
    if (Error error = upload(each, numbers))
      return error;
  }
  return Error::success();
}

Error GpuRanks::transfer(ArrayRef<DeviceTransfer> transfers, int64_t rows) {
  if (!sums)
    return throughHosts(transfers, rows);
  for (const DeviceTransfer &each : transfers)
    if (Error error = onDevices(each, rows))
      return error;
  return Error::success();
}
