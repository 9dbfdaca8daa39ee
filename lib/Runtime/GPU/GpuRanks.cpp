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
  SharedRows shared{&how, &own, &numbers};
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
  return fatal(sums->join(id, int(rank()), int(blocks().ranks()),
                          [this] { return share.neighbours->checkAlive(); }));
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

/// Copies this rank's part of each row into the whole value, or out of it.
Error GpuRanks::copyPart(const DeviceTransfer &transfer, int64_t rows, bool intoWhole) {
  const shard::Cut &cut = transfer.how->cut;
  Error error = Error::success();
  cut.visitRuns(rank(), [&](int64_t inWhole, int64_t inPart, int64_t count) {
    if (error)
      return;
    DeviceSums::Piece whole{nullptr, floats(inWhole), floats(cut.wholeSize())};
    DeviceSums::Piece part{nullptr, floats(inPart), floats(cut.partSize(rank()))};
    (intoWhole ? whole : part).buffer = transfer.to;
    (intoWhole ? part : whole).buffer = transfer.from;
    error = sums->copy(intoWhole ? whole : part, intoWhole ? part : whole, floats(count), rows);
  });
  return error;
}

/// Of a value that is gathered, each rank adds its part to the zeros of the others.
Error GpuRanks::onDevices(const DeviceTransfer &transfer, int64_t rows) {
  const int64_t whole = transfer.how ? rows * transfer.how->elements : 0;
  auto copyAll = [&](size_t bytes) {
    return sums->copy({transfer.to, 0, bytes}, {transfer.from, 0, bytes}, bytes, 1);
  };
  if (!transfer.how)
    return copyAll(transfer.from->bytes);
  switch (transfer.how->kind) {
  case Transfer::Take:
    return copyPart(transfer, rows, /*intoWhole=*/false);
  case Transfer::Sum:
    if (Error error = copyAll(floats(whole)))
      return error;
    break;
  case Transfer::Gather:
  case Transfer::Collect:
    if (Error error = sums->clear(*transfer.to, floats(whole)))
      return error;
    if (Error error = copyPart(transfer, rows, /*intoWhole=*/true))
      return error;
    break;
  }
  return sums->sum(*transfer.to, whole);
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
