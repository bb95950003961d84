// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/clock_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "aggregator/align/core/clock_reading.h"
#include "lib/base/json_writer.h"

namespace neurontrace {
namespace {

// Instances that one sentence names before it counts the others.
constexpr size_t kInstancesNamed = 4;

// Returns the absolute value, which for INT64_MIN fits the unsigned type only.
uint64_t Magnitude(int64_t amount) {
  return amount < 0 ? 0 - static_cast<uint64_t>(amount) : static_cast<uint64_t>(amount);
}

// A break means that the times on its two sides cannot be compared: worse than any amount.
bool IsWorse(const ClockFinding& a, const ClockFinding& b) {
  const bool a_breaks = a.kind == ClockFindingKind::kBreak;
  const bool b_breaks = b.kind == ClockFindingKind::kBreak;
  if (a_breaks != b_breaks) return a_breaks;
  return Magnitude(a.amount_ns) > Magnitude(b.amount_ns);
}

// Each unit is used up to four digits and one decimal: bounds below a microsecond need their
// nanoseconds.
std::string DescribeDuration(uint64_t ns) {
  if (ns < 10'000) return fmt::format("{} ns", ns);
  if (ns < 10'000'000) return fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3);
  return fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6);
}

// A sentence can name a few instances; the list is in the JSON.
std::string Named(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kInstancesNamed);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// docs/formats/json.md defines the keys that this and the next two functions write.
void WriteInstance(const InstanceClock& clock, JsonWriter& out) {
  out.Open('{').Member("instance_id", clock.instance_id).Member("boot_id", clock.boot_id);
  if (clock.bound_ns != kNoBound) {
    out.Member("bound_ns", clock.bound_ns).Member("likely_bound_ns", clock.likely_bound_ns);
  }
  out.Member("offset_ns", clock.offset_ns).Member("drift_ppb", clock.drift_ppb);
  out.Member("exchanges", clock.exchanges).Member("evidence_used", clock.model.evidence_used);
  out.Member("evidence_rejected", clock.model.evidence_rejected);
  out.Member("segments", clock.model.segments.size()).Member("sources", clock.sources);
  out.Key("findings").Open('[');
  const TimedFindings findings = FindingsOf(clock, ClockReport::kFindingsMax);
  for (const TimedFinding& timed : findings.findings) {
    const ClockFinding& finding = *timed.finding;
    out.Open('{').Member("kind", ToString(finding.kind)).Member("at_ns", timed.begin_ns);
    out.Member("raw_begin_ns", finding.x_begin_ns).Member("raw_end_ns", finding.x_end_ns);
    out.Member("amount_ns", finding.amount_ns).Member("words", finding.words).Close('}');
  }
  out.Close(']').Member("findings_left_out", findings.left_out).Close('}');
}

// Writes the sums over all device clocks of the capture; times are in nanoseconds.
void WriteDevices(const DeviceSummary& devices, JsonWriter& out) {
  out.Open('{').Member("known", devices.known).Member("unknown", devices.unknown);
  out.Member("bound_max_ns", devices.bound_ns);
  out.Member("likely_bound_max_ns", devices.likely_bound_ns);
  out.Member("executions", devices.executions).Member("sync_points", devices.sync_points);
  out.Member("restarts", devices.restarts).Close('}');
}

// Writes one check whether collective operations left before every member had entered.
void WriteOrder(const OrderCheck& check, JsonWriter& out) {
  out.Open('{').Member("job", check.job).Member("world_size", check.world_size);
  out.Member("event_type", check.event_type).Member("events", check.events);
  out.Member("left_out", check.left_out).Member("instances", check.instances);
  out.Member("violated", check.violated).Member("beyond_bounds", check.beyond_bounds);
  out.Member("worst_ns", check.worst_ns).Member("conclusive", check.is_conclusive);
  out.Member("words", check.words).Key("violations").Open('[');
  for (const OrderViolation& violation : check.violations) {
    out.Open('{').Member("at_ns", violation.reference_ns);
    out.Member("amount_ns", violation.amount_ns).Member("bound_ns", violation.bound_ns);
    out.Member("exec_id", violation.exec_id).Member("op_id", violation.operation);
    out.Member("entered_by", violation.entered_by).Member("left_by", violation.left_by).Close('}');
  }
  out.Close(']').Close('}');
}

}  // namespace

std::string_view ToString(ClockFindingKind kind) {
  switch (kind) {
    case ClockFindingKind::kBreak:
      return "break";
    case ClockFindingKind::kRejectedEvidence:
      return "rejected evidence";
    case ClockFindingKind::kRouteChange:
      return "route change";
    case ClockFindingKind::kInconsistent:
      break;
  }
  return "inconsistent";
}

