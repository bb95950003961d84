// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/export/export_insight.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"
#include "aggregator/export/pftrace/pftrace_exporter.h"
#include "lib/trace/export_limits.h"

namespace neurontrace {

// Writes a timeline as several Perfetto traces of about one size, and an index of them. A viewer
// can open each trace alone. Parts are stretches of time, written one after the other, or ranges of
// workers, written at the same time; a range that is larger than a part is divided by time. A part
// is closed when it reaches the size. A span is in the part in which it begins, with its whole
// length. Arrows, steps and collectives do not cross parts, and verdicts are in the index.
// docs/formats/pftrace.md describes the index. Used by one thread at a time; the files must outlive
// it.
class PftraceParts : public Exporter {
 public:
  static constexpr uint64_t kPartBytesMin = limits::kTracePartBytesMin;
  // Ranges of workers, because they are written at the same time. If more were needed, ranges are
  // larger.
  static constexpr size_t kWorkerPartsMax = 64;
  // Warnings of parts. Further ones are counted.
  static constexpr size_t kPartWarningsMax = 1'000;

  struct Options {
    PftraceExporter::Options trace;
    // The size of a part's file, roughly.
    uint64_t part_bytes = 0;
    bool is_by_worker = false;
    // Exclusive with compresses_packets of `trace`.
    bool is_gzip = false;
  };
  // Fails with INVALID_ARGUMENT if parts are too small. Begin or Write also fail so if what every
  // part contains leaves no room for events.
  static absl::StatusOr<std::unique_ptr<Exporter>> Make(Options options, OutputFiles& files);

  PftraceParts(Options options, OutputFiles& files) : options_(std::move(options)), files_(files) {}

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Write(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override;

 private:
  // One trace. It has its own header and filter, because its exporter refers to them.
  struct Part {
    // The window begins where the part does.
    TimelineFilter filter;
    TimelineHeader header;
    size_t number = 0;
    std::string name;
    std::unique_ptr<OutputFile> file;
    // Owned by `file`.
    const CountedFile* counted = nullptr;
    std::unique_ptr<PftraceExporter> exporter;
    // It has more than what every part begins with.
    bool has_events = false;
  };
  // Workers whose parts follow each other. Without division by worker there is one range with all.
  struct Range {
    // If divided by worker: the streams of the range, and their framework names.
    std::vector<TimelineStream> streams;
    std::vector<FrameworkNames> framework_names;
    // The list of their names for the index.
    std::shared_ptr<const std::string> workers;
    // The open one; if divided by worker, null before the first event.
    std::unique_ptr<Part> part;
    // What follows begins at this time or later.
    uint64_t written_until_ns = 0;
    // If divided by worker: the range's records of the current batch.
    TimelineBatch batch;
  };
  // A closed part in the index.
  struct Entry {
    size_t number = 0;
    std::string name;
    // Of the file, after compression.
    uint64_t bytes = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    // The workers of the range.
    std::shared_ptr<const std::string> workers;
  };

  // Distributes the streams over ranges of about one part's size, without dividing a worker.
  void ChooseRanges();
  // Opens the range's first part. Fails if what every part contains leaves no room for events.
  absl::Status OpenFirst(Range& range);
  absl::Status Open(Range& range, uint64_t begin_ns);
  // Returns whether the range needs a part even without events.
  bool HasLosses(const Range& range) const;
  absl::Status WriteTo(Range& range, const TimelineBatch& batch);
  // Writes the records [first, until) of the batch.
  absl::Status WriteSome(Range& range, const TimelineBatch& batch, size_t first, size_t until);
  // Closes the open part at the time that it has reached, and opens the next.
  absl::Status Continue(Range& range);
  absl::Status Close(Range& range, uint64_t end_ns, uint64_t index_end_ns, ExportSummary& summary);
  // Returns the size that the part's file has or, if compressed, roughly will have.
  uint64_t BytesOf(const Part& part) const;
  absl::Status WriteIndex(const CaptureAnswer& answer);
  static std::string WorkersOf(const TimelineHeader& header);
  // Returns the members of the index that say which ranks are slow or hung.
  static std::string AnswerJson(const CaptureAnswer& answer);

  const Options options_;
  OutputFiles& files_;
  const TimelineHeader* header_ = nullptr;
  std::vector<std::unique_ptr<Range>> ranges_;
  // Judges the whole, because a part alone cannot be judged.
  std::optional<ExportInsight> insight_;
  // If divided by worker: the range of each stream.
  std::vector<uint32_t> range_of_;
  // The same: the stream's index in the range.
  std::vector<uint32_t> stream_in_range_;
  // A piece of a batch.
  TimelineBatch some_;
  std::vector<Entry> closed_;
  // Of closed parts; at most kPartWarningsMax.
  std::vector<std::string> warnings_;
  uint64_t further_warnings_ = 0;
  uint64_t bytes_closed_ = 0;
  // Also the number of the latest part; parts count from 1.
  size_t opened_ = 0;
};

}  // namespace neurontrace
