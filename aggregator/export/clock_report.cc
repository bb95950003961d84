// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/clock_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "aggregator/align/clock_reading.h"
#include "base/json_string.h"

namespace neurontrace {
namespace {

constexpr size_t kInstancesNamed = 4;

uint64_t Magnitude(int64_t amount) {
  return amount < 0 ? 0 - static_cast<uint64_t>(amount) : static_cast<uint64_t>(amount);
}

bool IsWorse(const ClockFinding& a, const ClockFinding& b) {
  const bool a_breaks = a.kind == ClockFindingKind::kBreak;
  const bool b_breaks = b.kind == ClockFindingKind::kBreak;
  if (a_breaks != b_breaks) return a_breaks;
  return Magnitude(a.amount_ns) > Magnitude(b.amount_ns);
}

std::string DurationWords(uint64_t ns) {
  if (ns < 10'000) return fmt::format("{} ns", ns);
  if (ns < 10'000'000) return fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3);
  return fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6);
}

std::string Named(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kInstancesNamed);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

void AppendInstance(const InstanceClock& clock, std::string& out) {
  out += "{\"instance_id\":";
  AppendJsonString(clock.instance_id, out);
  out += ",\"boot_id\":";
  AppendJsonString(clock.boot_id, out);
  if (clock.bound_ns != kNoBound) {
    out += fmt::format(",\"bound_ns\":{},\"likely_bound_ns\":{}", clock.bound_ns,
                       clock.likely_bound_ns);
  }
  out += fmt::format(
      ",\"offset_ns\":{},\"drift_ppb\":{},\"exchanges\":{},\"evidence_used\":{},"
      "\"evidence_rejected\":{},\"segments\":{},\"sources\":[",
      clock.offset_ns, clock.drift_ppb, clock.exchanges, clock.model.evidence_used,
      clock.model.evidence_rejected, clock.model.segments.size());
  for (size_t i = 0; i < clock.sources.size(); ++i) {
    if (i > 0) out += ',';
    AppendJsonString(clock.sources[i], out);
  }
  out += "],\"findings\":[";
  const TimedFindings findings = FindingsOf(clock, ClockReport::kFindingsMax);
  for (const TimedFinding& timed : findings.findings) {
    const ClockFinding& finding = *timed.finding;
    if (out.back() != '[') out += ',';
    out += fmt::format(
        "{{\"kind\":\"{}\",\"at_ns\":{},\"raw_begin_ns\":{},\"raw_end_ns\":{},\"amount_ns\":{},"
        "\"words\":",
        ToString(finding.kind), timed.begin_ns, finding.x_begin_ns, finding.x_end_ns,
        finding.amount_ns);
    AppendJsonString(finding.words, out);
    out += '}';
  }
  out += fmt::format("],\"findings_left_out\":{}}}", findings.left_out);
}

void AppendDevices(const DeviceSummary& devices, std::string& out) {
  out += fmt::format(
      ",\"devices\":{{\"known\":{},\"unknown\":{},\"bound_max_ns\":{},\"likely_bound_max_ns\":{},"
      "\"executions\":{},\"sync_points\":{},\"restarts\":{}}}",
      devices.known, devices.unknown, devices.bound_ns, devices.likely_bound_ns, devices.executions,
      devices.sync_points, devices.restarts);
}

void AppendOrder(const OrderCheck& check, std::string& out) {
  out += "{\"job\":";
  AppendJsonString(check.job, out);
  out += fmt::format(
      ",\"world_size\":{},\"event_type\":\"{}\",\"events\":{},\"left_out\":{},\"instances\":{},"
      "\"violated\":{},\"beyond_bounds\":{},\"worst_ns\":{},\"conclusive\":{},\"words\":",
      check.world_size, check.event_type, check.events, check.left_out, check.instances,
      check.violated, check.beyond_bounds, check.worst_ns, check.is_conclusive);
  AppendJsonString(check.words, out);
  out += ",\"violations\":[";
  for (const OrderViolation& violation : check.violations) {
    if (out.back() != '[') out += ',';
    out += fmt::format(
        "{{\"at_ns\":{},\"amount_ns\":{},\"bound_ns\":{},\"exec_id\":{},\"op_id\":{},"
        "\"entered_by\":",
        violation.reference_ns, violation.amount_ns, violation.bound_ns, violation.exec_id,
        violation.operation);
    AppendJsonString(violation.entered_by, out);
    out += ",\"left_by\":";
    AppendJsonString(violation.left_by, out);
    out += '}';
  }
  out += "]}";
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
  if (timed.findings.size() > findings_max) {
    std::stable_sort(timed.findings.begin(), timed.findings.end(),
                     [](const auto& a, const auto& b) { return IsWorse(*a.finding, *b.finding); });
    timed.left_out = timed.findings.size() - findings_max;
    timed.findings.resize(findings_max);
  }
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
  std::set<std::pair<std::string, std::string>> seen;
  for (const StreamIdentity* stream : streams) {
    if (!seen.emplace(stream->worker.instance_id, stream->worker.boot_id).second) continue;
    const InstanceClock* clock = clocks == nullptr ? nullptr : clocks->Find(stream->worker);
    if (clock != nullptr) {
      known_.push_back(clock);
    } else {
      unknown_.push_back(stream->worker.instance_id);
    }
  }
  instances_ = seen.size();
  // The clocks stand in one row, by id.
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

std::optional<uint64_t> ClockReport::bound_max_ns() const {
  std::optional<uint64_t> bound_ns;
  for (const InstanceClock* clock : known_) {
    if (clock->bound_ns == kNoBound) return std::nullopt;
    bound_ns = std::max(bound_ns.value_or(0), clock->bound_ns);
  }
  return bound_ns;
}

std::string ClockReport::Words() const {
  if (own_times_ == 0) return HostWords();
  std::string own = fmt::format(
      "the times of {} framework file{} count from a moment that is not known and are not aligned "
      "with anything",
      own_times_, own_times_ == 1 ? "" : "s");
  return instances_ == 0 ? own : fmt::format("{}; {}", HostWords(), own);
}

std::string ClockReport::HostWords() const {
  if (known_.empty()) {
    return "times are those of each instance's own clock (CLOCK_REALTIME); how far these differ is "
           "not known";
  }
  if (is_raw_) {
    return "times are those of each instance's own clock (CLOCK_REALTIME), as was asked for; they "
           "are not aligned";
  }
  const InstanceClock& worst =
      **std::max_element(known_.begin(), known_.end(),
                         [](const auto* a, const auto* b) { return a->bound_ns < b->bound_ns; });
  std::string words = fmt::format(
      "times are those of the reference clock, for {} of {} instances, {}", known_.size(),
      instances_,
      worst.bound_ns == kNoBound ? fmt::format("without a bound for {}", worst.instance_id)
                                 : fmt::format("within {} at the worst ({})",
                                               DurationWords(worst.bound_ns), worst.instance_id));
  if (!unknown_.empty()) {
    words += fmt::format("; nothing is known of the clock of {}, whose times are its own",
                         Named(unknown_));
  }
  return words;
}

std::string ClockReport::Json() const {
  std::string out = fmt::format("{{\"timestamps\":\"{}\",\"words\":", timescale());
  AppendJsonString(Words(), out);
  if (!known_.empty()) {
    out += fmt::format(",\"version\":{},\"final\":{},\"algorithm_version\":{}", version_, is_final_,
                       algorithm_version());
  }
  if (own_times_ > 0) out += fmt::format(",\"own_times\":{}", own_times_);
  if (const auto bound_ns = bound_max_ns()) out += fmt::format(",\"bound_max_ns\":{}", *bound_ns);
  out += ",\"instances\":[";
  for (const InstanceClock* clock : known_) {
    if (out.back() != '[') out += ',';
    AppendInstance(*clock, out);
  }
  out += "],\"unknown\":[";
  for (const std::string& instance : unknown_) {
    if (out.back() != '[') out += ',';
    AppendJsonString(instance, out);
  }
  out += ']';
  if (clocks_ != nullptr && !clocks_->devices.empty()) {
    AppendDevices(SummaryOf(clocks_->devices), out);
  }
  out += ",\"order\":[";
  for (const OrderCheck& check : order()) {
    if (out.back() != '[') out += ',';
    AppendOrder(check, out);
  }
  return out + "]}";
}

}  // namespace neurontrace
