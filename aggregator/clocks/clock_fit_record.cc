// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_fit_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aggregator/align/device/device_fit.h"
#include "aggregator/align/host_fit.h"
#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/stored_bytes.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// The version of the encoding. Another one cannot be decoded; ClockModelCache then fits again.
constexpr uint64_t kVersion = 1;

// Adds "name=value"; fmt prints the shortest text that gives the same double again.
void Add(std::vector<std::string>& to, std::string_view name, double value) {
  to.push_back(fmt::format("{}={}", name, value));
}

// Adds every parameter of a fit of one clock, with `of` as prefix.
void Add(std::vector<std::string>& to, std::string_view of, const PairFitParameters& parameters) {
  const auto add = [&](std::string_view name, double value) {
    Add(to, fmt::format("{}.{}", of, name), value);
  };
  add("wander_ns_per_s2", parameters.pair.wander.wander_ns_per_s2);
  add("rate_change_ns_per_s", parameters.pair.wander.rate_change_ns_per_s);
  add("rate_min_ns_per_s", parameters.pair.rate.min);
  add("rate_max_ns_per_s", parameters.pair.rate.max);
  add("likely_tolerance_ns", parameters.pair.likely_tolerance_ns);
  add("calm_factor", parameters.calm_factor);
  add("grid_s", parameters.grid_s);
  add("line_tolerance_ns", parameters.line_tolerance_ns);
  add("reach_s", parameters.reach_s);
}

// Lists the parameters that are compared between versions. A change of one that is not listed, such
// as those of sync points, has to raise the algorithm version instead, or models made with the old
// value would not be fitted again.
std::vector<std::string> Parameters(const OrderClasses& order) {
  std::vector<std::string> all;
  const HostFitParameters host;
  Add(all, "host", host.pair);
  Add(all, "host.route.bin_s", host.route.bin_s);
  Add(all, "host.route.differ_ns", host.route.differ_ns);
  Add(all, "host.route.longer_s", host.route.longer_s);
  Add(all, "host.route.margin_ns", host.route.margin_ns);
  Add(all, "host.step.contradictions", static_cast<double>(host.step.contradictions));
  Add(all, "host.step.horizon_s", host.step.horizon_s);
  const DeviceFitParameters device;
  Add(all, "device", device.pair);
  Add(all, "device.apart_most_ns", static_cast<double>(device.apart_most_ns));
  Add(all, "order.collectives", order.collectives);
  Add(all, "order.barriers", order.barriers);
  return all;
}

// Returns nullptr for a machine that the record does not have. Requires the evidence in order of
// hosts.
const ClockWatermark* Find(const ClockFitRecord& record, const HostBoot& host) {
  const auto found = std::ranges::lower_bound(record.evidence, host, {}, &ClockWatermark::host);
  return found != record.evidence.end() && found->host == host ? &*found : nullptr;
}

// Returns whether the test holds for the watermark of any machine.
template <typename Test>
bool AnyMachine(const ClockFitRecord& record, Test test) {
  return std::ranges::any_of(record.evidence, test);
}

}  // namespace

ClockFitRecord FitRecordOfThisBuild(const OrderClasses& order) {
  ClockFitRecord record;
  record.host_algorithm = kHostAlgorithmVersion;
  record.device_algorithm = kDeviceAlgorithmVersion;
  record.parameters = Parameters(order);
  return record;
}

bool AreFittedAlike(const ClockFitRecord& a, const ClockFitRecord& b) {
  return a.host_algorithm == b.host_algorithm && a.device_algorithm == b.device_algorithm &&
         a.parameters == b.parameters;
}

// The keeper is no machine of the capture: it appears as soon as it has evidence in the window.
bool HasMoreOfCapture(const ClockFitRecord& now, const ClockFitRecord& then) {
  return now.window != then.window || now.chunks > then.chunks ||
         AnyMachine(now, [&](const ClockWatermark& mark) {
           return !IsReferenceKeeper(mark.host) && Find(then, mark.host) == nullptr;
         });
}

// Compares the numbers of batches, as evidence arrives and is pruned in whole batches.
bool HasMoreEvidence(const ClockFitRecord& now, const ClockFitRecord& then) {
  return AnyMachine(now, [&](const ClockWatermark& mark) {
    const ClockWatermark* const before = Find(then, mark.host);
    return mark.stored.batches > (before == nullptr ? 0 : before->stored.batches);
  });
}

// A fit that used more batches than there are now has lost some since.
bool HasLessEvidence(const ClockFitRecord& now, const ClockFitRecord& then) {
  return HasMoreEvidence(then, now);
}

// The order of the fields is the format. Numbers are variable-length, as StoredBytesWriter writes
// them.
std::string EncodeClockFitRecord(const ClockFitRecord& record) {
  StoredBytesWriter out(kVersion);
  out.Bool(record.is_final);
  out.Uint(record.host_algorithm);
  out.Uint(record.device_algorithm);
  out.Strings(record.parameters);
  out.Uint(record.window.begin_ns);
  out.Uint(record.window.end_ns);
  out.Uint(record.chunks);
  out.Uint(record.evidence.size());
  for (const ClockWatermark& mark : record.evidence) {
    out.String(mark.host.instance_id);
    out.String(mark.host.boot_id);
    out.Uint(mark.stored.batches);
    out.Uint(mark.stored.bytes);
    out.Uint(mark.stored.last_measured_realtime_ns);
    out.Uint(mark.last_raw_ns);
  }
  return out.Take();
}

// Reads the fields in the order of EncodeClockFitRecord. Errors of the reader accumulate and show
// at the end.
absl::StatusOr<ClockFitRecord> DecodeClockFitRecord(std::string_view bytes) {
  StoredBytesReader in(bytes);
  if (const uint64_t version = in.Uint(); version != kVersion) {
    return InvalidArgument("clock fit: version {} where {} is known", version, kVersion);
  }
  ClockFitRecord record;
  record.is_final = in.Bool();
  record.host_algorithm = in.Uint32();
  record.device_algorithm = in.Uint32();
  record.parameters = in.Strings();
  record.window.begin_ns = in.Uint();
  record.window.end_ns = in.Uint();
  record.chunks = in.Uint();
  // A count is limited by the bytes that are left, so a damaged one cannot allocate much.
  for (size_t left = in.Count(); left > 0 && in.ok(); --left) {
    ClockWatermark mark;
    mark.host.instance_id = in.String();
    mark.host.boot_id = in.String();
    mark.stored.batches = in.Uint();
    mark.stored.bytes = in.Uint();
    mark.stored.last_measured_realtime_ns = in.Uint();
    mark.last_raw_ns = in.Uint();
    // Find needs the order, and equal records need it to be equal.
    if (!record.evidence.empty() && record.evidence.back().host >= mark.host) {
      return InvalidArgument("clock fit: its machines are not in order");
    }
    record.evidence.push_back(std::move(mark));
  }
  if (!in.Finished()) return InvalidArgument("clock fit: its {} bytes do not fit", bytes.size());
  return record;
}

}  // namespace neurontrace
