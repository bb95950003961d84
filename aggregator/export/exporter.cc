// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/exporter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "aggregator/derive/shape_fields.h"
#include "aggregator/export/batch_pipe.h"
#include "aggregator/export/capture_warnings.h"
#include "aggregator/export/chrome/chrome_exporter.h"
#include "aggregator/export/grouping.h"
#include "aggregator/export/json/json_exporter.h"
#include "aggregator/export/parquet/parquet_format.h"
#include "aggregator/export/pftrace/pftrace_exporter.h"
#include "aggregator/export/pftrace/pftrace_parts.h"
#include "aggregator/export/side_reader.h"
#include "aggregator/export/single_file.h"
#include "aggregator/export/summary/summary_exporter.h"
#include "aggregator/export/xspace/xspace_exporter.h"
#include "aggregator/timeline/model_names.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// The vendor's names, so that its viewers and scripts find the files.
constexpr std::string_view kPftraceName = "system_profile.pftrace";
constexpr std::string_view kJsonName = "system_profile.json";
// The names of our own formats.
constexpr std::string_view kChromeJsonName = "system_profile.trace.json";
constexpr std::string_view kSummaryTextName = "summary.txt";
constexpr std::string_view kSummaryJsonName = "summary.json";
constexpr std::string_view kXSpaceName = "xspace";
constexpr std::string_view kParquetName = "system_profile.parquet";

// The following functions are ExportFormat::make of one format each. They may ignore options that
// CheckExportOptions (lib/wire/export_options.h) has refused for their format.
absl::StatusOr<std::unique_ptr<Exporter>> MakePftrace(const ExportRequest& request,
                                                      OutputFiles& files) {
  PftraceExporter::Options options;
  ASSIGN_OR_RETURN(options.grouping,
                   Grouping::Parse(request.primary_group, request.secondary_group));
  options.no_flows = request.no_flows;
  options.compresses_packets = request.compression == ExportCompression::kPackets;
  if (request.max_file_bytes != 0) {
    return PftraceParts::Make({.trace = std::move(options),
                               .part_bytes = request.max_file_bytes,
                               .is_by_worker = request.split_by_worker,
                               .is_gzip = request.compression == ExportCompression::kGzip},
                              files);
  }
  // kPackets is PftraceExporter's own compression: the file around the packets stays as it is.
  const ExportCompression whole = request.compression == ExportCompression::kPackets
                                      ? ExportCompression::kNone
                                      : request.compression;
  return MakeSingleFile(files, kPftraceName, whole, [&](ByteSink& sink) {
    return std::make_unique<PftraceExporter>(std::move(options), sink);
  });
}

absl::StatusOr<std::unique_ptr<Exporter>> MakeJson(const ExportRequest& request,
                                                   OutputFiles& files) {
  return MakeSingleFile(files, kJsonName, request.compression,
                        [](ByteSink& sink) { return std::make_unique<JsonExporter>(sink); });
}

absl::StatusOr<std::unique_ptr<Exporter>> MakeChromeJson(const ExportRequest& request,
                                                         OutputFiles& files) {
  ChromeExporter::Options options{.no_flows = request.no_flows};
  ASSIGN_OR_RETURN(options.grouping,
                   Grouping::Parse(request.primary_group, request.secondary_group));
  return MakeSingleFile(files, kChromeJsonName, request.compression, [&](ByteSink& sink) {
    return std::make_unique<ChromeExporter>(std::move(options), sink);
  });
}

absl::StatusOr<std::unique_ptr<Exporter>> MakeSummaryText(const ExportRequest& request,
                                                          OutputFiles& files) {
  return MakeSingleFile(files, kSummaryTextName, request.compression, [](ByteSink& sink) {
    return std::make_unique<SummaryExporter>(SummaryExporter::Form::kText, "", sink);
  });
}

absl::StatusOr<std::unique_ptr<Exporter>> MakeSummaryJson(const ExportRequest& request,
                                                          OutputFiles& files) {
  return MakeSingleFile(files, kSummaryJsonName, request.compression, [&](ByteSink& sink) {
    return std::make_unique<SummaryExporter>(SummaryExporter::Form::kJson, request.capture_json,
                                             sink);
  });
}

absl::StatusOr<std::unique_ptr<Exporter>> MakeXSpace(const ExportRequest& request,
                                                     OutputFiles& files) {
  // Options that a format cannot follow are refused rather than ignored: a script would not notice.
  if (request.compression != ExportCompression::kNone) {
    return InvalidArgument(
        "xspace: files cannot be compressed, because their viewer reads plain files only; omit "
        "--compress and .gz");
  }
  if (!request.primary_group.empty()) {
    return InvalidArgument(
        "xspace: each instance has a file and each process a plane; omit "
        "--system-trace-primary-group");
  }
  XSpaceExporter::Options options{.no_flows = request.no_flows};
  ASSIGN_OR_RETURN(options.grouping, Grouping::Parse({}, request.secondary_group));
  if (request.max_file_bytes != 0) {
    options.host_bytes_max = std::min(request.max_file_bytes, XSpaceExporter::kHostBytesMax);
  }
  return std::make_unique<XSpaceExporter>(std::move(options), files);
}

