// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/clock_table.h"

#include <algorithm>

#include "lib/validate/limits.h"
#include "lib/validate/trace_message.h"

namespace neurontrace {
namespace {

namespace clocks = perfetto_read::clocks;

// Clocks 64 to 127 belong to a packet sequence (ClockSnapshot in Perfetto's clock_snapshot.proto).
bool IsPrivate(uint64_t clock) {
  return clock >= clocks::kSequenceScopedFirst && clock <= clocks::kSequenceScopedLast;
}

}  // namespace

// A private clock with the same number is another clock in every sequence.
ClockTable::Key ClockTable::KeyOf(uint64_t clock, uint32_t sequence) {
  return {clock, IsPrivate(clock) ? sequence : 0};
}

ClockTable::Clock* ClockTable::Find(const Key& key) {
  const auto found = clocks_.find(key);
  return found == clocks_.end() ? nullptr : &found->second;
}

// A new clock is alone on a line of its own, until a snapshot relates it to others.
ClockTable::Clock* ClockTable::Ensure(const Key& key) {
  if (Clock* const known = Find(key); known != nullptr) return known;
  if (clocks_.size() >= validate_limits::kClocksMax) {
    log_.Add(TraceCheck::kLimit, "There are more than {} clocks; the others are not checked.",
             validate_limits::kClocksMax);
    return nullptr;
  }
  return &clocks_.emplace(key, Clock{.line = clocks_.size()}).first->second;
}

bool ClockTable::IsRelated(const Key& key) {
  if (key == trace_clock_) return true;
  const Clock* const clock = Find(key);
  const Clock* const trace = Find(trace_clock_);
  return clock != nullptr && trace != nullptr && clock->line == trace->line;
}

// Makes line `b` a part of line `a`. Linear in the number of clocks, which is limited, and rare:
// lines are joined once. Equal lines need no change, even if their offsets contradict: the later
// snapshot has priority.
void ClockTable::Join(uint64_t a, uint64_t a_ns, uint64_t b, uint64_t b_ns) {
  if (a == b) return;
  for (auto& [key, clock] : clocks_) {
    if (clock.line != b) continue;
    // Offsets are modulo 2^64, so that differences may be negative.
    clock.line = a;
    clock.offset_ns += a_ns - b_ns;
  }
}

// Checks one reading against earlier ones of its clock. Returns false if it does not count.
bool ClockTable::IsValid(const Reading& reading, uint32_t sequence) {
  const Key key = KeyOf(reading.id, sequence);
  const bool is_private = IsPrivate(reading.id);
  if (reading.id == 0 || (is_private && sequence == 0)) {
    log_.Add(TraceCheck::kClockSnapshot, "Clock {} cannot be read in a packet with {} sequence.",
             reading.id, sequence == 0 ? "no" : "a");
    return false;
  }
  if (reading.is_incremental && !is_private) {
    log_.Add(TraceCheck::kClockSnapshot,
             "Clock {} is marked as incremental, which only clocks 64 to 127 can be.", reading.id);
    return false;
  }
  const Clock* const known = Find(key);
  if (known != nullptr && (known->is_incremental != reading.is_incremental ||
                           known->multiplier_ns != reading.multiplier_ns)) {
    log_.Add(TraceCheck::kClockSnapshot, "Clock {} has a different unit or kind than before.",
             reading.id);
    return false;
  }
  if (key == trace_clock_ && reading.multiplier_ns != 1) {
    log_.Add(TraceCheck::kClockSnapshot, "Clock {}, the trace's clock, does not count nanoseconds.",
             reading.id);
    return false;
  }
  return Ensure(key) != nullptr;
}

// Returns false if the snapshot has two readings of one clock, and so does not count.
bool ClockTable::ReadSnapshot(std::string_view bytes) {
  const TraceMessage snapshot(bytes);
  readings_.clear();
  TraceMessage clock;
  for (const TraceMessage::Field& field : snapshot) {
    // A snapshot that repeats a reading a million times must not take memory for them.
    if (field.tag != clocks::kClock || readings_.size() == validate_limits::kClocksMax) continue;
    clock.Parse(field.text);
    readings_.push_back({clock.Number(clocks::kClockId, 0), clock.Number(clocks::kTimestamp, 0),
                         clock.Number(clocks::kIsIncremental, 0) != 0,
                         std::max<uint64_t>(clock.Number(clocks::kMultiplierNs, 1), 1)});
  }
  ChooseTraceClock(snapshot.Number(clocks::kPrimaryTraceClock, 0));
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

// A snapshot that does not name the trace's clock chooses BOOTTIME, if it has a reading of it.
void ClockTable::ChooseTraceClock(uint64_t primary) {
  // A snapshot with the clock of a file without snapshots keeps that clock.
  if (primary == 0 && ReadingOf(clocks::kBoottime) != nullptr &&
      ReadingOf(clocks::kTraceFile) == nullptr) {
    primary = clocks::kBoottime;
  }
  if (primary == 0) return;
  default_clock_ = primary;
  // Perfetto fixes the trace's clock at the first conversion; later choices only change the default
  // of packets.
  if (has_converted_ || trace_clock_ == Key{primary, 0}) return;
  trace_clock_ = {primary, 0};
  trace_clock_now_ns_ = 0;
}

void ClockTable::CheckTraceClock() {
  const Reading* const own = ReadingOf(trace_clock_.first);
  if (own == nullptr) return;
  if (own->timestamp < trace_clock_now_ns_) {
    log_.Add(TraceCheck::kClockSnapshot, "The trace's clock {} runs backwards from {} to {}.",
             trace_clock_.first, trace_clock_now_ns_, own->timestamp);
  }
  trace_clock_now_ns_ = std::max(trace_clock_now_ns_, own->timestamp);
}

// Returns the reading that shows when the snapshot was taken: the trace's clock, else one that is
// related to it, else one that was read before, else any.
const ClockTable::Reading* ClockTable::BestKnown(uint32_t sequence) {
  const Reading* best = nullptr;
  int best_rank = 0;
  for (const Reading& reading : readings_) {
    const Key key = KeyOf(reading.id, sequence);
    // The reading was found sound, so its clock exists.
    const int rank = key == trace_clock_ ? 3 : IsRelated(key) ? 2 : Find(key)->is_placed ? 1 : 0;
    if (best != nullptr && rank <= best_rank) continue;
    best = &reading;
    best_rank = rank;
  }
  return best;
}

void ClockTable::HandleSnapshot(std::string_view snapshot, uint32_t sequence) {
  if (!ReadSnapshot(snapshot)) return;
  // From here on every reading has a clock.
  std::erase_if(readings_, [&](const Reading& reading) { return !IsValid(reading, sequence); });
  CheckTraceClock();
  const Reading* const best = BestKnown(sequence);
  if (best == nullptr) return;
  // A copy, because the loop changes the clock itself.
  const Clock at = *Find(KeyOf(best->id, sequence));
  const uint64_t at_ns = best->ns() + at.offset_ns;  // on the line of `at`
  for (const Reading& reading : readings_) {
    Clock& clock = *Find(KeyOf(reading.id, sequence));
    // A clock that was read before brings the clocks of its line along.
    if (clock.is_placed) Join(at.line, at_ns, clock.line, reading.ns() + clock.offset_ns);
    clock = {.line = at.line,
             .offset_ns = at_ns - reading.ns(),
             .is_placed = true,
             .is_incremental = reading.is_incremental,
             .multiplier_ns = reading.multiplier_ns,
             .now = reading.timestamp};
  }
}

// Perfetto assumes that every file has BOOTTIME: when the first time is converted, it has to be
// related to the trace's clock. In a file without snapshots the two are one.
void ClockTable::RelateBoottime() {
  const Key boottime = {clocks::kBoottime, 0};
  if (IsRelated(boottime)) return;
  if (trace_clock_.first == clocks::kTraceFile) {
    if (Ensure(boottime) == nullptr || Ensure(trace_clock_) == nullptr) return;
    const Clock trace = *Find(trace_clock_);
    const Clock own = *Find(boottime);
    Join(trace.line, trace.offset_ns, own.line, own.offset_ns);
    Find(boottime)->is_placed = Find(trace_clock_)->is_placed = true;
    return;
  }
  log_.Add(TraceCheck::kClockDomains,
           "No snapshot so far relates BOOTTIME to the trace's clock {}; Perfetto expects BOOTTIME "
           "in every file and counts an error.",
           trace_clock_.first);
}

std::optional<uint64_t> ClockTable::ToTraceTime(uint64_t timestamp, uint64_t clock,
                                                uint32_t sequence) {
  if (clock == 0) clock = default_clock_;
  uint64_t time_ns = timestamp;
  if (clock != 0) {
    // The first conversion fixes the trace's clock.
    if (!has_converted_) RelateBoottime();
    has_converted_ = true;
    const Key key = KeyOf(clock, sequence);
    if (!IsRelated(key)) {
      log_.Add(TraceCheck::kClock,
               "The packet's time is from clock {}, which no earlier snapshot relates to the "
               "trace's clock.",
               clock);
      return std::nullopt;
    }
    if (key != trace_clock_) {
      Clock& own = *Find(key);
      // An incremental clock counts from its previous packet, so a packet that is skipped would
      // shift all later ones.
      if (own.is_incremental) timestamp = own.now += timestamp;
      time_ns = timestamp * own.multiplier_ns + own.offset_ns - Find(trace_clock_)->offset_ns;
    }
  }
  // Perfetto's times are signed.
  if (time_ns > uint64_t{INT64_MAX}) {
    log_.Add(TraceCheck::kTimestampRange, "The packet's time, {} ns, exceeds 2^63.", time_ns);
    return std::nullopt;
  }
  return time_ns;
}

}  // namespace neurontrace
