// SPDX-License-Identifier: Apache-2.0
#include "validate/clock_table.h"

#include <algorithm>
#include <protozero/pbf_reader.hpp>

#include "validate/limits.h"
#include "validate/perfetto_numbers.h"

namespace neurontrace {

bool ClockTable::is_realtime() const { return trace_clock_ == perfetto_read::clocks::kRealtime; }

ClockTable::Key ClockTable::KeyOf(uint64_t clock, uint32_t sequence) {
  const bool is_private = clock >= perfetto_read::clocks::kSequenceScopedFirst &&
                          clock <= perfetto_read::clocks::kSequenceScopedLast;
  return {clock, is_private ? sequence : 0};
}

ClockTable::Reading ClockTable::ReadClock(std::string_view bytes) {
  Reading reading;
  for (protozero::pbf_reader fields(bytes.data(), bytes.size()); fields.next();) {
    switch (fields.tag_and_type()) {
      case perfetto_read::clocks::kClockId:
        reading.id = fields.get_uint64();
        break;
      case perfetto_read::clocks::kTimestamp:
        reading.timestamp = fields.get_uint64();
        break;
      case perfetto_read::clocks::kIsIncremental:
        reading.is_incremental = fields.get_uint64() != 0;
        break;
      case perfetto_read::clocks::kMultiplierNs:
        reading.multiplier_ns = fields.get_uint64();
        break;
      default:
        fields.skip();
    }
  }
  if (reading.multiplier_ns == 0) reading.multiplier_ns = 1;
  return reading;
}

// One reading against what is known of its clock; false: it does not count.
bool ClockTable::IsSound(const Reading& reading, uint32_t sequence) {
  const Key key = KeyOf(reading.id, sequence);
  const bool is_private = reading.id >= perfetto_read::clocks::kSequenceScopedFirst &&
                          reading.id <= perfetto_read::clocks::kSequenceScopedLast;
  if (reading.id == 0 || (is_private && sequence == 0)) {
    log_.Add(TraceCheck::kClockSnapshot, "Clock {} is read in a packet of {} sequence.", reading.id,
             sequence == 0 ? "no" : "a");
    return false;
  }
  if (reading.is_incremental && !is_private) {
    log_.Add(TraceCheck::kClockSnapshot,
             "Clock {} is said to be incremental, which only clocks 64 to 127 can be.", reading.id);
    return false;
  }
  const auto known = clocks_.find(key);
  if (known != clocks_.end() && (known->second.is_incremental != reading.is_incremental ||
                                 known->second.multiplier_ns != reading.multiplier_ns)) {
    log_.Add(TraceCheck::kClockSnapshot, "Clock {} has another unit or kind than it had before.",
             reading.id);
    return false;
  }
  if (known == clocks_.end() && clocks_.size() >= validate_limits::kClocksMax) {
    log_.Add(TraceCheck::kLimit, "There are more than {} clocks: further ones are not followed.",
             validate_limits::kClocksMax);
    return false;
  }
  return true;
}

// False: the snapshot has two readings of one clock, and does not count.
bool ClockTable::ReadSnapshot(std::string_view snapshot) {
  readings_.clear();
  for (protozero::pbf_reader fields(snapshot.data(), snapshot.size()); fields.next();) {
    switch (fields.tag_and_type()) {
      case perfetto_read::clocks::kClock: {
        const Reading reading = ReadClock(perfetto_read::TextOf(fields.get_view()));
        if (readings_.size() < validate_limits::kClocksMax) readings_.push_back(reading);
        break;
      }
      case perfetto_read::clocks::kPrimaryTraceClock:
        trace_clock_ = fields.get_uint64();
        break;
      default:
        fields.skip();
    }
  }
  std::sort(readings_.begin(), readings_.end(),
            [](const Reading& a, const Reading& b) { return a.id < b.id; });
  const auto twice =
      std::adjacent_find(readings_.begin(), readings_.end(),
                         [](const Reading& a, const Reading& b) { return a.id == b.id; });
  if (twice == readings_.end()) return true;
  log_.Add(TraceCheck::kClockSnapshot, "A snapshot has two readings of clock {}.", twice->id);
  return false;
}

const ClockTable::Reading* ClockTable::ReadingOf(uint64_t clock) const {
  const auto found = std::find_if(readings_.begin(), readings_.end(),
                                  [clock](const Reading& r) { return r.id == clock; });
  return found == readings_.end() ? nullptr : &*found;
}

// The trace's time at which the readings were taken, by any of them that is related to it.
std::optional<uint64_t> ClockTable::TraceTimeOfReadings(uint32_t sequence) {
  if (const Reading* const own = ReadingOf(trace_clock_); own != nullptr) {
    if (own->timestamp < trace_clock_now_ns_) {
      log_.Add(TraceCheck::kClockSnapshot, "The trace's clock {} runs backwards from {} to {}.",
               trace_clock_, trace_clock_now_ns_, own->timestamp);
    }
    trace_clock_now_ns_ = std::max(trace_clock_now_ns_, own->timestamp);
    return own->timestamp;
  }
  for (const Reading& reading : readings_) {
    const auto known = clocks_.find(KeyOf(reading.id, sequence));
    if (known == clocks_.end() || !known->second.is_related) continue;
    return reading.timestamp * reading.multiplier_ns + known->second.offset_ns;
  }
  return std::nullopt;
}

void ClockTable::TakeSnapshot(std::string_view snapshot, uint32_t sequence) {
  if (!ReadSnapshot(snapshot)) return;
  std::erase_if(readings_, [&](const Reading& reading) { return !IsSound(reading, sequence); });
  if (trace_clock_ == 0 && ReadingOf(perfetto_read::clocks::kBoottime) != nullptr) {
    trace_clock_ = perfetto_read::clocks::kBoottime;
  }
  const std::optional<uint64_t> at_ns = TraceTimeOfReadings(sequence);
  for (const Reading& reading : readings_) {
    Clock& clock = clocks_[KeyOf(reading.id, sequence)];
    clock.is_incremental = reading.is_incremental;
    clock.multiplier_ns = reading.multiplier_ns;
    clock.now = reading.timestamp;
    if (!at_ns) continue;
    clock.is_related = true;
    clock.offset_ns = *at_ns - reading.timestamp * reading.multiplier_ns;
  }
}

std::optional<uint64_t> ClockTable::ToTraceTime(uint64_t timestamp, uint64_t clock,
                                                uint32_t sequence) {
  uint64_t time_ns = timestamp;
  if (clock != 0 && clock != trace_clock_) {
    const auto known = clocks_.find(KeyOf(clock, sequence));
    if (known == clocks_.end() || !known->second.is_related) {
      log_.Add(TraceCheck::kClock,
               "The packet's time is by clock {}, which no snapshot before it relates to the "
               "trace's clock.",
               clock);
      return std::nullopt;
    }
    uint64_t ticks = timestamp;
    if (known->second.is_incremental) ticks = known->second.now += timestamp;
    time_ns = ticks * known->second.multiplier_ns + known->second.offset_ns;
  }
  if (time_ns > uint64_t{INT64_MAX}) {
    log_.Add(TraceCheck::kTimestampRange, "The packet's time, {} ns, is over 2^63.", time_ns);
    return std::nullopt;
  }
  return time_ns;
}

}  // namespace neurontrace
