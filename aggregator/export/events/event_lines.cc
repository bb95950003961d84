// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/events/event_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "aggregator/timeline/rank_binding.h"
#include "base/status.h"
#include "trace/event_json.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kEntriesAtOnce = 256;
constexpr size_t kPieceBytes = size_t{256} << 10;

// What every line of a stream begins with.
std::string LineHead(const StreamDescription& stream, const RankBinding& rank) {
  const StreamIdentity& identity = stream.identity;
  std::string head = fmt::format("{{\"stream\":{},\"instance_id\":", stream.number);
  AppendJsonString(identity.worker.instance_id, head);
  head += fmt::format(",\"pid\":{},\"nc_idx\":{},\"worker_gid\":{}", identity.worker.pid,
                      identity.has_core() ? static_cast<int64_t>(identity.nc_idx) : -1,
                      rank.worker_gid.value_or(-1));
  if (!identity.name.empty()) {
    head += ",\"file\":";
    AppendJsonString(identity.name, head);
  }
  head += ",\"event\":";
  return head;
}

class EventLines {
 public:
  EventLines(ChunkSource& source, const TimelineFilter& filter,
             const std::function<absl::Status(std::string_view)>& write,
             const std::function<bool(const EventLinesTotal&)>& progress)
      : source_(source), filter_(filter), write_(write), progress_(progress) {}

  absl::StatusOr<EventLinesTotal> Run(std::string_view certificate_json) {
    if (!certificate_json.empty()) {
      text_ += fmt::format("{{\"certificate\":{}}}\n", certificate_json);
    }
    ASSIGN_OR_RETURN(const CaptureDescription capture, source_.Describe());
    total_.warnings = capture.warnings;
    const std::vector<RankBinding> ranks = BindRanks(capture.streams, total_.warnings);
    for (const StreamDescription& stream : capture.streams) {
      if (filter_.SelectsStream(stream.identity)) total_.chunks_total += stream.chunks;
    }
    for (size_t i = 0; i < capture.streams.size(); ++i) {
      if (!filter_.SelectsStream(capture.streams[i].identity)) continue;
      RETURN_IF_ERROR(WriteStream(capture.streams[i], ranks[i]));
    }
    RETURN_IF_ERROR(Flush());
    return std::move(total_);
  }

 private:
  absl::Status WriteStream(const StreamDescription& stream, const RankBinding& rank) {
    const std::string head = LineHead(stream, rank);
    IndexPosition from{.last_timestamp_ns = filter_.window_start_ns, .sequence = 0};
    std::vector<ChunkEntry> entries;
    do {
      RETURN_IF_ERROR(source_.ReadIndex(stream.number, from, kEntriesAtOnce, entries));
      for (const ChunkEntry& entry : entries) {
        from = {.last_timestamp_ns = entry.last_timestamp_ns, .sequence = entry.sequence + 1};
        if (entry.first_timestamp_ns >= filter_.window_end_ns) continue;
        RETURN_IF_ERROR(WriteChunk(stream, entry.sequence, head));
      }
    } while (entries.size() == kEntriesAtOnce);
    return absl::OkStatus();
  }

  absl::Status WriteChunk(const StreamDescription& stream, uint64_t sequence,
                          const std::string& head) {
    absl::Status status = source_.ReadColumns(stream.number, sequence, columns_);
    if (status.ok()) status = chunk_.Decode(columns_);
    if (!status.ok()) {
      ++total_.chunks_left_out;
      Warn(fmt::format("chunk {} of {} is left out: {}", sequence, ToString(stream.identity),
                       std::string(status.message())));
      return absl::OkStatus();
    }
    ++total_.chunks_read;
    std::vector<bool> wanted;
    for (const Shape& shape : chunk_.shapes()) {
      wanted.push_back(filter_.event_types.Selects(shape.event_type));
    }
    for (size_t event = 0; event < chunk_.size(); ++event) {
      const uint64_t time_ns = chunk_.timestamp_ns()[event];
      if (time_ns < filter_.window_start_ns || time_ns >= filter_.window_end_ns) continue;
      if (!wanted[chunk_.shape_of()[event]]) continue;
      text_ += head;
      const size_t begin = text_.size();
      AppendEventJson(chunk_, event, stream.identity.nc_idx, text_);
      // Nested values keep the layout of their source. In strings, line ends are escaped.
      std::replace_if(
          text_.begin() + static_cast<std::ptrdiff_t>(begin), text_.end(),
          [](char c) { return c == '\n' || c == '\r'; }, ' ');
      text_ += "}\n";
      ++total_.events;
      if (text_.size() >= kPieceBytes) RETURN_IF_ERROR(Flush());
    }
    return progress_(total_) ? absl::OkStatus()
                             : absl::Status(absl::StatusCode::kCancelled, "nobody listens");
  }

  void Warn(std::string warning) {
    if (total_.warnings.size() < limits::kCaptureWarningsMax) {
      total_.warnings.push_back(std::move(warning));
    }
  }

  absl::Status Flush() {
    RETURN_IF_ERROR(write_(text_));
    total_.bytes += text_.size();
    text_.clear();
    return absl::OkStatus();
  }

  ChunkSource& source_;
  const TimelineFilter& filter_;
  const std::function<absl::Status(std::string_view)>& write_;
  const std::function<bool(const EventLinesTotal&)>& progress_;
  EventLinesTotal total_;
  std::string columns_;
  DecodedChunk chunk_;
  std::string text_;
};

}  // namespace

absl::StatusOr<EventLinesTotal> WriteEventLines(
    ChunkSource& source, const TimelineFilter& filter, std::string_view certificate_json,
    const std::function<absl::Status(std::string_view)>& write,
    const std::function<bool(const EventLinesTotal&)>& progress) {
  return EventLines(source, filter, write, progress).Run(certificate_json);
}

}  // namespace neurontrace
