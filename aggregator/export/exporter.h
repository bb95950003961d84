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

// How the bytes of a file are packed, where its format has a choice.
enum class ExportCompression : uint8_t {
  kNone,
  kGzip,     // the whole file
  kPackets,  // within the file, as the format itself has it
};

struct ExportRequest {
  TimelineFilter filter;
  const CaptureClocks* clocks = nullptr;  // nullptr: nothing is known of any clock
  // Every time as its host stamped it, whatever is known; the filter's window, too, is of those.
  bool raw_clocks = false;
  bool clock_arguments = false;              // each event with its raw stamp and its bound
  std::vector<std::string> primary_group;    // empty: the vendor's default; see grouping.h
  std::vector<std::string> secondary_group;  // the same
  bool no_flows = false;                     // no arrows between related events
  ExportCompression compression = ExportCompression::kNone;
  uint64_t max_file_bytes = 0;   // about: a format that can be split is, into files of this size
  bool split_by_worker = false;  // by ranges of workers instead of stretches of time
  const Certificate* certificate = nullptr;  // of the whole capture; nullptr: none is written
  std::string certificate_json;              // the same, for programs
  std::string
      capture_json;  // what a summary says of the capture, an object; empty: its id and name
  std::vector<DeviceProfile> device_profiles;  // of the capture's artifacts, the selected ones
  std::vector<std::string> warnings;           // known before; told with those of the reading
};

struct ExportProgress {
  uint64_t chunks_read = 0;
  uint64_t chunks_total = 0;
  uint64_t spans = 0;
  uint64_t bytes_written = 0;
};

struct ExportSummary {
  ExportProgress progress;
  TimelineCounts counts;
  std::vector<std::string> warnings;
};

class SideReader;  // side_reader.h

// A preparation (kbl_exec_pre) from before the window, by which an execution in it knows its model.
struct EarlierPreparation {
  uint32_t stream = 0;
  uint64_t exec_id = 0;
  uint64_t start_ns = 0;
  std::string model_name;  // what KeptName leaves
};

// What an exporter is told before the first batch. Lives as long as the export.
struct TimelineHeader {
  const CaptureDescription* capture = nullptr;
  std::span<const TimelineStream> streams;
  std::vector<FrameworkNames> framework_names;  // one a stream, empty for other kinds
  std::vector<std::string> warnings;            // known so far
  // About the time of the first event. Of a window its begin, or an earlier one of a span that
  // reaches into it.
  uint64_t begin_ns = 0;
  std::vector<EarlierPreparation> earlier;  // by time
  const TimelineFilter* filter = nullptr;
  const CaptureClocks* clocks = nullptr;  // see ExportRequest
  bool raw_clocks = false;
  bool clock_arguments = false;
  const Certificate* certificate = nullptr;  // see ExportRequest
  std::string_view certificate_json;
  std::span<const DeviceProfile> device_profiles;  // the selected ones
  SideReader* side_reader = nullptr;               // what is not among the batches
};

// Writes one format from a timeline: Begin, Write for each batch, Finish. An error ends the export
// and leaves a file that ends early. One thread at a time, but for Prepare.
class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual absl::Status Begin(const TimelineHeader& header) = 0;
  // True of one that works something out of a batch before those ahead of it are written. Then
  // Prepare can be called: for every batch before its Write, or for none; in their order, on one
  // other thread, also while a batch is written.
  virtual bool prepares() const { return false; }
  virtual void Prepare(const TimelineBatch&) {}
  virtual absl::Status Write(const TimelineBatch& batch) = 0;
  // `summary` has all but what the exporter itself adds to its warnings.
  virtual absl::Status Finish(ExportSummary& summary) = 0;
  virtual uint64_t bytes_written() const = 0;
};

// A row of the table of formats.
struct ExportFormat {
  std::string_view name;       // as in `--format`
  std::string_view file_name;  // where people are not asked; of a format of many, of its directory
  // INVALID_ARGUMENT for what a request asks of a format that has it not.
  absl::StatusOr<std::unique_ptr<Exporter>> (*make)(const ExportRequest& request,
                                                    OutputFiles& files);
  bool takes_host_samples = false;  // among its batches
};
std::span<const ExportFormat> ExportFormats();
// INVALID_ARGUMENT names the known ones.
absl::StatusOr<const ExportFormat*> FindExportFormat(std::string_view name);

// Told now and then, from the calling thread; false ends the export with CANCELLED.
using ProgressCallback = std::function<bool(const ExportProgress&)>;

// Reads the selected part of a capture and writes it to `files` in one format. Memory is bounded
// whatever the capture's size. Reads on a second thread, and prepares on a third where the
// format has something to, while the calling one writes; these have ended on return. Errors of the
// source, of the files, INVALID_ARGUMENT for a request that makes no sense.
absl::StatusOr<ExportSummary> ExportCapture(ChunkSource& source, const ExportFormat& format,
                                            const ExportRequest& request, OutputFiles& files,
                                            const ProgressCallback& progress);

}  // namespace neurontrace
