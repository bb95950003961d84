// SPDX-License-Identifier: Apache-2.0
#include "cli/captures_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/capture_view.h"
#include "cli/certificate_view.h"
#include "cli/outcome_view.h"
#include "cli/selection_view.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

std::string DashIfEmpty(std::string text) { return text.empty() ? "-" : text; }

}  // namespace

std::string FormatCaptures(const v1::ListCapturesReply& reply, int shown) {
  const int size = reply.captures_size();
  const int first = std::max(0, size - shown);
  std::vector<std::string> header = {"CAPTURE", "NAME",   "STATE", "MODE", "STARTED",
                                     "WORKERS", "EVENTS", "LOST",  "SIZE"};
  const auto add_column = [&](const char* name, const auto& text_of) {
    const bool is_used =
        std::any_of(reply.captures().begin() + first, reply.captures().end(),
                    [&](const v1::Capture& one) { return !text_of(one.spec()).empty(); });
    if (is_used) header.push_back(name);
    return is_used;
  };
  // Not everybody has these: no column of nothing but dashes.
  const auto cause = [](const v1::CaptureSpec& spec) { return spec.cause(); };
  const bool with_jobs = add_column("JOB", FormatJobs);
  const bool with_tags = add_column("TAGS", FormatLabels);
  const bool with_causes = add_column("CAUSE", cause);
  std::vector<std::vector<std::string>> rows;
  for (int i = first; i < size; ++i) {
    const v1::Capture& capture = reply.captures(i);
    const v1::CaptureSpec& spec = capture.spec();
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        capture.capture_id(), DashIfEmpty(spec.name()), CaptureStateName(capture.state()),
        CaptureModeName(spec.mode()), FormatTime(capture.started_realtime_ns()),
        FormatCount(CountWorkers(capture.workers())), FormatCount(capture.events()),
        FormatLost(capture.events_lost(), capture.events_lost_unknown()),
        FormatBytes(capture.bytes())});
    if (with_jobs) row.push_back(DashIfEmpty(FormatJobs(spec)));
    if (with_tags) row.push_back(DashIfEmpty(FormatLabels(spec)));
    if (with_causes) row.push_back(DashIfEmpty(spec.cause()));
  }
  const std::string older =
      first == 0 ? ""
                 : fmt::format("({} older: neurontrace captures list --all shows them)\n", first);
  return older + FormatTable(header, rows);
}

std::string FormatStreams(const v1::Capture& capture) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::CaptureStream& stream : capture.streams()) {
    rows.push_back({std::to_string(stream.number()), stream.identity().worker().instance_id(),
                    std::to_string(stream.identity().worker().pid()), CoreName(stream.identity()),
                    stream.worker_gid() < 0 ? "unknown" : std::to_string(stream.worker_gid()),
                    FormatCount(stream.events()), FormatCount(stream.chunks()),
                    FormatBytes(stream.bytes()),
                    FormatDuration(stream.last_timestamp_ns() - stream.first_timestamp_ns())});
  }
  return FormatTable(
      {"STREAM", "INSTANCE", "PID", "SOURCE", "WORKER GID", "EVENTS", "CHUNKS", "SIZE", "SPAN"},
      rows);
}

}  // namespace neurontrace::cli
