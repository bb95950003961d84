// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_rows.h"

#include <tuple>
#include <utility>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/store/stored_bytes.h"
#include "lib/base/status.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

// Each row starts with the version and the kind; the fields follow in a fixed order. Rows are read
// back only by this build or a later one, but from a disk that may be damaged: every count is
// limited by the bytes that are left, and everything that evaluation relies on is checked (Check).
// Tests and a fuzzer decode arbitrary bytes (clock_rows_fuzzer.cc).

// Writes a check of order after the beginning that all rows share (clock_rows.h).
void WriteOrderCheck(const OrderCheck& check, StoredBytesWriter& out) {
  out.String(check.job);
  out.Int(check.world_size);
  out.String(check.event_type);
  for (const uint64_t count :
       {check.events, check.left_out, check.instances, check.violated, check.beyond_bounds}) {
    out.Uint(count);
  }
  out.Int(check.worst_ns);
  out.Bool(check.is_conclusive);
  out.String(check.words);
  out.Uint(check.violations.size());
  for (const OrderViolation& violation : check.violations) {
    out.Uint(violation.reference_ns);
    out.Int(violation.amount_ns);
    out.Uint(violation.bound_ns);
    out.Uint(violation.exec_id);
    out.Uint(violation.operation);
    out.String(violation.entered_by);
    out.String(violation.left_by);
  }
}

// Fails with INVALID_ARGUMENT for anything that WriteOrderCheck does not write.
absl::StatusOr<OrderCheck> ReadOrderCheck(StoredBytesReader& in) {
  OrderCheck check;
  check.job = in.String();
  check.world_size = in.Int();
  check.event_type = in.String();
  for (uint64_t* count :
       {&check.events, &check.left_out, &check.instances, &check.violated, &check.beyond_bounds}) {
    *count = in.Uint();
  }
  check.worst_ns = in.Int();
  check.is_conclusive = in.Bool();
  check.words = in.String();
  // Count() is limited by the bytes that are left, so a damaged count cannot allocate much.
  for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
    OrderViolation& violation = check.violations.emplace_back();
    violation.reference_ns = in.Uint();
    violation.amount_ns = in.Int();
    violation.bound_ns = in.Uint();
    violation.exec_id = in.Uint();
    violation.operation = in.Uint();
    violation.entered_by = in.String();
    violation.left_by = in.String();
  }
  if (!in.Finished()) return InvalidArgument("the row is malformed");
  if (check.violations.size() > limits::kOrderViolationsShownMax) {
    return InvalidArgument("{} violations exceed the limit of {}", check.violations.size(),
                           limits::kOrderViolationsShownMax);
  }
  return check;
}

// The version of every row, and what it describes. Stored: never change a value.
constexpr uint64_t kRowVersion = 1;
enum class RowKind : uint8_t { kInstance = 0, kDevice = 1, kOrder = 2 };

// Knots farther apart could overflow the product on the line through them.
constexpr uint64_t kKnotsApartMaxNs = uint64_t{1} << 62;

// Stores a column as differences modulo 2^64 to the previous value, which are short for times and
// bounds.
class Column {
 public:
  void Write(uint64_t value, StoredBytesWriter& out) {
    out.Int(static_cast<int64_t>(value - last_));
    last_ = value;
  }
  uint64_t Read(StoredBytesReader& in) { return last_ += static_cast<uint64_t>(in.Int()); }

 private:
  uint64_t last_ = 0;
};

// Write and read a worker; the order of the fields is the format.
void WriteWorkerIdentity(const WorkerIdentity& worker, StoredBytesWriter& out) {
  out.String(worker.instance_id);
  out.String(worker.boot_id);
  out.Uint(worker.pid);
  out.Uint(worker.start_time_ticks);
  out.String(worker.container_id);
}

WorkerIdentity ReadWorkerIdentity(StoredBytesReader& in) {
  WorkerIdentity worker;
  worker.instance_id = in.String();
  worker.boot_id = in.String();
  worker.pid = in.Uint32();
  worker.start_time_ticks = in.Uint();
  worker.container_id = in.String();
  return worker;
}

// Writes findings; an end is stored relative to its begin, which keeps it short.
void WriteFindings(const std::vector<ClockFinding>& findings, StoredBytesWriter& out) {
  out.Uint(findings.size());
  Column begin;
  for (const ClockFinding& finding : findings) {
    out.Uint(static_cast<uint64_t>(finding.kind));
    begin.Write(finding.x_begin_ns, out);
    out.Int(static_cast<int64_t>(finding.x_end_ns - finding.x_begin_ns));
    out.Int(finding.amount_ns);
    out.String(finding.words);
  }
}

