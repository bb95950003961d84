// SPDX-License-Identifier: Apache-2.0
#include "validate/clock_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>

#include "validate/limits.h"
#include "validate/perfetto_numbers.h"

namespace neurontrace {
namespace {

bool IsPrivate(uint64_t clock) {
  return clock >= perfetto_read::clocks::kSequenceScopedFirst &&
         clock <= perfetto_read::clocks::kSequenceScopedLast;
}

}  // namespace

bool ClockTable::is_realtime() const {
  return std::get<0>(trace_clock_) == perfetto_read::clocks::kRealtime;
}

ClockTable::Key ClockTable::KeyOf(uint64_t clock, const Owner& owner) {
  return {clock, IsPrivate(clock) ? owner.sequence : 0, owner.machine};
}

// What the host's times without a clock are by is what another machine's are by, too, unless it
// says something else.
ClockTable::Machine* ClockTable::MachineOf(uint64_t id) {
  const auto found = machines_.find(id);
  if (found != machines_.end()) return &found->second;
  if (machines_.size() >= validate_limits::kMachinesMax) {
    log_.Add(TraceCheck::kLimit, "There are more than {} machines: others' times are not followed.",
             validate_limits::kMachinesMax);
    return nullptr;
  }
  const auto host = machines_.find(0);
  const uint64_t clock = host == machines_.end() ? 0 : host->second.default_clock;
  return &machines_.emplace(id, Machine{.default_clock = clock}).first->second;
}

ClockTable::Clock* ClockTable::Find(const Key& key) {
  const auto found = clocks_.find(key);
  return found == clocks_.end() ? nullptr : &found->second;
}

ClockTable::Clock* ClockTable::Ensure(const Key& key) {
  if (Clock* const known = Find(key); known != nullptr) return known;
  if (clocks_.size() >= validate_limits::kClocksMax) {
    log_.Add(TraceCheck::kLimit, "There are more than {} clocks: further ones are not followed.",
             validate_limits::kClocksMax);
    return nullptr;
  }
  return &clocks_.emplace(key, Clock{.line = domains_.Add()}).first->second;
}

bool ClockTable::AreRelated(const Key& a, const Key& b) {
  if (a == b) return true;
  const Clock* const of_a = Find(a);
  const Clock* const of_b = Find(b);
  return of_a != nullptr && of_b != nullptr &&
         domains_.Find(of_a->line).line == domains_.Find(of_b->line).line;
}

void ClockTable::TakeForTheSame(const Key& a, const Key& b) {
  if (Ensure(a) == nullptr || Ensure(b) == nullptr) return;
  const Clock& of_a = *Find(a);
  const Clock& of_b = *Find(b);
  domains_.Join(of_a.line, of_a.offset_ns, of_b.line, of_b.offset_ns);
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
bool ClockTable::IsSound(const Reading& reading, const Owner& owner) {
  const Key key = KeyOf(reading.id, owner);
  const bool is_private = IsPrivate(reading.id);
  if (reading.id == 0 || (is_private && owner.sequence == 0)) {
    log_.Add(TraceCheck::kClockSnapshot, "Clock {} is read in a packet of {} sequence.", reading.id,
             owner.sequence == 0 ? "no" : "a");
    return false;
  }
  if (reading.is_incremental && !is_private) {
    log_.Add(TraceCheck::kClockSnapshot,
             "Clock {} is said to be incremental, which only clocks 64 to 127 can be.", reading.id);
    return false;
  }
  const Clock* const known = Find(key);
  if (known != nullptr && (known->is_incremental != reading.is_incremental ||
                           known->multiplier_ns != reading.multiplier_ns)) {
    log_.Add(TraceCheck::kClockSnapshot, "Clock {} has another unit or kind than it had before.",
             reading.id);
    return false;
  }
  if (key == trace_clock_ && reading.multiplier_ns != 1) {
    log_.Add(TraceCheck::kClockSnapshot, "Clock {}, the trace's, does not count nanoseconds.",
             reading.id);
    return false;
  }
  return Ensure(key) != nullptr;
}

// False: the snapshot has two readings of one clock, and does not count.
bool ClockTable::ReadSnapshot(std::string_view snapshot, const Owner& owner) {
  uint64_t primary = 0;
  readings_.clear();
  for (protozero::pbf_reader fields(snapshot.data(), snapshot.size()); fields.next();) {
    switch (fields.tag_and_type()) {
      case perfetto_read::clocks::kClock: {
        const Reading reading = ReadClock(perfetto_read::TextOf(fields.get_view()));
        if (readings_.size() < validate_limits::kClocksMax) readings_.push_back(reading);
        break;
      }
      case perfetto_read::clocks::kPrimaryTraceClock:
        primary = fields.get_uint64();
        break;
      default:
        fields.skip();
    }
  }
  ChooseTraceClock(primary, owner.machine);
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

// A snapshot that does not say what the trace's clock is says that it is BOOTTIME, if it has that.
void ClockTable::ChooseTraceClock(uint64_t primary, uint64_t machine) {
  if (primary == 0 && ReadingOf(perfetto_read::clocks::kBoottime) != nullptr &&
      ReadingOf(perfetto_read::clocks::kTraceFile) == nullptr) {
    primary = perfetto_read::clocks::kBoottime;
  }
  Machine* const owner = primary == 0 ? nullptr : MachineOf(machine);
  if (owner == nullptr) return;
  owner->default_clock = primary;
  if (owner->has_converted || trace_clock_ == Key{primary, 0, machine}) return;
  if (has_converted_) {
    log_.Add(TraceCheck::kLimit,
             "This snapshot, of machine {}, chooses a clock of that for the trace's, when times "
             "were converted to another: here all are by the first, and Perfetto's are not.",
             machine);
    return;
  }
  trace_clock_ = {primary, 0, machine};
  trace_clock_now_ns_ = 0;
}

void ClockTable::CheckTraceClock(const Owner& owner) {
  const auto& [id, sequence, machine] = trace_clock_;
  const Reading* const own = machine == owner.machine ? ReadingOf(id) : nullptr;
  if (own == nullptr) return;
  if (own->timestamp < trace_clock_now_ns_) {
    log_.Add(TraceCheck::kClockSnapshot, "The trace's clock {} runs backwards from {} to {}.", id,
             trace_clock_now_ns_, own->timestamp);
  }
  trace_clock_now_ns_ = std::max(trace_clock_now_ns_, own->timestamp);
}

// The reading that says when the snapshot was taken: best by the trace's clock, else by one that is
// related to it, else by any that was read before.
const ClockTable::Reading* ClockTable::BestKnown(const Owner& owner) {
  const Reading* best = nullptr;
  int best_rank = 0;
  for (const Reading& reading : readings_) {
    const Key key = KeyOf(reading.id, owner);
    const int rank = key == trace_clock_             ? 3
                     : AreRelated(key, trace_clock_) ? 2
                     : Find(key)->is_placed          ? 1
                                                     : 0;
    if (best != nullptr && rank <= best_rank) continue;
    best = &reading;
    best_rank = rank;
  }
  return best;
}

void ClockTable::TakeSnapshot(std::string_view snapshot, const Owner& owner) {
  if (!ReadSnapshot(snapshot, owner)) return;
  std::erase_if(readings_, [&](const Reading& reading) { return !IsSound(reading, owner); });
  CheckTraceClock(owner);
  const Reading* const best = BestKnown(owner);
  if (best == nullptr) return;
  const Clock at = *Find(KeyOf(best->id, owner));
  const uint64_t at_ns = best->ns() + at.offset_ns;  // on the line of `at`
  for (const Reading& reading : readings_) {
    Clock& clock = *Find(KeyOf(reading.id, owner));
    clock.is_incremental = reading.is_incremental;
    clock.multiplier_ns = reading.multiplier_ns;
    clock.now = reading.timestamp;
    clock.is_placed = true;
    if (&reading == best) continue;
    domains_.Join(at.line, at_ns, clock.line, reading.ns() + clock.offset_ns);
    clock.line = at.line;
    clock.offset_ns = at_ns - reading.ns();
  }
}

void ClockTable::TakeRemoteSync(uint64_t machine) {
  log_.Add(TraceCheck::kLimit,
           "How the clocks of machine {} stand to the host's (RemoteClockSync) is not looked into: "
           "they are taken for the same.",
           machine);
  Machine* const synced = MachineOf(machine);
  if (synced == nullptr) return;
  synced->is_synced = true;
  const uint64_t host = std::get<2>(trace_clock_);
  for (uint64_t id = perfetto_read::clocks::kRealtime; id <= perfetto_read::clocks::kBoottime;
       ++id) {
    if (Find({id, 0, host}) != nullptr) TakeForTheSame({id, 0, host}, {id, 0, machine});
  }
}

// Perfetto takes BOOTTIME for a clock of every file, and of every machine in it. When the first
// time is converted it has to be related to the trace's clock, or is guessed to be by what two
// machines have in common.
void ClockTable::RelateBoottime(uint64_t machine) {
  namespace clocks = perfetto_read::clocks;
  const Key own = {clocks::kBoottime, 0, machine};
  if (AreRelated(own, trace_clock_)) return;
  const auto trace_clock = std::get<0>(trace_clock_);
  const Key realtime = {clocks::kRealtime, 0, machine};
  const Key trace_realtime = {clocks::kRealtime, 0, std::get<2>(trace_clock_)};
  if (realtime != trace_realtime && AreRelated(own, realtime) &&
      AreRelated(trace_realtime, trace_clock_)) {
    return TakeForTheSame(trace_realtime, realtime);
  }
  if (trace_clock == clocks::kTraceFile || trace_clock == clocks::kBoottime) {
    return TakeForTheSame(trace_clock_, own);
  }
  log_.Add(TraceCheck::kClockDomains,
           "Up to here no snapshot relates BOOTTIME{} to the trace's clock, {}: Perfetto takes it "
           "for a clock of every file, and counts an error.",
           machine == 0 ? std::string() : fmt::format(" of machine {}", machine), trace_clock);
}

std::optional<uint64_t> ClockTable::Convert(uint64_t timestamp, const Key& key) {
  if (key == trace_clock_) return timestamp;
  Clock* const clock = Find(key);
  if (clock == nullptr || !AreRelated(key, trace_clock_)) {
    log_.Add(TraceCheck::kClock,
             "The packet's time is by clock {}, which no snapshot before it relates to the "
             "trace's clock.",
             std::get<0>(key));
    return std::nullopt;
  }
  uint64_t ticks = timestamp;
  if (clock->is_incremental) ticks = clock->now += timestamp;
  const Clock& trace = *Find(trace_clock_);
  return ticks * clock->multiplier_ns + clock->offset_ns + domains_.Find(clock->line).shift_ns -
         trace.offset_ns - domains_.Find(trace.line).shift_ns;
}

std::optional<uint64_t> ClockTable::ToTraceTime(uint64_t timestamp, uint64_t clock,
                                                const Owner& owner) {
  Machine* const machine = MachineOf(owner.machine);
  if (machine == nullptr) return std::nullopt;
  if (clock == 0) clock = machine->default_clock;
  std::optional<uint64_t> time_ns = timestamp;
  if (clock != 0) {
    has_converted_ = true;
    if (!std::exchange(machine->has_converted, true) && !machine->is_synced) {
      RelateBoottime(owner.machine);
    }
    const Key key = KeyOf(clock, owner);
    if (machine->is_synced && !AreRelated(key, trace_clock_)) TakeForTheSame(trace_clock_, key);
    time_ns = Convert(timestamp, key);
  }
  if (time_ns && *time_ns > uint64_t{INT64_MAX}) {
    log_.Add(TraceCheck::kTimestampRange, "The packet's time, {} ns, is over 2^63.", *time_ns);
    return std::nullopt;
  }
  return time_ns;
}

}  // namespace neurontrace
