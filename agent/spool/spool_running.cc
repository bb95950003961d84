// SPDX-License-Identifier: Apache-2.0
// Which captures go on at the next start of an agent, and which aggregator the spool is for
// (docs/decisions/0012-captures-go-on-without-the-aggregator.md).
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/spool/spool.h"

namespace neurontrace {

void Spool::NoteRunning(const CaptureId& capture_id, const CaptureSpec& spec) {
  if (!readable_ || options_.boot_id.empty()) return;
  if (running_.size() >= limits::kSpoolRunningMax && !running_.contains(capture_id)) return;
  running_.insert_or_assign(capture_id, spec);
  next_tidy_ns_ = 0;
  KickLater(0);
}

bool Spool::WaitsToBeRecorded() const {
  return std::any_of(running_.begin(), running_.end(),
                     [this](const auto& item) { return !recorded_.contains(item.first); });
}

void Spool::NoteUnsure(const CaptureId& capture_id) {
  if (running_.erase(capture_id) != 0) KickLater(0);
}

void Spool::NoteAggregator(const std::string& aggregator_id) {
  if (!readable_ || aggregator_id == aggregator_id_) return;
  aggregator_id_ = aggregator_id;
  aggregator_dirty_ = true;
  KickLater(0);
}

// Captures that are over leave the file before anything of them goes.
void Spool::PutRunningLeft(SpoolJob& job) {
  recorded_in_job_ = recorded_;
  if (std::erase_if(recorded_in_job_, [this](const CaptureId& capture_id) {
        return !running_.contains(capture_id);
      }) == 0) {
    return;
  }
  SpoolRunning left{options_.boot_id, {}};
  if (recorded_in_job_.empty()) {
    job.running_left.emplace();
    return;
  }
  for (const CaptureId& capture_id : recorded_in_job_) {
    left.captures[capture_id] = running_.at(capture_id);
  }
  job.running_left = EncodeSpoolRunning(left);
}

// Captures come into the file when the cursors on the disk are exact: with this very job.
void Spool::PutRunning(SpoolJob& job) {
  const bool all = std::all_of(running_.begin(), running_.end(), [this](const auto& item) {
    return recorded_in_job_.contains(item.first);
  });
  if (all || !health_.ok() || !listener_->CursorsAreExact()) return;
  const std::string bytes = EncodeSpoolRunning({options_.boot_id, running_});
  if (bytes.size() > limits::kSpoolRunningBytesMax) return;
  for (const auto& [capture_id, spec] : running_) {
    recorded_in_job_.insert(capture_id);
    const std::string directory = DirectoryOf(capture_id);
    const auto known =
        std::find_if(job.cursors.begin(), job.cursors.end(),
                     [&](const SpoolJob::Cursor& cursor) { return cursor.directory == directory; });
    if (known == job.cursors.end()) {
      PutCursor(capture_id, true, job);
    } else {
      known->create = true;
    }
  }
  job.running = bytes;
}

void Spool::TakeRunning(const SpoolJobResult& result) {
  using Running = SpoolJobResult::Running;
  const bool was_stuck = std::exchange(running_stuck_, result.running == Running::kStuck);
  if (running_stuck_ && !was_stuck) {
    spdlog::error("spool: {} cannot be removed, though it no longer holds",
                  RunningFileOf(options_.directory));
  }
  if (result.running == Running::kLeft || result.running == Running::kWritten) {
    recorded_ = std::move(recorded_in_job_);
  } else if (result.running == Running::kGone) {
    recorded_.clear();
  }
}

}  // namespace neurontrace