// Returns what could be read; the caller checks Finished().
std::vector<ClockFinding> ReadFindings(StoredBytesReader& in) {
  std::vector<ClockFinding> findings;
  Column begin;
  for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
    ClockFinding& finding = findings.emplace_back();
    finding.kind = in.EnumUpTo(ClockFindingKind::kInconsistent);
    finding.x_begin_ns = begin.Read(in);
    finding.x_end_ns = finding.x_begin_ns + static_cast<uint64_t>(in.Int());
    finding.amount_ns = in.Int();
    finding.words = in.String();
  }
  return findings;
}

// Writes one column of knots beside the other, each as differences.
void WriteSegment(const ClockSegment& segment, StoredBytesWriter& out) {
  out.Uint(static_cast<uint64_t>(segment.cause));
  out.Uint(segment.knots.size());
  Column x, ahead, bound, likely;
  for (const ClockKnot& knot : segment.knots) {
    x.Write(knot.x_ns, out);
    // The offset of a clock changes slowly, so its differences are small.
    ahead.Write(knot.y_ns - knot.x_ns, out);
    bound.Write(knot.bound_ns, out);
    likely.Write(knot.likely_bound_ns, out);
  }
}

// Returns a segment that Check has not seen: its knots may be in any order.
ClockSegment ReadSegment(StoredBytesReader& in) {
  ClockSegment segment;
  segment.cause = in.EnumUpTo(SegmentCause::kReferenceEpoch);
  Column x, ahead, bound, likely;
  for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
    ClockKnot& knot = segment.knots.emplace_back();
    knot.x_ns = x.Read(in);
    knot.y_ns = knot.x_ns + ahead.Read(in);
    knot.bound_ns = bound.Read(in);
    knot.likely_bound_ns = likely.Read(in);
  }
  return segment;
}

// Writes a model: its numbers, then the segments, then the findings.
void WriteModel(const ClockModel& model, StoredBytesWriter& out) {
  out.Uint(model.algorithm_version);
  out.Uint(model.wander_ns_per_s2);
  out.Uint(model.evidence_used);
  out.Uint(model.evidence_rejected);
  out.Uint(model.segments.size());
  for (const ClockSegment& segment : model.segments) WriteSegment(segment, out);
  WriteFindings(model.findings, out);
}

// Returns an unchecked model.
ClockModel ReadModel(StoredBytesReader& in) {
  ClockModel model;
  model.algorithm_version = in.Uint32();
  model.wander_ns_per_s2 = in.Uint32();
  model.evidence_used = in.Uint();
  model.evidence_rejected = in.Uint();
  for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
    model.segments.push_back(ReadSegment(in));
  }
  model.findings = ReadFindings(in);
  return model;
}

// Writes the pieces of a map. A bound is preceded by whether it is known.
void WriteMap(const ClockMap& map, StoredBytesWriter& out) {
  out.Uint(map.pieces().size());
  Column raw, ahead, rate, bound;
  for (const ClockMap::Piece& piece : map.pieces()) {
    raw.Write(piece.raw_begin_ns, out);
    ahead.Write(piece.reference_begin_ns - piece.raw_begin_ns, out);
    rate.Write(static_cast<uint64_t>(piece.rate), out);
    out.Bool(piece.error_bound_ns.has_value());
    if (piece.error_bound_ns) bound.Write(*piece.error_bound_ns, out);
  }
}

// Returns no pieces if they are malformed, which ClockMap::FromPieces refuses.
std::vector<ClockMap::Piece> ReadPieces(StoredBytesReader& in) {
  std::vector<ClockMap::Piece> pieces;
  Column raw, ahead, rate, bound;
  for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
    ClockMap::Piece& piece = pieces.emplace_back();
    piece.raw_begin_ns = raw.Read(in);
    piece.reference_begin_ns = piece.raw_begin_ns + ahead.Read(in);
    piece.rate = static_cast<int64_t>(rate.Read(in));
    if (in.Bool()) piece.error_bound_ns = bound.Read(in);
  }
  return pieces;
}

// Writes the parts of a device's map, each with its own pieces.
void WriteDeviceMap(const DeviceMap& map, StoredBytesWriter& out) {
  out.Uint(map.parts.size());
  for (const DeviceMapPart& part : map.parts) {
    out.Uint(part.first_sequence);
    out.Uint(part.last_sequence);
    out.Uint(part.first_exec_id);
    out.Uint(part.last_exec_id);
    WriteMap(part.map, out);
  }
}

