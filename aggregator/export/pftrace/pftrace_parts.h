// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"
#include "aggregator/export/pftrace/pftrace_exporter.h"
#include "lib/trace/export_limits.h"

namespace neurontrace {

// Writes a timeline as several Perfetto traces of about one size and an index of them. A viewer can
// open each trace alone. Parts are stretches of time, written one after the other, or ranges of
// workers, written at once; a range that is larger than a part is divided by time. A part is closed
// when it reaches the size. A span is in the part in which it begins, with its whole length.
// Arrows, steps and collectives do not cross parts. docs/formats/pftrace.md describes the index.
// One thread at a time.
class PftraceParts : public Exporter {
 public:
  static constexpr uint64_t kPartBytesMin = limits::kTracePartBytesMin;
  // Of ranges of workers, which are written at once: beyond, ranges are larger.
  static constexpr size_t kWorkerPartsMax = 64;
  static constexpr size_t kPartWarningsMax = 1'000;  // beyond, they are counted

  struct Options {
    PftraceExporter::Options trace;
    uint64_t part_bytes = 0;  // about, of the file
    bool is_by_worker = false;
    bool is_gzip = false;
  };
  // INVALID_ARGUMENT for parts that are too small; so does the opening of a part where what is
  // in every part leaves no room for events.
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
    size_t number = 0;
    std::string name;
    std::unique_ptr<OutputFile> file;
    const CountedFile* counted = nullptr;  // owned by file
    std::unique_ptr<PftraceExporter> exporter;
    bool has_events = false;  // besides what every part begins with
  };
  // Workers whose parts follow each other; by time, all of them.
  struct Range {
    std::vector<TimelineStream> streams;  // by worker: those of the range, and their names
    std::vector<FrameworkNames> framework_names;
    std::shared_ptr<const std::string> workers;  // for the index: a list of their names
    std::unique_ptr<Part> part;     // the one that is open; by worker none before the first event
    uint64_t written_until_ns = 0;  // what comes begins there or later
    TimelineBatch batch;            // by worker: its records of the batch at hand
  };
  // What the index says of a part that is closed.
  struct Entry {
    size_t number = 0;
    std::string name;
    uint64_t bytes = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    std::shared_ptr<const std::string> workers;  // the range's
  };

  void ChooseRanges();
  // The range's first part; fails where what is in every part leaves no room for events.
  absl::Status OpenFirst(Range& range);
  absl::Status Open(Range& range, uint64_t begin_ns);
  bool HasLosses(const Range& range) const;
  absl::Status WriteTo(Range& range, const TimelineBatch& batch);
  // Writes the records [first, until) of the batch.
  absl::Status WriteSome(Range& range, const TimelineBatch& batch, size_t first, size_t until);
  // Ends the open part where it has come to, and opens the next.
  absl::Status Continue(Range& range);
  absl::Status Close(Range& range, uint64_t end_ns, uint64_t index_end_ns, ExportSummary& summary);
  uint64_t BytesOf(const Part& part) const;
  absl::Status WriteIndex();
  static std::string WorkersOf(const TimelineHeader& header);

  const Options options_;
  OutputFiles& files_;
  const TimelineHeader* header_ = nullptr;
  std::vector<std::unique_ptr<Range>> ranges_;
  std::vector<uint32_t> range_of_;         // by worker: of each stream
  std::vector<uint32_t> stream_in_range_;  // the same: its index there
  TimelineBatch some_;                     // a piece of a batch
  std::vector<Entry> closed_;
  std::vector<std::string> warnings_;  // of parts that are closed, kPartWarningsMax at most
  uint64_t further_warnings_ = 0;
  uint64_t bytes_closed_ = 0;
  size_t opened_ = 0;
};

}  // namespace neurontrace
