// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/events/event_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "aggregator/export/clock_report.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/timeline/device_stamp.h"
#include "aggregator/timeline/rank_binding.h"
#include "lib/base/clean_text.h"
#include "lib/base/json_string.h"
#include "lib/base/status.h"
#include "lib/trace/event_json.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Keeps the index of a long stream from being in memory at once.
constexpr size_t kEntriesAtOnce = 256;
// Text that is collected before `write` is called.
constexpr size_t kPieceBytes = size_t{256} << 10;

// Returns the begin of every line of a stream, which is formatted once.
std::string LineHead(const StreamDescription& stream, const RankBinding& rank) {
  const StreamIdentity& identity = stream.identity;
  std::string head = fmt::format("{{\"stream\":{},\"instance_id\":", stream.number);
  AppendJsonString(identity.worker.instance_id, head);
  head += fmt::format(",\"pid\":{},\"nc_idx\":{},\"worker_gid\":{}", identity.worker.pid,
                      identity.has_core() ? static_cast<int64_t>(identity.nc_idx) : -1,
                      rank.worker_gid.value_or(-1));
  if (identity.kind == StreamKind::kHost) head += ",\"host\":true";
  if (identity.kind == StreamKind::kAnnotation) {
    head += ",\"annotations\":true";
  } else if (!identity.name.empty()) {
    head += ",\"file\":";
    AppendJsonString(identity.name, head);
  }
  if (stream.has_own_time()) head += ",\"own_time\":true";
  return head;
}

// The texts of a stored chunk need not be UTF-8, while a line of JSON must be. Each invalid byte
// becomes U+FFFD.
void MakeUtf8(size_t begin, std::string& text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_ascii)) return;
  const std::string written = text.substr(begin);
  text.resize(begin);
  for (std::string_view rest = written; !rest.empty();) {
    const size_t bytes = Utf8SequenceBytes(rest);
    text += bytes == 0 ? std::string_view("\xef\xbf\xbd") : rest.substr(0, bytes);
    rest.remove_prefix(std::max<size_t>(bytes, 1));
  }
}

// Appends what is known of a line's time; nothing if nothing is known of the host's clock.
class LineClock {
 public:
  LineClock(const StreamDescription& stream, const EventLinesRequest& request) {
    if (request.clocks == nullptr || request.raw_clocks || stream.has_own_time()) return;
    if (request.clocks->Find(stream.identity.worker) == nullptr) return;
    cursor_.emplace(request.clocks->maps.For(stream.identity.worker, stream.clock_domain));
  }

  // The cursor is fastest if the times of one stream ascend.
  void Append(uint64_t raw_ns, bool is_device_stamped, std::string& out) {
    if (!cursor_) return;
    out += fmt::format(",\"reference_ns\":{}", cursor_->ToReference(raw_ns));
    // The bound is that of the host's clock, which did not stamp this event.
    if (is_device_stamped) return;
    if (const auto bound_ns = cursor_->ErrorBoundNs(raw_ns)) {
      out += fmt::format(",\"eps_ns\":{}", *bound_ns);
    }
  }

 private:
  std::optional<ClockMapCursor> cursor_;
};

// Writes one capture's lines. Used once: the constructor only keeps references, and Run does the
// work.
class EventLines {
 public:
  EventLines(ChunkSource& source, const EventLinesRequest& request,
             const std::function<absl::Status(std::string_view)>& write,
             const std::function<bool(const EventLinesTotal&)>& progress)
      : source_(source),
        request_(request),
        filter_(request.filter),
        write_(write),
        progress_(progress) {}

  // Passes over the streams in the order of their description, one after the other. Fails with
  // errors of the source, of `write` and of `progress`.
  absl::StatusOr<EventLinesTotal> Run() {
    ASSIGN_OR_RETURN(const CaptureDescription capture, source_.Describe());
    WriteHead(capture);
    total_.warnings = capture.warnings;
    if (auto warning = OwnTimeWarning(capture.streams, filter_, true)) {
      total_.warnings.push_back(*std::move(warning));
    }
    const std::vector<RankBinding> ranks = BindRanks(capture.streams, total_.warnings);
    for (const StreamDescription& stream : capture.streams) {
      if (filter_.SelectsStream(stream)) total_.chunks_total += stream.chunks;
    }
    for (size_t i = 0; i < capture.streams.size(); ++i) {
      if (!filter_.SelectsStream(capture.streams[i])) continue;
      RETURN_IF_ERROR(WriteStream(capture.streams[i], ranks[i]));
    }
    RETURN_IF_ERROR(Flush());
    return std::move(total_);
  }

 private:
  // Appends the first line. Its clocks are those of the selected streams only.
  void WriteHead(const CaptureDescription& capture) {
    if (!request_.certificate_json.empty()) {
      text_ += fmt::format(",\"certificate\":{}", request_.certificate_json);
    }
    if (request_.clocks != nullptr) {
      std::vector<const StreamIdentity*> streams;
      size_t own_times = 0;
      for (const StreamDescription& stream : capture.streams) {
        if (!filter_.SelectsStream(stream)) continue;
        if (stream.has_own_time()) {
          ++own_times;
        } else {
          streams.push_back(&stream.identity);
        }
      }
      ClockReport clocks(request_.clocks, request_.raw_clocks, streams);
      clocks.SetOwnTimes(own_times);
      text_ += fmt::format(",\"clocks\":{}", clocks.Json());
    }
    if (text_.empty()) return;
    // Nothing is written without a certificate and clocks, so that the first line is then an event.
    // Each member was appended with a comma in front.
    text_.front() = '{';
    text_ += "}\n";
  }