// Fails with INVALID_ARGUMENT if a map is malformed or the parts do not ascend.
absl::Status ReadDeviceMap(StoredBytesReader& in, DeviceMap& map) {
  for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
    DeviceMapPart& part = map.parts.emplace_back();
    part.first_sequence = in.Uint();
    part.last_sequence = in.Uint();
    part.first_exec_id = in.Uint();
    part.last_exec_id = in.Uint();
    ASSIGN_OR_RETURN(part.map, ClockMap::FromPieces(ReadPieces(in)));
    const bool follows = map.parts.size() < 2 ||
                         part.first_sequence >= map.parts[map.parts.size() - 2].first_sequence;
    if (!follows) return InvalidArgument("parts of a device's map are out of order");
  }
  return absl::OkStatus();
}

// Return the bytes of one row.
std::string EncodeRow(const InstanceClock& clock) {
  StoredBytesWriter out(kRowVersion);
  out.Uint(static_cast<uint64_t>(RowKind::kInstance));
  out.String(clock.instance_id);
  out.String(clock.boot_id);
  WriteModel(clock.model, out);
  WriteMap(clock.realtime, out);
  out.Int(clock.offset_ns);
  out.Int(clock.drift_ppb);
  out.Uint(clock.bound_ns);
  out.Uint(clock.likely_bound_ns);
  out.Uint(clock.exchanges);
  out.Strings(clock.sources);
  return out.Take();
}

std::string EncodeRow(const DeviceClock& clock) {
  StoredBytesWriter out(kRowVersion);
  out.Uint(static_cast<uint64_t>(RowKind::kDevice));
  WriteWorkerIdentity(clock.worker, out);
  out.Uint(clock.core.nc_idx);
  out.Bool(clock.core.physical.has_value());
  if (clock.core.physical) out.Uint(*clock.core.physical);
  WriteDeviceMap(clock.map, out);
  out.Uint(clock.bound_ns);
  out.Uint(clock.likely_bound_ns);
  out.Uint(clock.executions);
  out.Uint(clock.sync_points);
  WriteFindings(clock.findings, out);
  return out.Take();
}

std::string EncodeRow(const OrderCheck& check) {
  StoredBytesWriter out(kRowVersion);
  out.Uint(static_cast<uint64_t>(RowKind::kOrder));
  WriteOrderCheck(check, out);
  return out.Take();
}

// Fail with INVALID_ARGUMENT for values that no fit produces.
absl::Status Check(const std::vector<ClockFinding>& findings) {
  for (const ClockFinding& finding : findings) {
    if (finding.x_end_ns < finding.x_begin_ns) {
      return InvalidArgument("a finding ends before it begins");
    }
  }
  return absl::OkStatus();
}

// Checks that knots ascend across segments and that no line is longer or steeper than evaluation
// can compute without overflow.
absl::Status Check(const ClockModel& model) {
  const ClockKnot* before = nullptr;
  for (const ClockSegment& segment : model.segments) {
    if (segment.knots.empty()) return InvalidArgument("a segment has no knots");
    for (const ClockKnot& knot : segment.knots) {
      const bool is_first = &knot == &segment.knots.front();
      if (knot.likely_bound_ns > knot.bound_ns) {
        return InvalidArgument("a likely bound exceeds its bound");
      }
      // Two segments may meet at one time; two knots of one segment may not.
      if (before != nullptr &&
          (knot.x_ns < before->x_ns || (!is_first && knot.x_ns == before->x_ns))) {
        return InvalidArgument("knots are out of order");
      }
      if (before != nullptr && !is_first) {
        const uint64_t apart_ns = knot.x_ns - before->x_ns;
        const __int128 rise = (__int128{knot.y_ns} - before->y_ns) - apart_ns;
        if (apart_ns >= kKnotsApartMaxNs || rise > apart_ns || -rise > apart_ns) {
          return InvalidArgument("a line between two knots is too long or too steep");
        }
      }
      before = &knot;
    }
  }
  return Check(model.findings);
}

