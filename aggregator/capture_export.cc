// SPDX-License-Identifier: Apache-2.0
#include "aggregator/capture_export.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/certificate/clock_judgement.h"
#include "aggregator/certificate/read_certificate.h"
#include "aggregator/export/events/event_lines.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/gzip_file.h"
#include "aggregator/operator/certificate_message.h"
#include "aggregator/timeline/store_chunk_source.h"
#include "base/json_string.h"
#include "base/status.h"
#include "base/time_units.h"
#include "wire/export_options.h"

namespace neurontrace {
namespace {

// Where the timeline begins; 0 without an event.
uint64_t FirstEventNs(const std::vector<StreamRecord>& streams, const ClockMaps& maps) {
  uint64_t first_ns = UINT64_MAX;
  for (const StreamRecord& stream : streams) {
    // A window counts from the first event of the workers whose time is known.
    if (stream.events == 0 || stream.identity.kind == StreamKind::kHost) continue;
    if (stream.clock_domain == ClockDomain::kOwn) continue;
    const ClockMap& map = maps.For(stream.identity.worker, ClockDomain::kHostRealtime);
    first_ns = std::min(first_ns, map.ToReference(stream.first_timestamp_ns));
  }
  return first_ns == UINT64_MAX ? 0 : first_ns;
}

absl::StatusOr<TimelineFilter> FilterOf(const v1::ExportRequest& request, uint64_t first_ns) {
  TimelineFilter filter;
  filter.instance_ids.assign(request.instance_ids().begin(), request.instance_ids().end());
  filter.neuron_cores.assign(request.neuron_cores().begin(), request.neuron_cores().end());
  for (const v1::GidRange& range : request.worker_gids()) {
    if (range.first() < 0 || range.last() < range.first()) {
      return InvalidArgument("worker_gids: {} to {} is no range", range.first(), range.last());
    }
    filter.worker_gids.push_back({range.first(), range.last()});
  }
  ASSIGN_OR_RETURN(filter.event_types, EventFilter::Parse({request.event_types().begin(),
                                                           request.event_types().end()}));
  filter.window_start_ns =
      AddSaturating(request.window_start_ns(), request.window_start_is_relative() ? first_ns : 0);
  if (request.window_end_ns() != 0) {
    filter.window_end_ns =
        AddSaturating(request.window_end_ns(), request.window_end_is_relative() ? first_ns : 0);
  }
  if (filter.window_end_ns <= filter.window_start_ns) {
    return InvalidArgument("window_end_ns must lie after window_start_ns");
  }
  return filter;
}

v1::ExportProgress ProgressOf(const EventLinesTotal& total) {
  v1::ExportProgress progress;
  progress.set_chunks_read(total.chunks_read);
  progress.set_chunks_total(total.chunks_total);
  progress.set_bytes_written(total.bytes);
  return progress;
}

absl::StatusOr<ExportCompression> CompressionOf(v1::ExportCompression compression) {
  switch (compression) {
    case v1::EXPORT_COMPRESSION_NONE:
      return ExportCompression::kNone;
    case v1::EXPORT_COMPRESSION_GZIP:
      return ExportCompression::kGzip;
    case v1::EXPORT_COMPRESSION_PACKETS:
      return ExportCompression::kPackets;
    default:
      return InvalidArgument("compression {} is none that this aggregator knows",
                             static_cast<int>(compression));
  }
}

// What a capture is, said beside every export of it.
struct Judgement {
  Certificate certificate;
  std::string json;

