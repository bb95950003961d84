// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/export/counted_file.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"
#include "aggregator/export/pftrace/pftrace_exporter.h"

namespace neurontrace {

// Writes a timeline as several Perfetto traces of about one size, each of which opens by itself,
// and an index of them: by stretches of time, one after the other, or by ranges of workers, all at
// once. A span stands in the part in which it begins, with its whole length. Arrows, steps and
// collectives do not reach from part to part. docs/formats/pftrace.md describes the index. One
// thread at a time.
class PftraceParts : public Exporter {
 public:
  static constexpr uint64_t kPartBytesMin = uint64_t{1} << 20;
  // Of ranges of workers, which are written at once: beyond, ranges are larger.
  static constexpr size_t kWorkerPartsMax = 64;

  struct Options {
    PftraceExporter::Options trace;
    uint64_t part_bytes = 0;  // about, of the file
    bool is_by_worker = false;
    bool is_gzip = false;
  };
  // INVALID_ARGUMENT for parts that are too small.
  static absl::StatusOr<std::unique_ptr<Exporter>> Make(Options options, OutputFiles& files);

  PftraceParts(Options options, OutputFiles& files) : options_(std::move(options)), files_(files) {}

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Write(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override;

 private:
  // One trace. Its header and filter are its own: the exporter refers to them.
  struct Part {
    TimelineFilter filter;
    TimelineHeader header;
    std::vector<TimelineStream> streams;  // by worker: those of the part
    std::string name;
    std::unique_ptr<OutputFile> file;
    const CountedFile* counted = nullptr;  // owned by file
    std::unique_ptr<PftraceExporter> exporter;
    TimelineBatch batch;  // by worker: its records of the batch at hand
  };
  // What the index says of a part that is closed.
  struct Entry {
    std::string name;
    uint64_t bytes = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    std::vector<std::string> workers;
  };

  absl::Status Open(std::unique_ptr<Part> part);
  absl::Status OpenStretch(uint64_t begin_ns);
  absl::Status OpenRanges();
  absl::Status WriteRanges(const TimelineBatch& batch);
  absl::Status Close(Part& part, uint64_t end_ns, ExportSummary& summary);
  absl::Status WriteIndex();
  static std::vector<std::string> WorkersOf(const TimelineHeader& header);

  const Options options_;
  OutputFiles& files_;
  const TimelineHeader* header_ = nullptr;
  std::vector<std::unique_ptr<Part>> parts_;  // that are open
  std::vector<uint32_t> part_of_;             // by worker: of each stream
  std::vector<uint32_t> stream_in_part_;      // likewise: its index there
  std::vector<Entry> closed_;
  std::vector<std::string> warnings_;  // of parts that are closed
  uint64_t written_until_ns_ = 0;
  uint64_t bytes_closed_ = 0;
  size_t opened_ = 0;
};

}  // namespace neurontrace