// The table of formats, in the order in which error messages list them. Their names are those of
// lib/trace/export_traits.h.
constexpr std::array<ExportFormat, 7> kFormats = {
    ExportFormat{"perfetto", kPftraceName, MakePftrace, true},
    ExportFormat{"json", kJsonName, MakeJson},
    ExportFormat{"chrome-json", kChromeJsonName, MakeChromeJson, true},
    ExportFormat{"summary-text", kSummaryTextName, MakeSummaryText},
    ExportFormat{"summary-json", kSummaryJsonName, MakeSummaryJson},
    ExportFormat{"parquet", kParquetName, MakeParquet},
    ExportFormat{"xspace", kXSpaceName, MakeXSpace, true},
};

ExportProgress ProgressOf(const TimelineCounts& counts, const Exporter& exporter) {
  return {.chunks_read = counts.chunks_read,
          .chunks_total = counts.chunks_total,
          .unreadable_chunks = counts.unreadable_chunks,
          .spans = counts.spans,
          .bytes_written = exporter.bytes_written()};
}

// Returns the options of the reading that yields the batches; the maps of the clocks are borrowed.
TimelineOptions OptionsOf(const ExportRequest& request) {
  TimelineOptions options;
  options.filter = request.filter;
  if (request.clocks != nullptr && !request.raw_clocks) options.clocks = &request.clocks->maps;
  // Raw times are asked for as they are: those of files with their own time must not be moved
  // either.
  options.keeps_own_time = request.raw_clocks;
  return options;
}

// Removes the oldest entries once there are twice as many as finders can use: finders remember only
// the latest preparations of each stream. Erasing a whole million at once keeps the amortised cost
// of an entry constant.
void KeepLatestPreparations(std::vector<EarlierPreparation>& preparations) {
  constexpr size_t kEnough = 1'000'000;
  if (preparations.size() <= 2 * kEnough) return;
  preparations.erase(preparations.begin(), preparations.end() - kEnough);
}

// Lowers the begin to that of the first span that reaches into the window. Reads the chunks there
// once more. Unreadable ones are counted by the reading of the window.
absl::Status FindBeginBeforeWindow(ChunkSource& source, const ExportRequest& request,
                                   TimelineHeader& header) {
  // A window of one nanosecond yields only what reaches into the start, the earliest first.
  TimelineOptions options = OptionsOf(request);
  options.filter.window_end_ns =
      std::min(request.filter.window_end_ns, request.filter.window_start_ns + 1);
  ASSIGN_OR_RETURN(const std::unique_ptr<TimelineReader> reader,
                   TimelineReader::Open(source, std::move(options)));
  TimelineBatch batch;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_batch, reader->Next(batch));
    if (!has_batch) return absl::OkStatus();
    if (batch.records.empty()) continue;
    header.begin_ns = std::min(header.begin_ns, batch.records.front()->start_ns);
    return absl::OkStatus();
  }
}

// Finds the preparations before the window that events in it may need.
absl::Status FindEarlierPreparations(ChunkSource& source, const ExportRequest& request,
                                     TimelineHeader& header) {
  const uint64_t start_ns = request.filter.window_start_ns;
  TimelineOptions options = OptionsOf(request);
  const uint64_t lookback_ns = options.lookback_ns;
  ASSIGN_OR_RETURN(options.filter.event_types, EventFilter::Parse({"kbl_exec_pre"}));
  // Twice the lookback: a span that began that long before the window may itself have been prepared
  // earlier.
  options.filter.window_start_ns = start_ns > 2 * lookback_ns ? start_ns - 2 * lookback_ns : 0;
  options.filter.window_end_ns = start_ns;
  options.lookback_ns = 0;
  ASSIGN_OR_RETURN(const std::unique_ptr<TimelineReader> reader,
                   TimelineReader::Open(source, std::move(options)));
  TimelineBatch batch;
  ShapeFieldTable fields;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_batch, reader->Next(batch));
    if (!has_batch) return absl::OkStatus();
    for (const TimelineRecord* record : batch.records) {
      const ShapeFields& about = fields.Of(*record->shape);
      const auto exec_id = StartNumber(*record, about, DerivedField::kExecId);
      // A span without its start has the time of its stop, which would make it a later preparation.
      const bool is_whole = about.type == DerivedType::kPrepare && exec_id &&
                            record->kind == RecordKind::kSpan && (record->flags & kStartLost) == 0;
      if (!is_whole) continue;
      const std::string_view model = StartText(*record, about, DerivedField::kModelName);
      header.earlier.push_back(
          {record->stream, *exec_id, record->start_ns, std::string(KeptName(model))});
    }
    KeepLatestPreparations(header.earlier);
  }
}

