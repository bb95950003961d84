// SPDX-License-Identifier: Apache-2.0
#include "cli/clocks_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/text.h"

namespace neurontrace::cli {
namespace {

// Findings of all instances together; the rest is counted.
constexpr int kFindingsShown = 20;

// Returns a duration with its unit. The limits are where rounding would print 1000.0 of the smaller
// unit.
std::string Magnitude(double ns) {
  if (ns < 999'500) return fmt::format("{:.1f} us", ns / 1e3);
  if (ns < 999'500'000) return fmt::format("{:.3f} ms", ns / 1e6);
  return fmt::format("{:.3f} s", ns / 1e9);
}

// Returns the kinds of evidence behind the estimate, or "-".
std::string FormatSources(const v1::InstanceClock& clock) {
  std::string text;
  for (const std::string& source : clock.sources()) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", source);
  }
  return text.empty() ? "-" : text;
}

// Returns the number of findings of one kind.
int64_t Count(const v1::InstanceClock& clock, v1::ClockFindingKind kind) {
  return std::count_if(clock.findings().begin(), clock.findings().end(),
                       [&](const v1::ClockFinding& finding) { return finding.kind() == kind; });
}

// Returns the findings of an instance, one line each, until `left` is used up. Continues to count
// below 0: then -left are not shown.
std::string FormatFindings(const v1::InstanceClock& clock, int& left) {
  std::string out;
  for (const v1::ClockFinding& finding : clock.findings()) {
    if (left-- <= 0) continue;
    out += fmt::format(
        "{}  {}  {}{}\n", clock.instance_id(), FormatTime(finding.begin_ns()), finding.words(),
        finding.amount_ns() == 0 ? "" : fmt::format(" ({})", FormatOffset(finding.amount_ns())));
  }
  return out;
}

}  // namespace

std::string FormatOffset(int64_t ns) {
  const double magnitude = std::abs(static_cast<double>(ns));
  return fmt::format("{}{}", ns > 0 ? "+" : ns < 0 ? "-" : "", Magnitude(magnitude));
}

std::string FormatBound(const v1::InstanceClock& clock) {
  if (!clock.aligned()) return "not aligned";
  return fmt::format("{} (likely {})", Magnitude(static_cast<double>(clock.bound_ns())),
                     Magnitude(static_cast<double>(clock.likely_bound_ns())));
}

std::string FormatClocks(const google::protobuf::RepeatedPtrField<v1::InstanceClock>& clocks) {
  std::vector<std::vector<std::string>> rows;
  std::string findings;
  int left = kFindingsShown;
  const v1::InstanceClock* worst = nullptr;
  for (const v1::InstanceClock& clock : clocks) {
    const bool known = clock.aligned();
    rows.push_back(
        {clock.instance_id(), known ? FormatOffset(clock.offset_ns()) : "-",
         known ? fmt::format("{:+.3f} ppm", static_cast<double>(clock.drift_ppb()) / 1e3) : "-",
         FormatBound(clock), FormatSources(clock), FormatCount(clock.exchanges()),
         FormatCount(static_cast<uint64_t>(Count(clock, v1::CLOCK_FINDING_KIND_BREAK))),
         FormatCount(
             static_cast<uint64_t>(Count(clock, v1::CLOCK_FINDING_KIND_REJECTED_EVIDENCE)))});
    findings += FormatFindings(clock, left);
    // A clock that is not aligned has no bound and cannot be the worst.
    if (known && (worst == nullptr || clock.bound_ns() > worst->bound_ns())) worst = &clock;
  }
  std::string out = FormatTable(
      {"INSTANCE", "OFFSET", "DRIFT", "BOUND", "EVIDENCE", "PROBES", "BREAKS", "REJECTED"}, rows);
  if (!findings.empty()) out += "\n" + findings;
  if (left < 0) out += fmt::format("({} more: --output json has all)\n", -left);
  if (worst != nullptr) {
    out += fmt::format("\nEvery aligned time is within {} of the reference (worst: {}).\n",
                       Magnitude(static_cast<double>(worst->bound_ns())), worst->instance_id());
  }
  return out;
}

std::string FormatClockVersion(const v1::ListClocksReply& reply) {
  // Version 0 is an estimate for this call only, as of a running capture.
  if (reply.version() == 0)
    return "This version is not stored; a later call may return better estimates.\n";
  return fmt::format("Version {} of this capture's clocks, {}.\n", reply.version(),
                     reply.final() ? "final" : "not final yet");
}

std::string FormatDevicesAndOrder(const v1::ListClocksReply& reply) {
  std::string out;
  const v1::DeviceClocks& devices = reply.devices();
  if (devices.known() > 0) {
    out += fmt::format(
        "\n"
        "Events of {} are placed by the cores' own counters, within {} (likely {}) of their hosts' "
        "clocks.\n",
        FormatCounted(devices.known(), "device core"),
        Magnitude(static_cast<double>(devices.bound_ns())),
        Magnitude(static_cast<double>(devices.likely_bound_ns())));
  }
  if (devices.unknown() > 0) {
    out += fmt::format("Events of {} keep the runtime's own timestamps.\n",
                       FormatCounted(devices.unknown(), "device core"));
  }
  if (reply.order_size() > 0) out += "\nOrder of cross-instance operations:\n";
  for (const v1::OrderCheck& check : reply.order()) {
    const std::string job = check.job().empty() ? "" : fmt::format("job {}: ", check.job());
    out += fmt::format("  {}{}\n", job, check.words());
  }
  return out;
}

}  // namespace neurontrace::cli
