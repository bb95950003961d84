// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/clock_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_reading.h"
#include "aggregator/certificate/verdict.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// A capture of a thousand instances with bad clocks must leave room for its other notes.
constexpr size_t kNotesMax = 16;
constexpr size_t kInstancesNamedMax = 4;

// Returns the stretches of a window in which the clock is known to worse than kOrderUnknownNs.
// Joins adjacent pieces: a map has many, and a note for each would describe one doubt many times.
std::vector<ClockBound> FindWideBounds(const ClockMap& map, const ReferenceWindow& window) {
  std::vector<ClockBound> doubts;
  for (const ClockBound& bound : BoundsIn(map, window)) {
    if (bound.bound_ns <= kOrderUnknownNs) continue;
    if (!doubts.empty() && doubts.back().end_ns >= bound.begin_ns) {
      doubts.back().end_ns = bound.end_ns;
      doubts.back().bound_ns = std::max(doubts.back().bound_ns, bound.bound_ns);
    } else {
      doubts.push_back(bound);
    }
  }
  return doubts;
}

// Adds a note for each doubt of one clock; counts those beyond kNotesMax in `further`. Times are
// seconds since the begin of the window.
void AddDoubts(const InstanceClock& clock, const ReferenceWindow& window,
               std::vector<std::string>& notes, size_t& further) {
  const auto seconds = [&window](uint64_t ns) {
    return static_cast<double>(SubtractSaturating(ns, window.begin_ns)) / 1e9;
  };
  // A capture without stamps has no time in which a doubt could matter.
  if (window.end_ns <= window.begin_ns) return;
  for (const ClockBound& doubt : FindWideBounds(clock.realtime, window)) {
    if (notes.size() >= kNotesMax) {
      ++further;
      continue;
    }
    const std::string when =
        fmt::format("from {:.3f} s to {:.3f} s of the capture the clock of {}",
                    seconds(doubt.begin_ns), seconds(doubt.end_ns), clock.instance_id);
    notes.push_back(doubt.bound_ns == kNoBound
                        ? when + " is unknown, so its times there may have any error"
                        : fmt::format("{} is only known to within {}; the order of events of "
                                      "different instances closer than that is uncertain",
                                      when, DescribeClockBound(doubt.bound_ns)));
  }
}

// Only a note while the capture is recorded, because evidence of its newest part is still on its
// way. Names at most kInstancesNamedMax instances.
void ReportUnknown(const std::set<std::string>& instances, Certificate& certificate) {
  const size_t named = std::min(instances.size(), kInstancesNamedMax);
  std::string text = fmt::format(
      "the clock{} of {}{} {} unknown for a part of the capture{}",
      instances.size() == 1 ? "" : "s",
      fmt::join(instances.begin(), std::next(instances.begin(), static_cast<long>(named)), ", "),
      named < instances.size() ? fmt::format(" and {} more", instances.size() - named) : "",
      instances.size() == 1 ? "is" : "are", certificate.provisional ? " yet" : "");
  if (certificate.provisional) {
    certificate.notes.push_back(std::move(text));
  } else {
    AddFinding(certificate, std::move(text));
  }
}

// Returns the number of files with times of their own, which no clock of the instance stamped.
size_t OwnTimes(const WorkerCertificate& worker) {
  return static_cast<size_t>(
      std::count_if(worker.streams.begin(), worker.streams.end(),
                    [](const StreamCertificate& stream) { return stream.own_time; }));
}

}  // namespace

// Three digits after the point show 1 us in ms and 1 ms in s.
std::string DescribeClockBound(uint64_t ns) {
  if (ns == kNoBound) return "not known";
  const auto value = static_cast<double>(ns);
  // The limits are below the next unit by half of the last digit, so that no value is rounded to
  // "1000.0 us".
  if (ns < 999'500) return fmt::format("{:.1f} us", value / 1e3);
  if (ns < 999'500'000) return fmt::format("{:.3f} ms", value / 1e6);
  return fmt::format("{:.3f} s", value / 1e9);
}

// The notes come in this order: violations, the worst bound, then the doubts of each clock.
void AddClockFindings(const CaptureClocks& clocks, Certificate& certificate) {
  // Only violations: what could not be compared proves nothing and is reported among the clocks
  // alone.
  for (const OrderCheck& check : clocks.order) {
    if (check.violated > 0) certificate.notes.push_back(check.words);
  }
  const InstanceClock* worst = nullptr;
  std::set<std::string> unknown;
  for (WorkerCertificate& worker : certificate.workers) {
    const size_t own_times = OwnTimes(worker);
    // No clock applies to any of its streams, however good the instance's clock is.
    if (own_times > 0 && own_times == worker.streams.size()) {
      worker.clock.words = "own time, not aligned";
      continue;
    }
    const InstanceClock* clock = clocks.Find(worker.worker);
    if (clock == nullptr || clock->model.segments.empty()) continue;
    if (clock->bound_ns == kNoBound) {
      worker.clock.words = "not known for a part of the capture";
      unknown.insert(clock->instance_id);
      continue;
    }
    worker.clock = {.aligned = true,
                    .bound_ns = clock->bound_ns,
                    .likely_bound_ns = clock->likely_bound_ns,
                    .words = "within " + DescribeClockBound(clock->bound_ns)};
    if (own_times > 0) {
      worker.clock.words +=
          fmt::format(", {} of {} files not aligned", own_times, worker.streams.size());
    }
    if (worst == nullptr || clock->bound_ns > worst->bound_ns) worst = clock;
  }
  if (!unknown.empty()) ReportUnknown(unknown, certificate);
  if (worst == nullptr && unknown.empty()) return;
  if (worst != nullptr) {
    certificate.notes.push_back(fmt::format(
        "times of all instances with a known clock are within {} of the reference, likely within "
        "{} (worst: {})",
        DescribeClockBound(worst->bound_ns), DescribeClockBound(worst->likely_bound_ns),
        worst->instance_id));
  }
  std::vector<std::string> doubts;
  size_t further = 0;
  for (const InstanceClock& clock : clocks.instances) {
    AddDoubts(clock, clocks.window, doubts, further);
  }
  if (further > 0) doubts.push_back(fmt::format("and {} more such times", further));
  certificate.notes.insert(certificate.notes.end(), doubts.begin(), doubts.end());
}

}  // namespace neurontrace