  // Writes the stream's events inside the window, chunk by chunk in the order of the index.
  absl::Status WriteStream(const StreamDescription& stream, const RankBinding& rank) {
    // The window is one of raw times here, as recorded.
    if (stream.events == 0 || stream.last_timestamp_ns < filter_.window_start_ns ||
        stream.first_timestamp_ns >= filter_.window_end_ns) {
      return absl::OkStatus();
    }
    const std::string head = LineHead(stream, rank);
    LineClock clock(stream, request_);
    // The index is read from the first chunk that can end inside the window.
    IndexPosition from{.last_timestamp_ns = filter_.window_start_ns, .sequence = 0};
    std::vector<ChunkEntry> entries;
    do {
      RETURN_IF_ERROR(source_.ReadIndex(stream.number, from, kEntriesAtOnce, entries));
      for (const ChunkEntry& entry : entries) {
        from = {.last_timestamp_ns = entry.last_timestamp_ns, .sequence = entry.sequence + 1};
        // The index is ordered by last timestamps, and no chunk spans more than chunk_span_max_ns:
        // no later entry begins before this.
        const uint64_t earliest_ns =
            entry.last_timestamp_ns - std::min(entry.last_timestamp_ns, stream.chunk_span_max_ns);
        if (earliest_ns >= filter_.window_end_ns) return absl::OkStatus();
        if (entry.first_timestamp_ns >= filter_.window_end_ns) continue;
        if (!filter_.CanSelectFrom(entry)) continue;
        RETURN_IF_ERROR(WriteChunk(stream, entry.sequence, head, clock));
      }
    } while (entries.size() == kEntriesAtOnce);
    return absl::OkStatus();
  }

  // Writes the selected events of one chunk. A chunk that cannot be read is counted and reported to
  // the source, and is no error of the export.
  absl::Status WriteChunk(const StreamDescription& stream, uint64_t sequence,
                          const std::string& head, LineClock& clock) {
    absl::Status status = source_.ReadColumns(stream.number, sequence, columns_);
    if (status.ok()) status = chunk_.Decode(columns_);
    if (!status.ok()) {
      ++total_.chunks_left_out;
      source_.ReportUnreadable(stream.number, sequence, status);
      Warn(fmt::format("chunk {} of {} cannot be read and is omitted: {}", sequence,
                       ToString(stream.identity), std::string(status.message())));
      return absl::OkStatus();
    }
    ++total_.chunks_read;
    // Decided once for each shape instead of once for each event.
    std::vector<bool> wanted;
    std::vector<bool> is_device_stamped;
    for (const Shape& shape : chunk_.shapes()) {
      wanted.push_back(filter_.event_types.Selects(shape.event_type));
      is_device_stamped.push_back(DeviceStampKey(shape).has_value());
    }
    for (size_t event = 0; event < chunk_.size(); ++event) {
      const uint64_t time_ns = chunk_.timestamp_ns()[event];
      if (time_ns < filter_.window_start_ns || time_ns >= filter_.window_end_ns) continue;
      const uint16_t shape = chunk_.shape_of()[event];
      if (!wanted[shape]) continue;
      text_ += head;
      clock.Append(time_ns, is_device_stamped[shape], text_);
      text_ += ",\"event\":";
      const size_t begin = text_.size();
      AppendEventJson(chunk_, event, stream.identity.nc_idx, text_, IsJson);
      MakeUtf8(begin, text_);
      // Nested values keep the layout of their source, which may contain line ends. In strings
      // these are escaped, so that replacing them changes no value.
      std::replace_if(
          text_.begin() + static_cast<std::ptrdiff_t>(begin), text_.end(),
          [](char c) { return c == '\n' || c == '\r'; }, ' ');
      text_ += "}\n";
      ++total_.events;
      // Memory stays that of one chunk and one piece.
      if (text_.size() >= kPieceBytes) RETURN_IF_ERROR(Flush());
    }
    return progress_(total_) ? absl::OkStatus()
                             : absl::CancelledError("the client stopped reading");
  }

  // Further warnings are omitted: a damaged capture could have one for each of its chunks.
  void Warn(std::string warning) {
    if (total_.warnings.size() < limits::kCaptureWarningsMax) {
      total_.warnings.push_back(std::move(warning));
    }
  }

  // Passes the text to the receiver, even if it is empty.
  absl::Status Flush() {
    RETURN_IF_ERROR(write_(text_));
    total_.bytes += text_.size();
    text_.clear();
    return absl::OkStatus();
  }

  ChunkSource& source_;
  const EventLinesRequest& request_;
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
    ChunkSource& source, const EventLinesRequest& request,
    const std::function<absl::Status(std::string_view)>& write,
    const std::function<bool(const EventLinesTotal&)>& progress) {
  return EventLines(source, request, write, progress).Run();
}

}  // namespace neurontrace