TimedFindings FindingsOf(const InstanceClock& clock, size_t findings_max) {
  TimedFindings timed;
  for (const ClockFinding& finding : clock.model.findings) timed.findings.push_back({&finding, 0});
  // By badness first, because what is cut off must be the least important; by time afterwards.
  if (timed.findings.size() > findings_max) {
    std::stable_sort(timed.findings.begin(), timed.findings.end(),
                     [](const auto& a, const auto& b) { return IsWorse(*a.finding, *b.finding); });
    timed.left_out = timed.findings.size() - findings_max;
    timed.findings.resize(findings_max);
  }
  // A finding has raw times of its host; the model leads to the reference clock. Extrapolation can
  // exceed the largest time that exports can show.
  for (TimedFinding& finding : timed.findings) {
    finding.begin_ns =
        std::min(EvaluateClock(clock.model, finding.finding->x_begin_ns).estimate.y_ns, kTimeMaxNs);
  }
  std::stable_sort(timed.findings.begin(), timed.findings.end(),
                   [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  return timed;
}

ClockReport::ClockReport(const CaptureClocks* clocks, bool is_raw,
                         std::span<const StreamIdentity* const> streams)
    : clocks_(clocks), is_raw_(is_raw) {
  if (clocks != nullptr) {
    version_ = clocks->version;
    is_final_ = clocks->is_final;
  }
  // Many streams of one host share a clock: each boot of an instance counts once.
  std::set<std::pair<std::string, std::string>> seen;
  for (const StreamIdentity* stream : streams) {
    // A reboot starts another clock, so that one instance can have two.
    if (!seen.emplace(stream->worker.instance_id, stream->worker.boot_id).second) continue;
    const InstanceClock* clock = clocks == nullptr ? nullptr : clocks->Find(stream->worker);
    if (clock != nullptr) {
      known_.push_back(clock);
    } else {
      unknown_.push_back(stream->worker.instance_id);
    }
  }
  instances_ = seen.size();
  // The clocks are elements of one vector ordered by id, so that comparing pointers orders by id.
  std::sort(known_.begin(), known_.end());
  std::sort(unknown_.begin(), unknown_.end());
}

ClockReport ClockReport::Of(const CaptureClocks* clocks, bool is_raw,
                            std::span<const TimelineStream> streams) {
  std::vector<const StreamIdentity*> identities;
  identities.reserve(streams.size());
  for (const TimelineStream& stream : streams) {
    if (!stream.description.has_own_time()) identities.push_back(&stream.description.identity);
  }
  ClockReport report(clocks, is_raw, identities);
  report.SetOwnTimes(streams.size() - identities.size());
  return report;
}

std::span<const OrderCheck> ClockReport::order() const {
  if (clocks_ == nullptr) return {};
  return clocks_->order;
}

uint32_t ClockReport::algorithm_version() const {
  uint32_t version = 0;
  for (const InstanceClock* clock : known_) {
    version = std::max(version, clock->model.algorithm_version);
  }
  return version;
}

// One instance without a bound makes the whole export one without a bound.
std::optional<uint64_t> ClockReport::bound_max_ns() const {
  std::optional<uint64_t> bound_ns;
  for (const InstanceClock* clock : known_) {
    if (clock->bound_ns == kNoBound) return std::nullopt;
    bound_ns = std::max(bound_ns.value_or(0), clock->bound_ns);
  }
  return bound_ns;
}

std::string ClockReport::Describe() const {
  // Files with their own time have no clock that any other statement applies to.
  if (own_times_ == 0) return DescribeHosts();
  std::string own = fmt::format(
      "the times of {} framework file{} start at an unknown moment and are not aligned",
      own_times_, own_times_ == 1 ? "" : "s");
  return instances_ == 0 ? own : fmt::format("{}; {}", DescribeHosts(), own);
}

std::string ClockReport::DescribeHosts() const {
  if (known_.empty()) {
    return "times are from each instance's own clock (CLOCK_REALTIME); how much the clocks differ "
           "is unknown";
  }
  if (is_raw_) {
    return "times are from each instance's own clock (CLOCK_REALTIME), as requested, and are not "
           "aligned";
  }
  // kNoBound is the largest value, so that an instance without a bound is the worst.
  const InstanceClock& worst =
      **std::max_element(known_.begin(), known_.end(),
                         [](const auto* a, const auto* b) { return a->bound_ns < b->bound_ns; });
  std::string words =
      fmt::format("times are on the reference clock for {} of {} instances, {}",
                  known_.size(), instances_,
                  worst.bound_ns == kNoBound
                      ? fmt::format("without a bound for {}", worst.instance_id)
                      : fmt::format("within {} at worst ({})", DescribeDuration(worst.bound_ns),
                                    worst.instance_id));
  if (!unknown_.empty()) {
    words += fmt::format("; times of {} are not aligned, because no model of the clock exists",
                         Named(unknown_));
  }
  return words;
}

std::string ClockReport::Json() const {
  JsonWriter out;
  out.Open('{').Member("timestamps", timescale()).Member("words", Describe());
  if (!known_.empty()) {
    out.Member("version", version_).Member("final", is_final_);
    out.Member("algorithm_version", algorithm_version());
  }
  if (own_times_ > 0) out.Member("own_times", own_times_);
  if (const auto bound_ns = bound_max_ns()) out.Member("bound_max_ns", *bound_ns);
  out.Key("instances").Open('[');
  for (const InstanceClock* clock : known_) WriteInstance(*clock, out);
  out.Close(']').Member("unknown", unknown_);
  if (clocks_ != nullptr && !clocks_->devices.empty()) {
    WriteDevices(SummaryOf(clocks_->devices), out.Key("devices"));
  }
  out.Key("order").Open('[');
  for (const OrderCheck& check : order()) WriteOrder(check, out);
  return out.Close(']').Close('}').Take();
}

}  // namespace neurontrace