  // A file that lacks stored chunks is no better than a capture that does.
  void PutInto(v1::ExportDone& done, uint64_t chunks_left_out) const {
    done.set_capture_incomplete(chunks_left_out > 0 ||
                                (!certificate.provisional && !certificate.complete));
    done.set_verdict(
        chunks_left_out == 0
            ? certificate.verdict
            : fmt::format("incomplete: {} cannot be read and {} left out of this file; of the "
                          "capture itself: {}",
                          chunks_left_out == 1 ? "1 stored chunk"
                                               : fmt::format("{} stored chunks", chunks_left_out),
                          chunks_left_out == 1 ? "is" : "are", certificate.verdict));
  }
};

// The profiles of devices among the capture's artifacts, for the formats that have a list of them.
// Their processes are named as in their own pid namespaces: ranges of workers do not select here.
absl::Status ListDeviceProfiles(const Store& store, const CaptureId& capture,
                                neurontrace::ExportRequest& request) {
  const TimelineFilter& filter = request.filter;
  const auto selects = [](const auto& selection, const auto& value) {
    return selection.empty() ||
           std::find(selection.begin(), selection.end(), value) != selection.end();
  };
  ASSIGN_OR_RETURN(const std::vector<ArtifactReference> artifacts, store.artifacts().List(capture));
  std::vector<std::string> unknown;
  for (const ArtifactReference& artifact : artifacts) {
    const ArtifactPlace& place = artifact.place;
    if (place.kind != ArtifactKind::kNtff) continue;
    if (!selects(filter.instance_ids, place.instance_id)) continue;
    std::optional<DeviceProfile> profile = DeviceProfileOf(place);
    if (!profile) {
      unknown.push_back(place.path());
    } else if (selects(filter.neuron_cores, profile->nc_id)) {
      request.device_profiles.push_back(*std::move(profile));
    }
  }
  if (!unknown.empty()) {
    request.warnings.push_back(fmt::format(
        "device profiles that are not in the list of them, as their names do not say of which core "
        "they are: {}{}",
        unknown.front(),
        unknown.size() == 1 ? "" : fmt::format(" and {} more", unknown.size() - 1)));
  }
  return absl::OkStatus();
}

// What a summary says of the capture, for programs.
std::string CaptureJson(const CaptureRecord& record) {
  std::string text = fmt::format("{{\"capture_id\":\"{}\",\"name\":", record.id.ToString());
  AppendJsonString(record.spec.name, text);
  text += fmt::format(
      ",\"started_realtime_ns\":\"{}\",\"stopped_realtime_ns\":\"{}\","
      "\"ended_realtime_ns\":\"{}\"}}",
      record.started_realtime_ns, record.stopped_realtime_ns, record.ended_realtime_ns);
  return text;
}

absl::Status ExportEvents(ChunkSource& source, TimelineFilter filter,
                          const v1::ExportRequest& request, const CaptureClocks& clocks,
                          const Judgement& judgement, ExportFiles& files,
                          const ExportWriter& write) {
  ASSIGN_OR_RETURN(const ExportCompression compression, CompressionOf(request.compression()));
  ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                   OpenCompressed(files, "events.jsonl", compression));
  const EventLinesRequest lines{.filter = std::move(filter),
                                .certificate_json = judgement.json,
                                .clocks = &clocks,
                                .raw_clocks = request.raw_clocks()};
  const auto total = WriteEventLines(
      source, lines, [&file](std::string_view bytes) { return file->Write(bytes); },
      [&write](const EventLinesTotal& now) {
        v1::ExportReply reply;
        *reply.mutable_progress() = ProgressOf(now);
        return write(reply);
      });
  if (!total.ok()) return total.status();
  RETURN_IF_ERROR(file->Close());
  v1::ExportReply reply;
  *reply.mutable_done()->mutable_total() = ProgressOf(*total);
  reply.mutable_done()->mutable_total()->set_bytes_written(files.bytes_sent());
  reply.mutable_done()->set_events(total->events);
  judgement.PutInto(*reply.mutable_done(), total->chunks_left_out);
  for (const std::string& warning : total->warnings) reply.mutable_done()->add_warnings(warning);
  write(reply);
  return absl::OkStatus();
}

absl::Status ExportTimeline(const Store& store, ChunkSource& source, std::string_view format_name,
                            TimelineFilter filter, const v1::ExportRequest& request,
                            const CaptureRecord& record, const CaptureClocks& clocks,
                            const Judgement& judgement, ExportFiles& files,
                            const ExportWriter& write) {
  ASSIGN_OR_RETURN(const ExportFormat* format, FindExportFormat(format_name));
  neurontrace::ExportRequest timeline;
  timeline.filter = std::move(filter);
  timeline.clocks = &clocks;
  timeline.raw_clocks = request.raw_clocks();
  timeline.clock_arguments = request.clock_arguments();
  timeline.certificate = &judgement.certificate;
  timeline.certificate_json = judgement.json;
  timeline.capture_json = CaptureJson(record);
  timeline.primary_group.assign(request.primary_group().begin(), request.primary_group().end());
  timeline.secondary_group.assign(request.secondary_group().begin(),
                                  request.secondary_group().end());
  timeline.no_flows = request.no_flows();
  ASSIGN_OR_RETURN(timeline.compression, CompressionOf(request.compression()));
  timeline.max_file_bytes = request.max_file_bytes();
  timeline.split_by_worker = request.split_by_worker();
  if (request.format() == v1::EXPORT_FORMAT_JSON || request.format() == v1::EXPORT_FORMAT_PARQUET) {
    RETURN_IF_ERROR(ListDeviceProfiles(store, record.id, timeline));
  }
  const auto message = [](const ExportProgress& now) {
    v1::ExportProgress progress;
    progress.set_chunks_read(now.chunks_read);
    progress.set_chunks_total(now.chunks_total);
    progress.set_spans(now.spans);
    progress.set_bytes_written(now.bytes_written);
    return progress;
  };
  const auto summary =
      ExportCapture(source, *format, timeline, files, [&](const ExportProgress& now) {
        v1::ExportReply reply;
        *reply.mutable_progress() = message(now);
        return write(reply);
      });
  if (!summary.ok()) return summary.status();
  v1::ExportReply reply;
  v1::ExportDone& done = *reply.mutable_done();
  *done.mutable_total() = message(summary->progress);
  done.set_open_spans(summary->counts.open_spans);
  done.set_start_lost_spans(summary->counts.start_lost_spans);
  done.set_instants(summary->counts.instants);
  judgement.PutInto(done, summary->counts.unreadable_chunks);
  for (const std::string& warning : summary->warnings) done.add_warnings(warning);
  write(reply);
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportStoredCapture(const Store& store, const CaptureRecord& record,
                                 const v1::ExportRequest& request, const CaptureClocks& clocks,
                                 ExportFiles& files, const ExportWriter& write) {
  RETURN_IF_ERROR(CheckExportOptions(request));
  // What retention deletes meanwhile is in the file all the same.
  const CaptureReader reader = store.OpenSnapshot(record.id);
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, reader.Streams());
  const bool raw_window = request.raw_clocks() || request.format() == v1::EXPORT_FORMAT_EVENTS;
  const uint64_t first_ns = FirstEventNs(streams, raw_window ? ClockMaps() : clocks.maps);
  ASSIGN_OR_RETURN(TimelineFilter filter, FilterOf(request, first_ns));
  filter.host_samples = request.format() == v1::EXPORT_FORMAT_EVENTS;
  Judgement judgement;
  ASSIGN_OR_RETURN(judgement.certificate, ReadCertificate(store, record, streams));
  JudgeClocks(clocks, judgement.certificate);
  judgement.json = ToJson(ToMessage(judgement.certificate));
  const bool holds_nothing = judgement.certificate.account.captured == 0 && record.workers.empty();
  if (HasEnded(record.state) && holds_nothing &&
      request.format() != v1::EXPORT_FORMAT_SUMMARY_JSON &&
      request.format() != v1::EXPORT_FORMAT_SUMMARY_TEXT) {
    return FailedPrecondition("there is nothing to export: capture {} is {}", record.id.ToString(),
                              judgement.certificate.verdict);
  }
  StoreChunkSource source(reader, record);
  if (request.format() == v1::EXPORT_FORMAT_EVENTS) {
    return ExportEvents(source, std::move(filter), request, clocks, judgement, files, write);
  }
  return ExportTimeline(store, source, TraitsOf(request.format())->name(), std::move(filter),
                        request, record, clocks, judgement, files, write);
}

}  // namespace neurontrace
