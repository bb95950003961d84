// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/record_bounds.h"

namespace neurontrace {
namespace {

std::optional<uint64_t> Sum(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  if (!a || !b) return std::nullopt;
  return *a > UINT64_MAX - *b ? UINT64_MAX : *a + *b;
}

// What a record's start has beyond the error of its host's clock.
std::optional<uint64_t> OwnBound(const TimelineRecord& record) {
  if ((record.flags & kVendorClock) != 0) return std::nullopt;
  return (record.flags & kDeviceClock) != 0 ? record.device_bound_ns() : 0;
}

}  // namespace

RecordBounds::RecordBounds(std::span<const TimelineStream> streams) : streams_(streams) {
  clocks_.reserve(streams.size());
  for (const TimelineStream& stream : streams) clocks_.emplace_back(*stream.clock);
}

std::optional<uint64_t> RecordBounds::Of(const TimelineRecord& record) {
  const std::optional<uint64_t> own = OwnBound(record);
  if (!own) return std::nullopt;
  const uint64_t host_ns =
      (record.flags & kDeviceClock) != 0 ? record.host_start_ns() : record.raw_start_ns();
  return Sum(own, clocks_[record.stream].ErrorBoundNs(host_ns));
}

bool RecordBounds::ShareHostClock(const TimelineRecord& a, const TimelineRecord& b) const {
  const StreamDescription& first = streams_[a.stream].description;
  const StreamDescription& second = streams_[b.stream].description;
  return first.identity.worker.instance_id == second.identity.worker.instance_id &&
         first.identity.worker.boot_id == second.identity.worker.boot_id &&
         first.clock_domain == second.clock_domain;
}

std::optional<uint64_t> RecordBounds::OfOrder(const TimelineRecord& a, const TimelineRecord& b) {
  if (ShareHostClock(a, b)) return Sum(OwnBound(a), OwnBound(b));
  return Sum(Of(a), Of(b));
}

}  // namespace neurontrace
