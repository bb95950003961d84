// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/capture.h"

#include <algorithm>
#include <vector>

#include "tests/fake_nrt/event_json.h"

namespace neurontrace {
namespace {

constexpr uint64_t kCapacityFloor = 1024;
// Events copied out under one lock of a ring: 56 KiB, some microseconds.
constexpr size_t kBatchEvents = 512;

bool Wanted(const FetchBounds& bounds, uint32_t nc_idx) {
  return !bounds.nc_idx || *bounds.nc_idx == nc_idx;
}

}  // namespace

bool Capture::Start(CaptureOwner owner, const CaptureSettings& settings, uint32_t cores) {
  const std::lock_guard lock(change_mutex_);
  if (owner_.load() != CaptureOwner::kNone) return false;
  const uint64_t capacity = std::max(settings.max_events_per_nc, kCapacityFloor);
  ++captures_;
  for (uint32_t nc = 0; nc < cores; ++nc) {
    if (!settings.cores.test(nc)) continue;
    if (rings_[nc].Open(captures_, capacity, settings.types)) continue;
    for (CoreRing& ring : rings_) ring.Close();
    return false;
  }
  owner_.store(owner);
  return true;
}

CaptureOwner Capture::Stop() {
  const std::lock_guard lock(change_mutex_);
  for (CoreRing& ring : rings_) ring.Close();
  return owner_.exchange(CaptureOwner::kNone);
}

bool Capture::Fetch(const FetchBounds& bounds, uint32_t cores, const GlobalIds& gids,
                    FetchBuffer& out) {
  const std::lock_guard lock(fetch_mutex_);
  std::vector<RingEvent> batch(kBatchEvents);
  bool first_event = true;
  if (!out.Reserve(64)) return false;
  out.Text("{\"events\":[");
  for (uint32_t nc = 0; nc < cores; ++nc) {
    if (!Wanted(bounds, nc)) continue;
    // What is emitted from here on waits for the next fetch, else a fast producer would hold us.
    const uint64_t end = rings_[nc].end_seq();
    uint64_t left = bounds.max_events_per_nc;
    while (left > 0) {
      uint64_t seq = 0;
      const size_t count =
          rings_[nc].Take(end, {batch.data(), std::min<uint64_t>(left, batch.size())}, seq);
      if (count == 0) break;
      left -= count;
      for (size_t i = 0; i < count; ++i) {
        if (!first_event) out.Text(",");
        first_event = false;
        if (!AppendEventJson(out, batch[i], nc, seq + i, gids[nc].load())) return false;
        if (!out.Reserve(64)) return false;
      }
    }
  }
  out.Text("],\"data_version\":2}");
  return true;
}

size_t Capture::ExpectBytes(const FetchBounds& bounds, uint32_t cores) const {
  uint64_t events = 0;
  for (uint32_t nc = 0; nc < cores; ++nc) {
    if (Wanted(bounds, nc)) events += std::min(rings_[nc].size(), bounds.max_events_per_nc);
  }
  return events * kJsonBytesPerEvent + 4096;
}

RingTotals Capture::totals() const {
  RingTotals sum;
  for (const CoreRing& ring : rings_) {
    const RingTotals one = ring.totals();
    sum.accepted += one.accepted;
    sum.overwritten += one.overwritten;
    sum.fetched += one.fetched;
  }
  return sum;
}

}  // namespace neurontrace
