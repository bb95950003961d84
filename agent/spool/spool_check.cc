// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/spool/segment_reader.h"
#include "agent/spool/spool_disk.h"
#include "agent/spool/spool_format.h"
#include "lib/base/clean_text.h"
#include "lib/base/json_writer.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/wire/chunk_envelope.h"

namespace neurontrace {
namespace {

// Reads every record of one segment and counts what is sound. The report is filled as far as the
// file can be read; the status is the first error of the file itself.
absl::Status CheckSegment(FileSystem& files, const std::string& path,
                          SpoolCheckReport::Segment& report) {
  ASSIGN_OR_RETURN(const auto file, files.OpenForReading(path));
  ASSIGN_OR_RETURN(report.bytes, file->Size());
  if (report.bytes == 0) return absl::OkStatus();  // made, and not yet begun
  // A file's error about one record's columns does not end the walk: the others are still counted.
  absl::Status broken;
  const auto visit = [&](const FoundRecord& found) {
    const auto header = ParseChunkHeader(found.chunk_header);
    const auto columns = file->Read(found.offset + kRecordHeadBytes + found.head.header_bytes,
                                    found.head.columns_bytes);
    if (!columns.ok()) {
      if (broken.ok()) broken = columns.status();
      return;
    }
    // Unlike recovery, this reads the columns of every record: that is the purpose of the command.
    if (!header.ok() || !ColumnsMatch(found.head, found.chunk_header, *columns)) {
      ++report.damaged_chunks;
      return;
    }
    ++report.chunks;
    report.events += header->event_count;
  };
  ASSIGN_OR_RETURN(const SegmentSummary summary, ReadSegment(*file, visit));
  // The id comes from a file that anybody may have written, and goes to a terminal.
  report.agent_id = CleanText(summary.header.agent_id, limits::kIdentityStringBytesMax);
  report.bytes = summary.file_bytes;
  report.damaged_places = summary.damaged_places;
  report.torn_bytes = summary.torn_bytes;
  return broken;
}

// Counts the streams of a cursor file. Fails as DecodeSpoolCursor does, and with the file's errors.
absl::Status CheckCursor(FileSystem& files, const std::string& path,
                         SpoolCheckReport::Cursor& report) {
  ASSIGN_OR_RETURN(const auto file, files.OpenForReading(path));
  ASSIGN_OR_RETURN(const std::string bytes, file->Read(0, limits::kSpoolCursorBytesMax));
  ASSIGN_OR_RETURN(const SpoolCursor cursor, DecodeSpoolCursor(bytes));
  report.streams = cursor.streams.size();
  return absl::OkStatus();
}

// Checks the directory of a capture. A running agent may remove any part of it between listing and
// opening; what is gone is no part of the spool.
absl::Status CheckCapture(FileSystem& files, const std::string& root, const std::string& capture,
                          SpoolCheckReport& report) {
  const auto entries = files.List(root + "/" + capture, limits::kSpoolFilesPerDirectoryMax);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  RETURN_IF_ERROR(entries.status());
  for (const FileSystem::Entry& entry : *entries) {
    const std::string path = capture + "/" + entry.name;
    if (entry.name == "cursor") {
      SpoolCheckReport::Cursor cursor;
      cursor.path = path;
      const absl::Status status = CheckCursor(files, root + "/" + path, cursor);
      if (absl::IsNotFound(status)) continue;
      cursor.problem = std::string(status.message());
      report.cursors.push_back(std::move(cursor));
    } else if (ParseSegmentName(entry.name)) {
      SpoolCheckReport::Segment segment;
      segment.path = path;
      segment.bytes = entry.bytes;
      const absl::Status status = CheckSegment(files, root + "/" + path, segment);
      if (absl::IsNotFound(status)) continue;
      // A newer agent wrote it; that is no damage, but this program cannot judge it.
      segment.later_version = absl::IsUnimplemented(status);
      segment.problem = std::string(status.message());
      report.segments.push_back(std::move(segment));
    }
  }
  return absl::OkStatus();
}

// Checks the files that belong to the spool as a whole.
absl::Status CheckWhole(FileSystem& files, const std::string& root, SpoolCheckReport& report) {
  const auto read = [&](const std::string& path) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const auto file, files.OpenForReading(path));
    return file->Read(0, limits::kSpoolRunningBytesMax);
  };
  // Without it no agent takes the spool.
  const absl::Status lock = files.OpenForReading(root + "/lock").status();
  if (!absl::IsNotFound(lock)) RETURN_IF_ERROR(lock);
  const auto aggregator = read(AggregatorFileOf(root));
  if (!absl::IsNotFound(aggregator.status())) {
    RETURN_IF_ERROR(aggregator.status());
    ASSIGN_OR_RETURN(report.aggregator_id, DecodeSpoolAggregator(*aggregator));
  }
  const auto bytes = read(RunningFileOf(root));
  if (absl::IsNotFound(bytes.status())) return absl::OkStatus();
  RETURN_IF_ERROR(bytes.status());
  ASSIGN_OR_RETURN(const SpoolRunning running, DecodeSpoolRunning(*bytes));
  for (const auto& [capture_id, spec] : running.captures) {
    report.running.push_back(capture_id.ToString());
  }
  return absl::OkStatus();
}

