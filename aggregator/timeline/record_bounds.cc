// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/record_bounds.h"

#include <map>
#include <string_view>
#include <tuple>

namespace neurontrace {
namespace {

// An unknown bound makes the sum unknown; it must never count as 0.
std::optional<uint64_t> Sum(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  if (!a || !b) return std::nullopt;
  return *a > UINT64_MAX - *b ? UINT64_MAX : *a + *b;
}

// Returns the bound of a start beside the error of its host's clock. For the time that the runtime
// derived from a device's stamp (kVendorClock) nobody promises one.
std::optional<uint64_t> OwnBound(const TimelineRecord& record) {
  if ((record.flags & kVendorClock) != 0) return std::nullopt;
  return (record.flags & kDeviceClock) != 0 ? record.device_bound_ns() : 0;
}

}  // namespace

RecordBounds::RecordBounds(std::span<const TimelineStream> streams) {
  clocks_.reserve(streams.size());
  numbers_.reserve(streams.size());
  std::map<std::tuple<std::string_view, std::string_view, ClockDomain>, uint32_t> numbers;
  for (const TimelineStream& stream : streams) {
    clocks_.emplace_back(*stream.clock);
    const WorkerIdentity& worker = stream.description.identity.worker;
    // A stream with its own time has a clock that no other stream shares; numbers from
    // streams.size() on are free for it.
    if (stream.description.has_own_time()) {
      numbers_.push_back(static_cast<uint32_t>(streams.size() + numbers_.size()));
      continue;
    }
    // A reboot starts another clock, and each clock domain of one boot is a clock of its own.
    const std::tuple key(std::string_view(worker.instance_id), std::string_view(worker.boot_id),
                         stream.description.clock_domain);
    numbers_.push_back(
        numbers.try_emplace(key, static_cast<uint32_t>(numbers.size())).first->second);
  }
}

std::optional<uint64_t> RecordBounds::Of(const TimelineRecord& record) {
  const std::optional<uint64_t> own = OwnBound(record);
  if (!own) return std::nullopt;
  // The bound of the host's clock depends on when it was read: at the start by the host's clock,
  // which is not the recorded stamp if the device's map moved it.
  const uint64_t host_ns =
      (record.flags & kDeviceClock) != 0 ? record.host_start_ns() : record.raw_start_ns();
  return Sum(own, clocks_[record.stream].ErrorBoundNs(host_ns));
}

RecordBounds::Moment RecordBounds::Keep(const TimelineRecord& record) {
  return {.bound_ns = Of(record), .own_ns = OwnBound(record), .clock = numbers_[record.stream]};
}

std::optional<uint64_t> RecordBounds::ForOrder(const Moment& a, const Moment& b) {
  return a.clock == b.clock ? Sum(a.own_ns, b.own_ns) : Sum(a.bound_ns, b.bound_ns);
}

}  // namespace neurontrace
