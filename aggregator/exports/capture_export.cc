// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/capture_export.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/certificate/clock_findings.h"
#include "aggregator/certificate/make_certificate.h"
#include "aggregator/certificate/verdict.h"
#include "aggregator/export/events/event_lines.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/gzip_file.h"
#include "aggregator/operator/certificate_message.h"
#include "aggregator/timeline/store_chunk_source.h"
#include "lib/base/json_writer.h"
#include "lib/base/number_ranges.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/export_limits.h"
#include "lib/wire/export_options.h"

namespace neurontrace {
namespace {

// Reference times of the first and the last event; first_ns is 0 if there is none.
struct EventTimes {
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
};
// `maps` lead from each host's clock to the reference; empty maps leave times as they are.
EventTimes EventTimesOf(const std::vector<StreamRecord>& streams, const ClockMaps& maps) {
  EventTimes times{.first_ns = UINT64_MAX};
  for (const StreamRecord& stream : streams) {
    // A relative window counts from the first event of the workers whose time is known. Samples of
    // hosts begin before.
    if (stream.events == 0 || stream.identity.kind == StreamKind::kHost) continue;
    if (stream.clock_domain == ClockDomain::kOwn) continue;
    const ClockMap& map = maps.For(stream.identity.worker, ClockDomain::kHostRealtime);
    times.first_ns = std::min(times.first_ns, map.ToReference(stream.first_timestamp_ns));
    times.last_ns = std::max(times.last_ns, map.ToReference(stream.last_timestamp_ns));
  }
  if (times.first_ns == UINT64_MAX) times.first_ns = 0;
  return times;
}

std::string RangesText(const std::set<int64_t>& numbers) {
  if (numbers.empty()) return "none";
  return FormatRanges(FindRanges(std::vector(numbers.begin(), numbers.end())));
}

// Explains a selection without any event: which of its filters name something that the capture does
// not have. Most empty exports are typing errors.
class EmptySelection {
 public:
  EmptySelection(const v1::ExportRequest& request, TimelineFilter filter, EventTimes times,
                 ChunkSource& source)
      : request_(request), filter_(std::move(filter)), times_(times), source_(source) {}

  // Returns a sentence, or an empty text if the request selects nothing in particular or the
  // capture itself has no event. Fails with errors of the source.
  absl::StatusOr<std::string> Explain() const;

 private:
  // Instances or jobs that a sentence names at most, and entries of an index that are in memory at
  // once.
  static constexpr size_t kNamedMax = 16;
  static constexpr size_t kIndexEntriesAtOnce = 1'024;

  // Returns whether the request restricts anything.
  bool IsChosen() const;
  // Each returns a clause about the items of one filter that the streams do not have. The text is
  // empty if there are none, and from MissingTypes also if the types are not known.
  std::string MissingJob(const std::vector<StreamDescription>& streams) const;
  std::string MissingInstances(const std::vector<StreamDescription>& streams) const;
  std::string MissingCores(const std::vector<StreamDescription>& streams) const;
  std::string MissingRanks(const std::vector<StreamDescription>& streams) const;
  std::string MissingStreams(const std::vector<StreamDescription>& streams) const;
  absl::StatusOr<std::string> MissingTypes(const std::vector<StreamDescription>& streams) const;
  // Returns a clause if the window and the capture's events do not overlap.
  std::string OutsideOfTimes() const;

