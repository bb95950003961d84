// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/execution_stop_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "lib/base/time_units.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// How far the workers are.
struct Progress {
  size_t past = 0;      // have passed the last execution
  size_t behind = 0;    // have not reached its end, but report executions
  size_t silent = 0;    // record and have reported no execution
  size_t coming = 0;    // have yet to begin
  size_t ended = 0;     // had begun, and can execute no more
  size_t short_of = 0;  // of the ended ones, those that had not passed the last execution
  uint64_t newest = 0;
  uint64_t lowest = 0;  // the newest of the core that is furthest behind; 0: not known
  // Changes with every reported execution of the first and of the last core of a worker.
  uint64_t sum = 0;

  size_t running() const { return past + behind + silent + coming; }
};

// Counts each worker in exactly one group, except refused ones, which never had a part. Requires a
// begun capture.
Progress Measure(const CaptureRecord& record, uint64_t now_realtime_ns) {
  std::map<std::string_view, uint64_t> away_since;
  for (const CaptureAgentPart& part : record.agents) {
    if (part.away_since_realtime_ns != 0)
      away_since[part.instance_id] = part.away_since_realtime_ns;
  }
  const auto is_lost = [&](const CaptureWorkerStatus& status) {
    const auto since = away_since.find(status.worker.instance_id);
    return since != away_since.end() &&
           now_realtime_ns >= since->second + limits::kAgentReturnMaxNs;
  };
  Progress progress;
  const uint64_t last = record.begin->last_execution;
  for (const CaptureWorkerStatus& status : record.workers) {
    if (status.framework || status.state == CaptureWorkerState::kRefused) continue;
    progress.newest = std::max(progress.newest, status.newest_execution);
    progress.sum += status.newest_execution + status.lowest_newest_execution;
    if (const uint64_t lowest = status.lowest_newest_execution; lowest != 0) {
      progress.lowest = progress.lowest == 0 ? lowest : std::min(progress.lowest, lowest);
    }
    if (status.state == CaptureWorkerState::kComplete ||
        status.state == CaptureWorkerState::kLost || is_lost(status)) {
      ++progress.ended;
      progress.short_of += last == 0 || status.newest_execution <= last;
    } else if (status.state != CaptureWorkerState::kRecording) {
      // A worker that was not armed in time may never be.
      if (status.obstacle == CaptureObstacle::kNone) ++progress.coming;
    } else if (status.newest_execution == 0) {
      ++progress.silent;
    } else if (last != 0 && status.newest_execution > last) {
      ++progress.past;
    } else {
      ++progress.behind;
    }
  }
  return progress;
}

// Names what was waited for, for the reason of a stop.
std::string GoalOf(const CaptureBegin& begin) {
  if (begin.first_execution == 0) return "an execution to start at was found";
  return fmt::format("execution {}",
                     begin.last_execution != 0 ? begin.last_execution : begin.first_execution);
}

// Adds how far the fastest and the slowest core came.
std::string DescribeNewest(const Progress& progress) {
  if (progress.newest == 0) return "none reported an execution";
  std::string text = fmt::format("the newest was {}", progress.newest);
  if (progress.lowest != 0 && progress.lowest < progress.newest) {
    text += fmt::format(", and {} on the core that is furthest behind", progress.lowest);
  }
  return text;
}

}  // namespace

bool HasReachedExecutions(const CaptureRecord& record) {
  return std::any_of(record.workers.begin(), record.workers.end(),
                     [](const CaptureWorkerStatus& status) {
                       return !status.framework && status.first_execution != 0;
                     });
}

std::optional<std::string> ExecutionStopPolicy::Check(const CaptureRecord& record,
                                                      const SessionTime& now) {
  const CaptureSpec& spec = record.spec;
  if (!record.begin || !spec.conditions.by_execution()) return std::nullopt;
  // A capture without an end waits for a command to stop. One by time ends by that time once it has
  // reached its first execution.
  const bool has_end = spec.conditions.executions > 0 || spec.timing.duration_ns > 0;
  if (!has_end || (spec.conditions.executions == 0 && HasReachedExecutions(record)))
    return std::nullopt;

  // Three ends: all workers that can execute have passed the goal, all others have and stragglers
  // were waited for, or nobody executes any more.
  const Progress progress = Measure(record, now.realtime_ns);
  if (progress_since_ns_ == 0 || progress.sum != progress_) {
    progress_ = progress.sum;
    progress_since_ns_ = now.monotonic_ns;
  }
  if (progress.running() == 0 && progress.ended > 0) {
    if (progress.short_of == 0) return "";
    return fmt::format("its workers ended or their agents disconnected before {}: {}",
                       GoalOf(*record.begin), DescribeNewest(progress));
  }
  const bool all_past = progress.past > 0 && progress.behind == 0;
  const size_t stragglers = progress.silent + progress.coming;
  if (!all_past) {
    straggling_since_ns_ = 0;
  } else if (stragglers == 0) {
    return "";
  } else {
    if (straggling_since_ns_ == 0) straggling_since_ns_ = now.monotonic_ns;
    if (now.monotonic_ns >= straggling_since_ns_ + kStragglerNs) {
      return fmt::format("all others are behind {}, and {} of {} workers reported no execution",
                         GoalOf(*record.begin), stragglers, progress.running());
    }
  }
  if (now.monotonic_ns >= progress_since_ns_ + kNoProgressNs) {
    return fmt::format("no worker reported a further execution for {} s, before {}: {}",
                       kNoProgressNs / kNsPerSecond, GoalOf(*record.begin),
                       DescribeNewest(progress));
  }
  return std::nullopt;
}

}  // namespace neurontrace
