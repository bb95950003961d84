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

// Lists "name=value" of every parameter that affects a fit. Each function binds all members of its
// struct to names, so that a new member cannot be forgotten: it does not compile until it is added.
class ParameterList {
 public:
  // fmt prints the shortest text that gives the same number again.
  void Add(std::string_view of, std::string_view name, double value) {
    all_.push_back(fmt::format("{}.{}={}", of, name, value));
  }
  void Add(std::string_view of, std::string_view name, const Interval& interval) {
    const auto& [min, max] = interval;
    all_.push_back(fmt::format("{}.{}={} to {}", of, name, min, max));
  }
  void Add(std::string_view of, const PairParameters& parameters) {
    const auto& [wander, rate, likely_tolerance_ns] = parameters;
    const auto& [wander_ns_per_s2, rate_change_ns_per_s] = wander;
    Add(of, "wander_ns_per_s2", wander_ns_per_s2);
    Add(of, "rate_change_ns_per_s", rate_change_ns_per_s);
    Add(of, "rate_ns_per_s", rate);
    Add(of, "likely_tolerance_ns", likely_tolerance_ns);
  }
  void Add(std::string_view of, const PairFitParameters& parameters) {
    const auto& [pair, calm_factor, grid_s, line_tolerance_ns, reach_s, x_begin_ns, x_end_ns] =
        parameters;
    Add(of, pair);
    Add(of, "calm_factor", calm_factor);
    Add(of, "grid_s", grid_s);
    Add(of, "line_tolerance_ns", line_tolerance_ns);
    Add(of, "reach_s", reach_s);
    Add(of, "x_begin_ns", static_cast<double>(x_begin_ns));
    Add(of, "x_end_ns", static_cast<double>(x_end_ns));
  }
  void Add(std::string_view of, const ProbeRouteParameters& parameters) {
    const auto& [bin_s, bin_probes, agree_ns, differ_ns, longer_s, margin_ns] = parameters;
    Add(of, "bin_s", bin_s);
    Add(of, "bin_probes", bin_probes);
    Add(of, "agree_ns", agree_ns);
    Add(of, "differ_ns", differ_ns);
    Add(of, "longer_s", longer_s);
    Add(of, "margin_ns", margin_ns);
  }
  void Add(std::string_view of, const StepSearchParameters& parameters) {
    const auto& [pair, contradictions, horizon_s, horizon_sides, horizon_sides_max] = parameters;
    Add(of, pair);
    Add(of, "contradictions", static_cast<double>(contradictions));
    Add(of, "horizon_s", horizon_s);
    Add(of, "horizon_sides", static_cast<double>(horizon_sides));
    Add(of, "horizon_sides_max", static_cast<double>(horizon_sides_max));
  }
  void Add(std::string_view of, const SyncParameters& parameters) {
    const auto& [order, apart_least_ns, gate_ns, envelope] = parameters;
    const auto& [wander_ns_per_s2, rate] = envelope;
    Add(of, "order", static_cast<double>(order));
    Add(of, "apart_least_ns", apart_least_ns);
    Add(of, "gate_ns", gate_ns);
    Add(of, "wander_ns_per_s2", wander_ns_per_s2);
    Add(of, "rate_ns_per_s", rate);
  }
  std::vector<std::string> Take() { return std::move(all_); }

 private:
  std::vector<std::string> all_;
};

std::vector<std::string> ParametersOf(const HostFitParameters& host,
                                      const DeviceFitParameters& device,
                                      const OrderClasses& order) {
  ParameterList all;
  const auto& [host_pair, route, step] = host;
  all.Add("host", host_pair);
  all.Add("host.route", route);
  all.Add("host.step", step);
  const auto& [device_pair, sync, apart_most_ns] = device;
  all.Add("device", device_pair);
  all.Add("device.sync", sync);
  all.Add("device", "apart_most_ns", static_cast<double>(apart_most_ns));
  const auto& [collectives, barriers] = order;
  all.Add("order", "collectives", collectives);
  all.Add("order", "barriers", barriers);
  return all.Take();
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
  record.parameters = ParametersOf({}, {}, order);
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
           return !IsReferenceHost(mark.host) && Find(then, mark.host) == nullptr;
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
    return InvalidArgument("clock fit: unknown version {}, this program reads {}", version,
                           kVersion);
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
      return InvalidArgument("clock fit: its machines are out of order");
    }
    record.evidence.push_back(std::move(mark));
  }
  if (!in.Finished())
    return InvalidArgument("clock fit: malformed record of {} bytes", bytes.size());
  return record;
}

}  // namespace neurontrace