  const v1::ExportRequest& request_;
  const TimelineFilter filter_;
  // In the same time as the window of filter_.
  const EventTimes times_;
  ChunkSource& source_;
};

bool EmptySelection::IsChosen() const {
  return filter_.has_window() || request_.instance_ids_size() != 0 ||
         request_.neuron_cores_size() != 0 || request_.worker_gids_size() != 0 ||
         request_.streams_size() != 0 || request_.event_types_size() != 0 ||
         !request_.job().empty();
}

// Streams without events and samples of hosts count as absent.
absl::StatusOr<std::string> EmptySelection::Explain() const {
  if (!IsChosen()) return "";
  ASSIGN_OR_RETURN(CaptureDescription capture, source_.Describe());
  std::vector<StreamDescription>& streams = capture.streams;
  std::erase_if(streams, [](const StreamDescription& stream) {
    return stream.events == 0 || stream.identity.kind == StreamKind::kHost;
  });
  if (streams.empty()) return "";
  ASSIGN_OR_RETURN(std::string types, MissingTypes(streams));
  std::string text;
  for (const std::string& each :
       {MissingJob(streams), MissingInstances(streams), MissingCores(streams),
        MissingRanks(streams), MissingStreams(streams), std::move(types), OutsideOfTimes()}) {
    if (!each.empty()) text += (text.empty() ? "" : "; ") + each;
  }
  return text.empty() ? "no event of the capture matches all filters" : text;
}

std::string EmptySelection::MissingJob(const std::vector<StreamDescription>& streams) const {
  if (filter_.job.empty()) return "";
  std::set<std::string> there;
  for (const StreamDescription& stream : streams) there.insert(stream.job);
  if (there.contains(filter_.job)) return "";
  there.erase("");
  std::string names;
  size_t named = 0;
  for (const std::string& job : there) {
    if (++named <= kNamedMax) names += (names.empty() ? "" : ", ") + job;
  }
  return fmt::format("the capture has no job {} (it has {}{})", filter_.job,
                     names.empty() ? "none with a name" : names, named > kNamedMax ? ", …" : "");
}

std::string EmptySelection::MissingInstances(const std::vector<StreamDescription>& streams) const {
  std::set<std::string> there;
  for (const StreamDescription& stream : streams) there.insert(stream.identity.worker.instance_id);
  std::string text;
  for (const std::string& id : filter_.instance_ids) {
    if (!there.contains(id)) text += (text.empty() ? "the capture has no instance " : ", ") + id;
  }
  if (text.empty()) return "";
  std::string names;
  size_t named = 0;
  for (const std::string& id : there) {
    if (++named <= kNamedMax) names += (names.empty() ? "" : ", ") + id;
  }
  return fmt::format("{} (it has {}{})", text, names, named > kNamedMax ? ", …" : "");
}

std::string EmptySelection::MissingCores(const std::vector<StreamDescription>& streams) const {
  std::set<int64_t> there;
  for (const StreamDescription& stream : streams) {
    if (stream.identity.kind == StreamKind::kNeuronCore) there.insert(stream.identity.nc_idx);
  }
  std::set<int64_t> missing;
  for (const uint32_t core : filter_.neuron_cores) {
    if (!there.contains(core)) missing.insert(core);
  }
  if (missing.empty()) return "";
  return fmt::format("the capture has no core {} (it has {})", RangesText(missing),
                     RangesText(there));
}

// Compares with the best evidence of each stream, as TimelineFilter does.
std::string EmptySelection::MissingRanks(const std::vector<StreamDescription>& streams) const {
  std::set<int64_t> there;
  for (const StreamDescription& stream : streams) {
    if (const RankEvidence* const best = BestEvidence(stream.evidence)) {
      there.insert(best->worker_gid);
    }
  }
  std::vector<NumberRange> missing;
  for (const GidRange& range : filter_.worker_gids) {
    if (std::any_of(there.begin(), there.end(), [&](int64_t gid) { return range.contains(gid); })) {
      continue;
    }
    missing.push_back({range.first, range.last});
  }
  if (missing.empty()) return "";
  return fmt::format("the capture has no worker_gid {} (it has {})",
                     FormatRanges(missing, SIZE_MAX, ","), RangesText(there));
}

std::string EmptySelection::MissingStreams(const std::vector<StreamDescription>& streams) const {
  std::vector<NumberRange> missing;
  for (const StreamRange& range : filter_.streams) {
    if (std::ranges::any_of(streams, [&range](const StreamDescription& stream) {
          return range.contains(stream.number);
        })) {
      continue;
    }
    missing.push_back({range.first, range.last});
  }
  return missing.empty() ? ""
                         : fmt::format("the capture has no events in streams {}",
                                       FormatRanges(missing, SIZE_MAX, ","));
}

absl::StatusOr<std::string> EmptySelection::MissingTypes(
    const std::vector<StreamDescription>& streams) const {
  if (request_.event_types_size() == 0) return "";
  std::set<std::string> there;
  std::vector<ChunkEntry> entries;
  size_t examined = 0;
  for (const StreamDescription& stream : streams) {
    IndexPosition from;
    do {
      RETURN_IF_ERROR(source_.ReadIndex(stream.number, from, kIndexEntriesAtOnce, entries));
      examined += entries.size();
      for (const ChunkEntry& entry : entries) {
        // Without the types of every chunk nobody knows what is missing; and an explanation is not
        // worth reading a huge index for.
        if (!entry.event_types || examined > limits::kEmptySelectionEntriesMax) return "";
        there.insert(entry.event_types->begin(), entry.event_types->end());
        from = {.last_timestamp_ns = entry.last_timestamp_ns, .sequence = entry.sequence + 1};
      }
    } while (entries.size() == kIndexEntriesAtOnce);
  }
  const std::vector<std::string> asked(request_.event_types().begin(),
                                       request_.event_types().end());
  const std::vector<std::string> known(there.begin(), there.end());
  std::string text;
  for (const auto& [item, nearest] : UnknownEventTypes(asked, known)) {
    text += fmt::format("{}{}{}", text.empty() ? "the capture has no event type " : ", ", item,
                        nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
  }
  return text;
}

std::string EmptySelection::OutsideOfTimes() const {
  const auto seconds = [](uint64_t from_ns, uint64_t to_ns) {
    return fmt::format("{:.3f} s", static_cast<double>(to_ns - from_ns) * 1e-9);
  };
  if (!filter_.has_window()) return "";
  const auto [first_ns, last_ns] = times_;
  if (first_ns == 0) return "no event of the capture has a time that a window can select";
  if (filter_.window_start_ns > last_ns) {
    return fmt::format(
        "the window starts {} after the capture's last event, which is {} after its first",
        seconds(last_ns, filter_.window_start_ns), seconds(first_ns, last_ns));
  }
  if (filter_.window_end_ns <= first_ns) {
    return fmt::format("the window ends {} before the capture's first event",
                       seconds(filter_.window_end_ns, first_ns));
  }
  return "";
}

// Returns the filter of a request, in which a window's end of 0 means none. Relative times count
// from the first event. Fails with INVALID_ARGUMENT that names the unacceptable field.
absl::StatusOr<TimelineFilter> FilterOf(const v1::ExportRequest& request, uint64_t first_ns) {
  TimelineFilter filter;
  filter.instance_ids.assign(request.instance_ids().begin(), request.instance_ids().end());
  filter.job = request.job();
  filter.neuron_cores.assign(request.neuron_cores().begin(), request.neuron_cores().end());
  for (const v1::GidRange& range : request.worker_gids()) {
    if (range.first() < 0 || range.last() < range.first()) {
      return InvalidArgument("worker_gids: {} to {} is not a valid range", range.first(),
                             range.last());
    }
    filter.worker_gids.push_back({range.first(), range.last()});
  }
  for (const v1::StreamRange& range : request.streams()) {
    if (range.last() < range.first()) {
      return InvalidArgument("streams: {} to {} is not a valid range", range.first(), range.last());
    }
    filter.streams.push_back({range.first(), range.last()});
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
    return InvalidArgument("window_end_ns must be later than window_start_ns");
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

// Fails with INVALID_ARGUMENT for a value that a newer client may have sent.
absl::StatusOr<ExportCompression> CompressionOf(v1::ExportCompression compression) {
  switch (compression) {
    case v1::EXPORT_COMPRESSION_NONE:
      return ExportCompression::kNone;
    case v1::EXPORT_COMPRESSION_GZIP:
      return ExportCompression::kGzip;
    case v1::EXPORT_COMPRESSION_PACKETS:
      return ExportCompression::kPackets;
    default:
      return InvalidArgument("compression {} is unknown to this aggregator",
                             static_cast<int>(compression));
  }
}

// The certificate of a capture, which accompanies every export of it.
struct ExportAssessment {
  Certificate certificate;
  // The certificate as JSON, for formats that contain it.
  std::string json;
  // Set before the export; explains the selection if it turns out to be empty.
  const EmptySelection* selection = nullptr;

  // Adds a warning with the reason if the request selected nothing. Fails with errors of the
  // source.
  absl::Status PutSelection(v1::ExportDone& done, uint64_t seen) const {
    if (seen != 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string why, selection->Explain());
    if (!why.empty()) done.add_warnings(std::string(kNothingSelected) + why);
    return absl::OkStatus();
  }

  // A file that lacks stored chunks is reported as incomplete, even if the capture itself is
  // complete.
  void PutInto(v1::ExportDone& done, uint64_t chunks_left_out) const {
    done.set_capture_incomplete(chunks_left_out > 0 ||
                                (!certificate.provisional && !certificate.complete));
    done.set_verdict(chunks_left_out == 0
                         ? certificate.verdict
                         : fmt::format("incomplete: {} cannot be read and {} omitted from this "
                                       "file; the capture itself: {}",
                                       chunks_left_out == 1
                                           ? "1 stored chunk"
                                           : fmt::format("{} stored chunks", chunks_left_out),
                                       chunks_left_out == 1 ? "is" : "are", certificate.verdict));
  }
};

// Lists the device profiles among the capture's artifacts, for formats that have such a list. Their
// processes are named as in their own pid namespaces, so that ranks cannot select here.
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
        "device profiles omitted from the list because their names do not identify a core: {}{}",
        unknown.front(),
        unknown.size() == 1 ? "" : fmt::format(" and {} more", unknown.size() - 1)));
  }
  return absl::OkStatus();
}

// Returns the description of the capture in a summary for programs. Times are texts: JSON numbers
// lose nanoseconds beyond 2^53.
std::string CaptureJson(const CaptureRecord& record) {
  JsonWriter out;
  out.Open('{').Member("capture_id", record.id.ToString()).Member("name", record.spec.name);
  out.Member("started_realtime_ns", std::to_string(record.started_realtime_ns));
  out.Member("stopped_realtime_ns", std::to_string(record.stopped_realtime_ns));
  out.Member("ended_realtime_ns", std::to_string(record.ended_realtime_ns)).Close('}');
  return out.Take();
}

// Writes the `events` format, then `done`. Fails with errors of the source and of the files.
absl::Status ExportEvents(ChunkSource& source, TimelineFilter filter,
                          const v1::ExportRequest& request, const CaptureClocks& clocks,
                          const ExportAssessment& judgement, ExportFiles& files,
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
  RETURN_IF_ERROR(
      judgement.PutSelection(*reply.mutable_done(), total->events + total->chunks_left_out));
  for (const std::string& warning : total->warnings) reply.mutable_done()->add_warnings(warning);
  write(reply);
  return absl::OkStatus();
}

// Writes any other format, then `done`. Translates the request into that of aggregator/export,
// which does not know the protocol.
absl::Status ExportTimeline(const Store& store, ChunkSource& source, std::string_view format_name,
                            TimelineFilter filter, const v1::ExportRequest& request,
                            const CaptureRecord& record, const CaptureClocks& clocks,
                            const ExportAssessment& judgement, ExportFiles& files,
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
  RETURN_IF_ERROR(
      judgement.PutSelection(done, summary->counts.events + summary->counts.unreadable_chunks));
  for (const std::string& warning : summary->warnings) done.add_warnings(warning);
  write(reply);
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportStoredCapture(const Store& store, const CaptureRecord& record,
                                 const v1::ExportRequest& request, const CaptureClocks& clocks,
                                 std::string_view store_problem, ExportFiles& files,
                                 const ExportWriter& write) {
  RETURN_IF_ERROR(CheckExportOptions(request));
  // Every export takes these steps: snapshot, selection, certificate, then the format. With a
  // snapshot the file has all streams of one moment, whatever retention deletes meanwhile.
  const CaptureReader reader = store.OpenSnapshot(record.id);
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, reader.Streams());
  // Without maps recorded times are shown, so the window must be one of recorded times, too.
  const bool raw_window = request.raw_clocks() || request.format() == v1::EXPORT_FORMAT_EVENTS;
  const EventTimes times = EventTimesOf(streams, raw_window ? ClockMaps() : clocks.maps);
  ASSIGN_OR_RETURN(TimelineFilter filter, FilterOf(request, times.first_ns));
  filter.host_samples = request.format() == v1::EXPORT_FORMAT_EVENTS;
  ExportAssessment judgement;
  ASSIGN_OR_RETURN(judgement.certificate, ReadCertificate(store, record, streams));
  AddClockFindings(clocks, judgement.certificate);
  AddStoreFinding(record, store_problem, judgement.certificate);
  // All findings are in the certificate from here on.
  judgement.json = ToJson(ToMessage(judgement.certificate));
  const bool holds_nothing = judgement.certificate.account.captured == 0 && record.workers.empty();
  // Summaries are still made: their certificate explains why there is nothing.
  if (HasEnded(record.state) && holds_nothing &&
      request.format() != v1::EXPORT_FORMAT_SUMMARY_JSON &&
      request.format() != v1::EXPORT_FORMAT_SUMMARY_TEXT) {
    return FailedPrecondition("there is nothing to export: capture {} is {}", record.id.ToString(),
                              judgement.certificate.verdict);
  }
  // EmptySelection borrows the source and the request, which live until the export is done.
  StoreChunkSource source(reader, record);
  const EmptySelection selection(request, filter, times, source);
  judgement.selection = &selection;
  if (request.format() == v1::EXPORT_FORMAT_EVENTS) {
    return ExportEvents(source, std::move(filter), request, clocks, judgement, files, write);
  }
  return ExportTimeline(store, source, TraitsOf(request.format())->name(), std::move(filter),
                        request, record, clocks, judgement, files, write);
}

}  // namespace neurontrace
