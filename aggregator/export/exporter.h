// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/certificate/certificate.h"
#include "aggregator/export/output_files.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/framework_names.h"
#include "aggregator/timeline/timeline_reader.h"
#include "lib/trace/device_profile.h"

namespace neurontrace {

// How the bytes of a file are compressed.
enum class ExportCompression : uint8_t {
  kNone,
  kGzip,  // the whole file
  // Within the file, as its format defines it.
  kPackets,
};

// What to export and how. A plain value that borrows clocks and certificate; both must outlive the
// export.
struct ExportRequest {
  // Its window is [start, end) in reference nanoseconds, unless raw_clocks is set.
  TimelineFilter filter;
  const CaptureClocks* clocks = nullptr;  // nullptr: nothing is known of any clock
  // Exports every time as its host stamped it, whatever is known. The filter's window is then one
  // of such times, too.
  bool raw_clocks = false;
  // Adds the raw stamp and the error bound to each event.
  bool clock_arguments = false;
  // Names of Grouping::Part; empty for the vendor's default.
  std::vector<std::string> primary_group;
  // The same for the rows of a process.
  std::vector<std::string> secondary_group;
  // Omits arrows between related events.
  bool no_flows = false;
  // Refused with INVALID_ARGUMENT by formats that do not support it.
  ExportCompression compression = ExportCompression::kNone;
  // Divides an export into files of about this size, if its format supports that. 0: one file.
  uint64_t max_file_bytes = 0;
  // Divides by ranges of workers instead of stretches of time.
  bool split_by_worker = false;
  // Of the whole capture; nullptr: none is written.
  const Certificate* certificate = nullptr;
  // The same certificate for programs.
  std::string certificate_json;
  // The object that describes the capture in a summary; empty: its id and name.
  std::string capture_json;
  // Of the capture's artifacts, those that the filter selects.
  std::vector<DeviceProfile> device_profiles;
  // Known beforehand; reported together with those of the reading.
  std::vector<std::string> warnings;
};

// How far an export has come. `spans` and `bytes_written` grow up to its end.
struct ExportProgress {
  // Chunks of the selected streams.
  uint64_t chunks_read = 0;
  uint64_t chunks_total = 0;
  uint64_t unreadable_chunks = 0;
  uint64_t spans = 0;
  uint64_t bytes_written = 0;
};

// The result of an export: totals, and everything that its reader should be warned about.
struct ExportSummary {
  ExportProgress progress;
  TimelineCounts counts;
  std::vector<std::string> warnings;
};

class SideReader;  // side_reader.h

// A preparation (kbl_exec_pre) from before the window: an execution in the window gets its model's
// name from it.
struct EarlierPreparation {
  uint32_t stream = 0;
  uint64_t exec_id = 0;
  uint64_t start_ns = 0;
  // As KeptName shortens it.
  std::string model_name;
};

// What an exporter learns before the first batch. Lives as long as the export, so that exporters
// keep references to it.
struct TimelineHeader {
  const CaptureDescription* capture = nullptr;
  std::span<const TimelineStream> streams;
  // One for each stream; empty for streams of other kinds.
  std::vector<FrameworkNames> framework_names;
  // Those known so far; reading may add some.
  std::vector<std::string> warnings;
  // Roughly the time of the first event. For a window its begin, or the earlier begin of a span
  // that reaches into it (the latter only with Exporter::begins_before_window).
  uint64_t begin_ns = 0;
  // By time; empty without Exporter::reads_before_window.
  std::vector<EarlierPreparation> earlier;
  const TimelineFilter* filter = nullptr;
  const CaptureClocks* clocks = nullptr;  // see ExportRequest
  bool raw_clocks = false;
  bool clock_arguments = false;
  const Certificate* certificate = nullptr;  // see ExportRequest
  std::string_view certificate_json;
  std::span<const DeviceProfile> device_profiles;  // the selected ones
  // Reads what is not among the batches; only in Finish.
  SideReader* side_reader = nullptr;
};

// Writes one format from a timeline: Begin, then Write for each batch, then Finish. An error ends
// the export and leaves a file that ends early. Used by one thread at a time, except for Prepare.
class Exporter {
 public:
  virtual ~Exporter() = default;
  // Called once, before any batch. `header` outlives the exporter's last call.
  virtual absl::Status Begin(const TimelineHeader& header) = 0;
  // Returns whether the exporter derives something from a batch before those ahead of it are
  // written. Then Prepare may be called for every batch before its Write, or for none: in their
  // order, on one other thread, also while a batch is being written.
  virtual bool prepares() const { return false; }
  virtual void Prepare(const TimelineBatch&) {}
  // Return whether the exporter uses TimelineHeader::earlier, and a begin_ns that is earlier than
  // the window. Otherwise the time before the window is not read for them.
  virtual bool reads_before_window() const { return true; }
  virtual bool begins_before_window() const { return reads_before_window(); }
  virtual absl::Status Write(const TimelineBatch& batch) = 0;
  // `summary` is complete except for the exporter's own warnings, which this adds.
  virtual absl::Status Finish(ExportSummary& summary) = 0;
  // Returns the bytes so far, for progress reports.
  virtual uint64_t bytes_written() const = 0;
};

// One row of the table of formats.
struct ExportFormat {
  // The value of --format.
  std::string_view name;
  // The default name of the file, or of the directory of a format with several files.
  std::string_view file_name;
  // Opens the files. Fails with INVALID_ARGUMENT if the request asks for something that the format
  // does not support.
  absl::StatusOr<std::unique_ptr<Exporter>> (*make)(const ExportRequest& request,
                                                    OutputFiles& files);
  // Whether its batches contain the samples of hosts.
  bool takes_host_samples = false;
};
std::span<const ExportFormat> ExportFormats();
// Fails with INVALID_ARGUMENT that lists the known names.
absl::StatusOr<const ExportFormat*> FindExportFormat(std::string_view name);

// Called after each batch on the calling thread. Returning false ends the export with CANCELLED.
using ProgressCallback = std::function<bool(const ExportProgress&)>;

// Reads the selected part of a capture and passes it to `exporter`. Memory is bounded whatever the
// capture's size. A second thread reads, and a third prepares if the exporter needs that, while the
// calling thread writes; they have ended on return. Fails with errors of the source and of the
// exporter, and with CANCELLED if `progress` returns false.
absl::StatusOr<ExportSummary> RunExporter(ChunkSource& source, Exporter& exporter,
                                          const ExportRequest& request, bool takes_host_samples,
                                          const ProgressCallback& progress);

// Does the same with the exporter of a format, which writes `files`. Fails also with errors of the
// files, and with INVALID_ARGUMENT for an unacceptable request.
absl::StatusOr<ExportSummary> ExportCapture(ChunkSource& source, const ExportFormat& format,
                                            const ExportRequest& request, OutputFiles& files,
                                            const ProgressCallback& progress);

}  // namespace neurontrace