// Collects what exporters learn before the first batch. Reads the names in framework files, which
// takes time in proportion to these files. `room` bounds the memory of all names together.
absl::StatusOr<TimelineHeader> HeaderOf(ChunkSource& source, const TimelineReader& reader,
                                        const ExportRequest& request) {
  TimelineHeader header;
  header.capture = &reader.capture();
  header.streams = reader.streams();
  header.warnings = reader.warnings();
  header.begin_ns = reader.begin_ns();
  header.filter = &request.filter;
  header.clocks = request.clocks;
  header.raw_clocks = request.raw_clocks;
  header.clock_arguments = request.clock_arguments;
  header.certificate = request.certificate;
  header.certificate_json = request.certificate_json;
  header.framework_names.resize(header.streams.size());
  header.device_profiles = request.device_profiles;
  FrameworkRoom room;
  for (size_t i = 0; i < header.streams.size(); ++i) {
    const StreamDescription& stream = header.streams[i].description;
    if (stream.identity.kind != StreamKind::kFramework) continue;
    // Names of files outside the window are not needed. Mapping files are never in it and always
    // needed.
    if (!header.streams[i].is_in_window && !IsFrameworkMapping(stream.identity)) continue;
    ASSIGN_OR_RETURN(header.framework_names[i], ReadFrameworkNames(source, stream, room));
  }
  return header;
}

}  // namespace

std::span<const ExportFormat> ExportFormats() { return kFormats; }

absl::StatusOr<const ExportFormat*> FindExportFormat(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ExportFormat& format : kFormats) {
    if (format.name == name) return &format;
    known.push_back(format.name);
  }
  return InvalidArgument("export: unknown format '{}'; the formats are {}", name,
                         fmt::join(known, ", "));
}

// How an export runs: the files are opened, the header is collected, and the exporter begins. Then
// the pipe's threads read and prepare batches while this thread writes them. After the last batch,
// the exporter may read parts of the capture once more (SideReader), and finishes its files. After
// an error the files stay unclosed, so that their receivers discard them.
absl::StatusOr<ExportSummary> RunExporter(ChunkSource& source, Exporter& exporter,
                                          const ExportRequest& request, bool takes_host_samples,
                                          const ProgressCallback& progress) {
  TimelineOptions options = OptionsOf(request);
  options.filter.host_samples = takes_host_samples;
  const uint64_t lookback_ns = options.lookback_ns;
  ASSIGN_OR_RETURN(const std::unique_ptr<TimelineReader> reader,
                   TimelineReader::Open(source, std::move(options)));
  ASSIGN_OR_RETURN(TimelineHeader header, HeaderOf(source, *reader, request));
  const size_t read_before = header.warnings.size();
  // Only for the reading that yields the batches: the others have windows of their own.
  if (auto warning = WindowWarning(*reader, lookback_ns)) {
    header.warnings.push_back(*std::move(warning));
  }
  header.begin_ns = std::max(header.begin_ns, request.filter.window_start_ns);
  // Most windows of a whole capture begin with its first event.
  const bool has_past = reader->begin_ns() < request.filter.window_start_ns;
  if (has_past && exporter.begins_before_window()) {
    RETURN_IF_ERROR(FindBeginBeforeWindow(source, request, header));
  }
  if (has_past && exporter.reads_before_window()) {
    RETURN_IF_ERROR(FindEarlierPreparations(source, request, header));
  }
  // Declared before Begin, because the header points to it until Finish.
  SideReader side_reader(source, request);
  header.side_reader = &side_reader;
  RETURN_IF_ERROR(exporter.Begin(header));
  {
    BatchPipe::Prepare prepare;
    if (exporter.prepares()) {
      prepare = [&exporter](const TimelineBatch& ahead) { exporter.Prepare(ahead); };
    }
    // In a scope of its own: its threads must have ended before the reader's counts are final and
    // Finish uses the source.
    BatchPipe pipe(*reader, std::move(prepare));
    TimelineBatch batch;
    while (true) {
      ASSIGN_OR_RETURN(const bool has_batch, pipe.Take(batch));
      if (!has_batch) break;
      RETURN_IF_ERROR(exporter.Write(batch));
      if (progress && !progress(ProgressOf(pipe.counts(), exporter))) {
        return absl::CancelledError("export: cancelled by the caller");
      }
    }
  }
  ExportSummary summary;
  summary.counts = reader->counts();
  summary.progress = ProgressOf(summary.counts, exporter);
  // Those of the header come first: an exporter may have written them already.
  summary.warnings = header.warnings;
  const std::vector<std::string>& read = reader->warnings();
  summary.warnings.insert(summary.warnings.end(), read.begin() + read_before, read.end());
  summary.warnings.insert(summary.warnings.end(), request.warnings.begin(), request.warnings.end());
  RETURN_IF_ERROR(exporter.Finish(summary));
  summary.progress.bytes_written = exporter.bytes_written();
  return summary;
}

absl::StatusOr<ExportSummary> ExportCapture(ChunkSource& source, const ExportFormat& format,
                                            const ExportRequest& request, OutputFiles& files,
                                            const ProgressCallback& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Exporter> exporter, format.make(request, files));
  return RunExporter(source, *exporter, request, format.takes_host_samples, progress);
}

}  // namespace neurontrace
