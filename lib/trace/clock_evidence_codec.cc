// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/clock_evidence_codec.h"

#include <cstdint>

#include "lib/base/status.h"
#include "lib/trace/clock_limits.h"
#include "lib/trace/varint.h"

namespace neurontrace {
namespace {

constexpr uint8_t kVersion = 1;
// Bits of a snapshot: which parts differ from the snapshot before and are therefore written.
constexpr uint64_t kSteeringChanged = 1;
constexpr uint64_t kBoottimeChanged = 2;
constexpr uint64_t kSnapshotBits = 3;

// Appends bytes, varints and zigzag differences to a string.
class Writer {
 public:
  void Byte(uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void Number(uint64_t value) {
    uint8_t bytes[kVarintBytesMax];
    const uint8_t* const end = WriteVarint(value, bytes);
    out_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
  }
  // Writes the difference from the value that was last written for `last`, modulo 2^64.
  void Delta(uint64_t value, uint64_t& last) {
    Number(ZigZag(value - last));
    last = value;
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads what Writer writes. After the end, or an error, all methods return 0 and ok() returns
// false, so that callers check once for each list.
class Reader {
 public:
  explicit Reader(std::string_view bytes)
      : in_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(in_ + bytes.size()) {}

  uint8_t Byte() {
    if (in_ == nullptr || in_ == end_) return Fail();
    return *in_++;
  }
  uint64_t Number() {
    uint64_t value = 0;
    if (in_ != nullptr) in_ = ReadVarint(in_, end_, value);
    return in_ == nullptr ? 0 : value;
  }
  uint64_t Delta(uint64_t& last) { return last += UnZigZag(Number()); }
  // Reads a number of entries, each at least a byte long: a count beyond the rest of the input is
  // refused before anything is allocated for it.
  size_t Count() {
    const uint64_t count = Number();
    if (in_ == nullptr || count > static_cast<uint64_t>(end_ - in_)) return Fail();
    return static_cast<size_t>(count);
  }
  bool ok() const { return in_ != nullptr; }
  bool at_end() const { return in_ == end_; }

 private:
  uint8_t Fail() {
    in_ = nullptr;
    return 0;
  }
  const uint8_t* in_;
  const uint8_t* const end_;
};

// The values from which each field is a difference, kept alike by both sides. Most fields are
// written relative to another field of the entry, and that relative to the entry before: both are
// nearly constant, so most take one or two bytes.
struct SnapshotState {
  uint64_t raw = 0;
  uint64_t realtime_from_raw = 0;
  uint64_t monotonic_from_raw = 0;
  uint64_t boottime_from_monotonic = 0;
  uint64_t frequency = 0;
  uint64_t tick = 0;
  uint64_t status = 0;
  uint64_t tai = 0;
};
struct ExchangeState {
  uint64_t send = 0;
  uint64_t there_from_send = 0;
  uint64_t round_trip = 0;
};
struct EventState {
  uint64_t raw = 0;
};
struct UtcState {
  uint64_t raw = 0;
  uint64_t earliest_from_raw = 0;
};

// Differences are modulo 2^64, for signed fields too.
uint64_t AsUnsigned(int64_t value) { return static_cast<uint64_t>(value); }

// The kernel's steering and the distance of BOOTTIME change rarely. They are written only in
// snapshots in which they do, and bits at the beginning of a snapshot tell which.
void WriteSnapshots(const std::vector<ClockSnapshot>& snapshots, Writer& out) {
  out.Number(snapshots.size());
  SnapshotState last;
  for (const ClockSnapshot& s : snapshots) {
    const uint64_t boottime = s.boottime_ns - s.monotonic_ns;
    const bool steering = AsUnsigned(s.frequency) != last.frequency || s.tick_us != last.tick ||
                          s.status != last.status || AsUnsigned(s.tai_offset_s) != last.tai;
    out.Number((steering ? kSteeringChanged : 0) |
               (boottime != last.boottime_from_monotonic ? kBoottimeChanged : 0));
    out.Delta(s.raw_begin_ns, last.raw);
    out.Number(ZigZag(s.raw_end_ns - s.raw_begin_ns));
    out.Delta(s.realtime_ns - s.raw_begin_ns, last.realtime_from_raw);
    out.Delta(s.monotonic_ns - s.raw_begin_ns, last.monotonic_from_raw);
    if (boottime != last.boottime_from_monotonic) out.Delta(boottime, last.boottime_from_monotonic);
    if (!steering) continue;
    out.Delta(AsUnsigned(s.frequency), last.frequency);
    out.Delta(s.tick_us, last.tick);
    out.Delta(s.status, last.status);
    out.Delta(AsUnsigned(s.tai_offset_s), last.tai);
  }
}

// Fails with INVALID_ARGUMENT for unknown bits, and for steering that does not fit its fields. As
// for all lists, the end of the input ends the loop, and the caller checks ok() once.
absl::Status ReadSnapshots(Reader& in, std::vector<ClockSnapshot>& snapshots) {
  SnapshotState last;
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    const uint64_t changed = in.Number();
    if (changed > kSnapshotBits)
      return InvalidArgument("a snapshot has the unknown bits {}", changed);
    ClockSnapshot& s = snapshots.emplace_back();
    s.raw_begin_ns = in.Delta(last.raw);
    s.raw_end_ns = s.raw_begin_ns + UnZigZag(in.Number());
    s.realtime_ns = s.raw_begin_ns + in.Delta(last.realtime_from_raw);
    s.monotonic_ns = s.raw_begin_ns + in.Delta(last.monotonic_from_raw);
    if ((changed & kBoottimeChanged) != 0) in.Delta(last.boottime_from_monotonic);
    s.boottime_ns = s.monotonic_ns + last.boottime_from_monotonic;
    if ((changed & kSteeringChanged) != 0) {
      in.Delta(last.frequency);
      in.Delta(last.tick);
      in.Delta(last.status);
      in.Delta(last.tai);
    }
    s.frequency = static_cast<int64_t>(last.frequency);
    s.tick_us = static_cast<uint32_t>(last.tick);
    s.status = static_cast<uint32_t>(last.status);
    s.tai_offset_s = static_cast<int32_t>(last.tai);
    // The state has 64 bits a field; a hostile difference must not be cut off silently.
    if (s.tick_us != last.tick || s.status != last.status ||
        AsUnsigned(s.tai_offset_s) != last.tai) {
      return InvalidArgument("a snapshot's steering is out of range");
    }
  }
  return absl::OkStatus();
}

// Exchanges are written in runs of equal path and epoch.
void WriteExchanges(const std::vector<ClockExchange>& exchanges, Writer& out) {
  out.Number(exchanges.size());
  ExchangeState last;
  for (size_t begin = 0; begin < exchanges.size();) {
    size_t end = begin + 1;
    while (end < exchanges.size() && exchanges[end].path == exchanges[begin].path &&
           exchanges[end].reference_epoch == exchanges[begin].reference_epoch) {
      ++end;
    }
    out.Number(end - begin);
    out.Byte(static_cast<uint8_t>(exchanges[begin].path));
    out.Number(exchanges[begin].reference_epoch);
    for (; begin < end; ++begin) {
      const ClockExchange& e = exchanges[begin];
      out.Delta(e.send_raw_ns, last.send);
      out.Delta(e.reference_receive_ns - e.send_raw_ns, last.there_from_send);
      out.Number(e.reference_send_ns - e.reference_receive_ns);
      out.Delta(e.receive_raw_ns - e.send_raw_ns, last.round_trip);
    }
  }
}

// Fails with INVALID_ARGUMENT for a run that is empty or longer than the rest of the list, and for
// an epoch of more than 32 bits.
absl::Status ReadExchanges(Reader& in, std::vector<ClockExchange>& exchanges) {
  ExchangeState last;
  size_t left = in.Count();
  while (left > 0 && in.ok()) {
    const uint64_t run = in.Number();
    if (run == 0 || run > left)
      return InvalidArgument("a run has {} exchanges, but {} are left", run, left);
    const auto path = static_cast<ProbePath>(in.Byte());
    const uint64_t epoch = in.Number();
    if (epoch > 0xffffffffu) return InvalidArgument("reference epoch {} is out of range", epoch);
    left -= static_cast<size_t>(run);
    for (uint64_t i = 0; i < run && in.ok(); ++i) {
      ClockExchange& e = exchanges.emplace_back();
      e.path = path;
      e.reference_epoch = static_cast<uint32_t>(epoch);
      e.send_raw_ns = in.Delta(last.send);
      e.reference_receive_ns = e.send_raw_ns + in.Delta(last.there_from_send);
      e.reference_send_ns = e.reference_receive_ns + in.Number();
      e.receive_raw_ns = e.send_raw_ns + in.Delta(last.round_trip);
    }
  }
  return absl::OkStatus();
}

// Only the beginning is relative to the entry before.
void WriteEvents(const std::vector<ClockEvent>& events, Writer& out) {
  out.Number(events.size());
  EventState last;
  for (const ClockEvent& e : events) {
    out.Byte(static_cast<uint8_t>(e.kind));
    out.Delta(e.raw_begin_ns, last.raw);
    out.Number(e.raw_end_ns - e.raw_begin_ns);
    out.Number(ZigZag(AsUnsigned(e.amount_ns)));
  }
}

void ReadEvents(Reader& in, std::vector<ClockEvent>& events) {
  EventState last;
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    ClockEvent& e = events.emplace_back();
    e.kind = static_cast<ClockEventKind>(in.Byte());
    e.raw_begin_ns = in.Delta(last.raw);
    e.raw_end_ns = e.raw_begin_ns + in.Number();
    e.amount_ns = static_cast<int64_t>(UnZigZag(in.Number()));
  }
}

// A reading is written as the distance of its earliest UTC from raw, which changes slowly, and the
// width of the interval.
void WriteUtc(const std::vector<UtcReading>& readings, Writer& out) {
  out.Number(readings.size());
  UtcState last;
  for (const UtcReading& r : readings) {
    out.Byte(static_cast<uint8_t>(r.source));
    out.Delta(r.raw_ns, last.raw);
    out.Delta(r.utc_earliest_ns - r.raw_ns, last.earliest_from_raw);
    out.Number(r.utc_latest_ns - r.utc_earliest_ns);
  }
}

void ReadUtc(Reader& in, std::vector<UtcReading>& readings) {
  UtcState last;
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    UtcReading& r = readings.emplace_back();
    r.source = static_cast<UtcSource>(in.Byte());
    r.raw_ns = in.Delta(last.raw);
    r.utc_earliest_ns = r.raw_ns + in.Delta(last.earliest_from_raw);
    r.utc_latest_ns = r.utc_earliest_ns + in.Number();
  }
}

// Zero, which means unspecified, is not a valid value.
template <typename Enum>
bool IsOneOf(Enum value, Enum last) {
  return static_cast<uint8_t>(value) != 0 &&
         static_cast<uint8_t>(value) <= static_cast<uint8_t>(last);
}

}  // namespace

size_t CountClockEvidence(const ClockEvidence& evidence) {
  return evidence.snapshots.size() + evidence.exchanges.size() + evidence.events.size() +
         evidence.utc.size();
}

// Everything that is decoded passes through here, so that models can rely on the order of stamps.
absl::Status CheckClockEvidence(const ClockEvidence& evidence) {
  if (const size_t count = CountClockEvidence(evidence); count > limits::kClockBatchEntriesMax) {
    return InvalidArgument("{} entries of clock evidence; the limit is {}", count,
                           limits::kClockBatchEntriesMax);
  }
  // Raw never runs backwards, so that no host can have measured an interval that ends before it
  // begins.
  for (const ClockSnapshot& s : evidence.snapshots) {
    if (s.raw_end_ns < s.raw_begin_ns) return InvalidArgument("a snapshot ends before it begins");
  }
  for (const ClockExchange& e : evidence.exchanges) {
    if (e.receive_raw_ns < e.send_raw_ns || e.reference_send_ns < e.reference_receive_ns) {
      return InvalidArgument("an exchange has an answer before its request");
    }
    if (!IsOneOf(e.path, ProbePath::kPeer)) {
      return InvalidArgument("an exchange has the unknown path {}", static_cast<int>(e.path));
    }
  }
  for (const ClockEvent& e : evidence.events) {
    if (e.raw_end_ns < e.raw_begin_ns) return InvalidArgument("an event ends before it begins");
    if (!IsOneOf(e.kind, ClockEventKind::kClockSource)) {
      return InvalidArgument("an event has the unknown kind {}", static_cast<int>(e.kind));
    }
  }
  for (const UtcReading& r : evidence.utc) {
    if (r.utc_latest_ns < r.utc_earliest_ns)
      return InvalidArgument("a UTC reading has its latest time before its earliest");
    if (!IsOneOf(r.source, UtcSource::kChrony)) {
      return InvalidArgument("a UTC reading has the unknown source {}", static_cast<int>(r.source));
    }
  }
  return absl::OkStatus();
}

std::string EncodeClockEvidence(const ClockEvidence& evidence) {
  Writer out;
  out.Byte(kVersion);
  WriteSnapshots(evidence.snapshots, out);
  WriteExchanges(evidence.exchanges, out);
  WriteEvents(evidence.events, out);
  WriteUtc(evidence.utc, out);
  return out.Take();
}

absl::StatusOr<ClockEvidence> DecodeClockEvidence(std::string_view bytes) {
  if (bytes.size() > limits::kClockBatchBytesMax) {
    return InvalidArgument("{} bytes of clock evidence; the limit is {}", bytes.size(),
                           limits::kClockBatchBytesMax);
  }
  Reader in(bytes);
  if (const uint8_t version = in.Byte(); version != kVersion) {
    return InvalidArgument("clock evidence has version {}; this build reads {}", version, kVersion);
  }
  ClockEvidence evidence;
  RETURN_IF_ERROR(ReadSnapshots(in, evidence.snapshots));
  RETURN_IF_ERROR(ReadExchanges(in, evidence.exchanges));
  ReadEvents(in, evidence.events);
  ReadUtc(in, evidence.utc);
  if (!in.ok()) return InvalidArgument("clock evidence ends in the middle of an entry");
  if (!in.at_end()) return InvalidArgument("unexpected data after the clock evidence");
  RETURN_IF_ERROR(CheckClockEvidence(evidence));
  return evidence;
}

}  // namespace neurontrace