// ReadInstance, TakeDevice and ReadOrder read one row of their kind and add it to `clocks`. Each
// fails with INVALID_ARGUMENT if the row is malformed or out of order.
absl::Status ReadInstance(StoredBytesReader& in, CaptureClocks& clocks) {
  InstanceClock clock;
  clock.instance_id = in.String();
  clock.boot_id = in.String();
  clock.model = ReadModel(in);
  auto map = ClockMap::FromPieces(ReadPieces(in));
  clock.offset_ns = in.Int();
  clock.drift_ppb = in.Int();
  clock.bound_ns = in.Uint();
  clock.likely_bound_ns = in.Uint();
  clock.exchanges = in.Uint();
  clock.sources = in.Strings();
  if (!in.Finished()) return InvalidArgument("the row is malformed");
  if (!map.ok()) return map.status();
  RETURN_IF_ERROR(Check(clock.model));
  // Rows come by kind, as EncodeClockRows writes them.
  if (!clocks.devices.empty() || !clocks.order.empty()) {
    return InvalidArgument("an instance follows a device or an order check");
  }
  const auto key = [](const InstanceClock& of) { return std::tie(of.instance_id, of.boot_id); };
  if (!clocks.instances.empty() && key(clocks.instances.back()) >= key(clock)) {
    return InvalidArgument("instances are out of order");
  }
  clock.realtime = *std::move(map);
  WorkerIdentity machine;
  machine.instance_id = clock.instance_id;
  machine.boot_id = clock.boot_id;
  clocks.maps.Set(machine, ClockDomain::kHostRealtime, clock.realtime);
  clocks.instances.push_back(std::move(clock));
  return absl::OkStatus();
}

absl::Status TakeDevice(StoredBytesReader& in, CaptureClocks& clocks) {
  if (!clocks.order.empty()) return InvalidArgument("a device follows an order check");
  DeviceClock clock;
  clock.worker = ReadWorkerIdentity(in);
  clock.core.nc_idx = in.Uint32();
  if (in.Bool()) clock.core.physical = in.Uint();
  RETURN_IF_ERROR(ReadDeviceMap(in, clock.map));
  clock.bound_ns = in.Uint();
  clock.likely_bound_ns = in.Uint();
  clock.executions = in.Uint();
  clock.sync_points = in.Uint();
  clock.findings = ReadFindings(in);
  if (!in.Finished()) return InvalidArgument("the row is malformed");
  RETURN_IF_ERROR(Check(clock.findings));
  // Physical cores of one logical core keep the order in which events named them.
  const auto key = [](const DeviceClock& of) { return std::tie(of.worker, of.core.nc_idx); };
  if (!clocks.devices.empty() &&
      (key(clocks.devices.back()) > key(clock) ||
       (key(clocks.devices.back()) == key(clock) && clocks.devices.back().core == clock.core))) {
    return InvalidArgument("devices are out of order");
  }
  clocks.maps.SetDevice(clock.worker, clock.core, clock.map);
  clocks.devices.push_back(std::move(clock));
  return absl::OkStatus();
}

absl::Status ReadOrder(StoredBytesReader& in, CaptureClocks& clocks) {
  ASSIGN_OR_RETURN(OrderCheck check, ReadOrderCheck(in));
  clocks.order.push_back(std::move(check));
  return absl::OkStatus();
}

// Reads the version and the kind, which all rows share, then the rest by kind.
absl::Status TakeRow(std::string_view row, CaptureClocks& clocks) {
  StoredBytesReader in(row);
  if (const uint64_t version = in.Uint(); version != kRowVersion) {
    return InvalidArgument("unknown version {}, this program reads {}", version, kRowVersion);
  }
  switch (in.EnumUpTo(RowKind::kOrder)) {
    case RowKind::kInstance:
      return ReadInstance(in, clocks);
    case RowKind::kDevice:
      return TakeDevice(in, clocks);
    case RowKind::kOrder:
      return ReadOrder(in, clocks);
  }
  return InvalidArgument("the kind is unknown");
}

}  // namespace

std::vector<std::string> EncodeClockRows(const CaptureClocks& clocks) {
  std::vector<std::string> rows;
  rows.reserve(clocks.instances.size() + clocks.devices.size() + clocks.order.size());
  for (const InstanceClock& clock : clocks.instances) rows.push_back(EncodeRow(clock));
  for (const DeviceClock& clock : clocks.devices) rows.push_back(EncodeRow(clock));
  for (const OrderCheck& check : clocks.order) rows.push_back(EncodeRow(check));
  return rows;
}

// Stops at the first bad row: a part of the clocks would be mistaken for all of them.
absl::StatusOr<CaptureClocks> DecodeClockRows(const std::vector<std::string>& rows) {
  CaptureClocks clocks;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (const absl::Status status = TakeRow(rows[i], clocks); !status.ok()) {
      return InvalidArgument("clock row {}: {}", i, std::string(status.message()));
    }
  }
  return clocks;
}

}  // namespace neurontrace