// A torn end does not make a segment unsound; see SpoolCheckReport::sound.
bool IsIntact(const SpoolCheckReport::Segment& segment) {
  return segment.problem.empty() && segment.damaged_places == 0 && segment.damaged_chunks == 0;
}

}  // namespace

absl::StatusOr<SpoolCheckReport> CheckSpool(FileSystem& files, const std::string& root) {
  SpoolCheckReport report;
  ASSIGN_OR_RETURN(const auto captures, files.List(root, limits::kSpoolFilesPerDirectoryMax));
  const auto aside = files.List(QuarantineOf(root), limits::kSpoolFilesPerDirectoryMax);
  if (aside.ok()) report.quarantined_files = aside->size();
  // A problem of these files is part of the report, unlike one of the directory itself: the
  // segments can still be checked.
  report.problem = std::string(CheckWhole(files, root, report).message());
  for (const FileSystem::Entry& capture : captures) {
    // Only directories with the name of a capture belong to the spool, as in recovery.
    if (!capture.is_directory || !CaptureId::Parse(capture.name).ok()) continue;
    RETURN_IF_ERROR(CheckCapture(files, root, capture.name, report));
  }
  return report;
}

bool SpoolCheckReport::sound() const {
  return problem.empty() && std::all_of(segments.begin(), segments.end(), IsIntact) &&
         std::all_of(cursors.begin(), cursors.end(),
                     [](const Cursor& cursor) { return cursor.problem.empty(); });
}

std::string SpoolCheckReport::ToText() const {
  std::string out;
  // Totals over all segments, which the last line shows.
  uint64_t chunks = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;
  for (const Segment& segment : segments) {
    chunks += segment.chunks;
    events += segment.events;
    bytes += segment.bytes;
    out += fmt::format("{}  {} bytes, {} chunks, {} events", segment.path, segment.bytes,
                       segment.chunks, segment.events);
    if (segment.torn_bytes > 0) {
      out += fmt::format(", {} bytes of an incomplete write", segment.torn_bytes);
    }
    if (segment.damaged_places > 0)
      out += fmt::format(", DAMAGED in {} places", segment.damaged_places);
    if (segment.damaged_chunks > 0)
      out += fmt::format(", {} chunks DAMAGED", segment.damaged_chunks);
    if (!segment.problem.empty()) out += fmt::format(", NOT READ: {}", segment.problem);
    out += '\n';
  }
  for (const Cursor& cursor : cursors) {
    out += cursor.problem.empty()
               ? fmt::format("{}  {} streams\n", cursor.path, cursor.streams)
               : fmt::format(
                     "{}  NOT READ: {}; chunks that the aggregator already has are sent again\n",
                     cursor.path, cursor.problem);
  }
  if (!aggregator_id.empty()) out += fmt::format("for aggregator {}\n", aggregator_id);
  for (const std::string& capture : running) {
    out += fmt::format("capture {} continues when an agent starts\n", capture);
  }
  if (!problem.empty()) {
    out += fmt::format("the spool's aggregator or its running captures: NOT READ: {}\n", problem);
  }
  out += fmt::format(
      "{} segments, {} bytes, {} chunks, {} events, {} files in quarantine: {}\n", segments.size(),
      bytes, chunks, events, quarantined_files,
      sound() ? "sound" : "NOT SOUND; the agent uses the readable parts and reports the losses");
  return out;
}

std::string SpoolCheckReport::ToJson() const {
  JsonWriter out;
  out.Open('{').Member("sound", sound()).Member("quarantined_files", quarantined_files);
  out.Key("segments").Open('[');
  for (const Segment& segment : segments) {
    out.Open('{').Member("path", segment.path).Member("agent_id", segment.agent_id);
    out.Member("bytes", segment.bytes).Member("chunks", segment.chunks);
    out.Member("events", segment.events).Member("damaged_places", segment.damaged_places);
    out.Member("damaged_chunks", segment.damaged_chunks).Member("torn_bytes", segment.torn_bytes);
    out.Member("problem", segment.problem).Member("later_version", segment.later_version);
    out.Close('}');
  }
  out.Close(']').Key("cursors").Open('[');
  for (const Cursor& cursor : cursors) {
    out.Open('{').Member("path", cursor.path).Member("streams", cursor.streams);
    out.Member("problem", cursor.problem).Close('}');
  }
  out.Close(']').Member("aggregator_id", aggregator_id).Member("problem", problem);
  return out.Member("running", running).Close('}').Take() + "\n";
}

}  // namespace neurontrace
