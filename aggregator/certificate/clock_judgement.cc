// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/clock_judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "aggregator/align/clock_reading.h"

namespace neurontrace {
namespace {

constexpr size_t kNotesMax = 16;

// A time on the reference in which one clock is known badly, and how badly.
struct Doubt {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t bound_ns = 0;
};

void Extend(std::vector<Doubt>& doubts, const Doubt& doubt) {
  if (!doubts.empty() && doubts.back().end_ns >= doubt.begin_ns) {
    doubts.back().end_ns = std::max(doubts.back().end_ns, doubt.end_ns);
    doubts.back().bound_ns = std::max(doubts.back().bound_ns, doubt.bound_ns);
  } else {
    doubts.push_back(doubt);
  }
}

std::vector<Doubt> DoubtsOf(const ClockModel& model) {
  std::vector<Doubt> doubts;
  const ClockKnot* before = nullptr;
  for (const ClockSegment& segment : model.segments) {
    bool is_first = true;
    for (const ClockKnot& knot : segment.knots) {
      uint64_t bound_ns = knot.bound_ns;
      if (before != nullptr && is_first) {  // between two segments
        const uint64_t middle_ns = before->x_ns + (knot.x_ns - before->x_ns) / 2;
        bound_ns = EvaluateClock(model, middle_ns).estimate.bound_ns;
      } else if (before != nullptr) {
        bound_ns = std::max(bound_ns, before->bound_ns);
      }
      if (bound_ns > kOrderUnknownNs) {
        Extend(doubts, {before == nullptr ? knot.y_ns : before->y_ns, knot.y_ns, bound_ns});
      }
      before = &knot;
      is_first = false;
    }
  }
  return doubts;
}

void NoteDoubts(const InstanceClock& clock, std::vector<std::string>& notes, size_t& further) {
  for (const Doubt& doubt : DoubtsOf(clock.model)) {
    if (notes.size() >= kNotesMax) {
      ++further;
      continue;
    }
    notes.push_back(fmt::format(
        "from {} to {} the clock of {} is known to {} only: the order of its events and those of "
        "other instances is not, where they are nearer than that",
        doubt.begin_ns, doubt.end_ns, clock.instance_id, ClockWords(doubt.bound_ns)));
  }
}

}  // namespace

std::string ClockWords(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 999'500) return fmt::format("{:.1f} us", value / 1e3);
  if (ns < 999'500'000) return fmt::format("{:.3f} ms", value / 1e6);
  return fmt::format("{:.3f} s", value / 1e9);
}

void JudgeClocks(const CaptureClocks& clocks, Certificate& certificate) {
  const InstanceClock* worst = nullptr;
  for (WorkerCertificate& worker : certificate.workers) {
    const InstanceClock* clock = clocks.Find(worker.worker);
    if (clock == nullptr || clock->model.segments.empty()) continue;
    worker.clock = {.aligned = true,
                    .bound_ns = clock->bound_ns,
                    .likely_bound_ns = clock->likely_bound_ns,
                    .words = "within " + ClockWords(clock->bound_ns)};
    if (worst == nullptr || clock->bound_ns > worst->bound_ns) worst = clock;
  }
  if (worst == nullptr) return;
  certificate.notes.push_back(fmt::format(
      "times of all instances with a known clock are within {} of the reference, likely within {} "
      "(worst: {})",
      ClockWords(worst->bound_ns), ClockWords(worst->likely_bound_ns), worst->instance_id));
  std::vector<std::string> doubts;
  size_t further = 0;
  for (const InstanceClock& clock : clocks.instances) NoteDoubts(clock, doubts, further);
  if (further > 0) doubts.push_back(fmt::format("and {} more such times", further));
  certificate.notes.insert(certificate.notes.end(), doubts.begin(), doubts.end());
}

}  // namespace neurontrace
