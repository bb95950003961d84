// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/pftrace_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aggregator/export/gzip_file.h"
#include "aggregator/export/rows/loss_instants.h"
#include "aggregator/export/rows/row_model.h"
#include "lib/base/json_string.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Roughly what an event takes in a file, because ranges of workers are chosen before anything is
// written. Measured on the events of tests/bench.
constexpr uint64_t kBytesPerEvent = 110;
constexpr uint64_t kCompressedBytesPerEvent = 14;
// What every part begins with must leave at least this fraction (one in kEmptyShare) to events.
constexpr uint64_t kEmptyShare = 4;
// The fewest records of a piece. The size of a part is checked after each piece.
constexpr size_t kPieceRecordsMin = 1'200;

// Returns where a piece that begins at `first` ends, in records. Pieces are small against a part,
// so that its size is about what was asked for, but not smaller than kPieceRecordsMin: fewer arrows
// are drawn from piece to piece than within one. Records that begin at the same time are not
// divided: their order is that of one batch.
size_t EndOfPiece(const TimelineBatch& batch, size_t first, uint64_t part_bytes) {
  const size_t size = batch.records.size();
  const size_t piece = std::max<size_t>(kPieceRecordsMin, part_bytes / 32 / kBytesPerEvent);
  size_t end = std::min(size, first + piece);
  while (end > first && end < size &&
         batch.records[end]->start_ns == batch.records[end - 1]->start_ns) {
    ++end;
  }
  return end;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> PftraceParts::Make(Options options, OutputFiles& files) {
  if (options.part_bytes < kPartBytesMin) {
    return InvalidArgument("--max-size must be at least {}MiB", kPartBytesMin >> 20);
  }
  return std::make_unique<PftraceParts>(std::move(options), files);
}

// Divided by worker, parts are opened with their first event: a range may have none in the window.
absl::Status PftraceParts::Begin(const TimelineHeader& header) {
  header_ = &header;
  insight_.emplace(header);
  if (options_.is_by_worker) ChooseRanges();
  if (ranges_.empty()) ranges_.push_back(std::make_unique<Range>());
  if (options_.is_by_worker) return absl::OkStatus();
  return OpenFirst(*ranges_.front());
}

absl::Status PftraceParts::OpenFirst(Range& range) {
  RETURN_IF_ERROR(Open(range, header_->begin_ns));
  const uint64_t bytes = BytesOf(*range.part) + header_->certificate_json.size();
  if (bytes <= options_.part_bytes - options_.part_bytes / kEmptyShare) return absl::OkStatus();
  return InvalidArgument(
      "export: parts of {} bytes are too small, because names, clocks and the certificate take {} "
      "bytes of each part; increase --max-size, or export fewer workers",
      options_.part_bytes, bytes);
}

absl::Status PftraceParts::Open(Range& range, uint64_t begin_ns) {
  auto part = std::make_unique<Part>();
  // A copy, in which begin, window and streams are those of the part.
  part->header = *header_;
  part->header.begin_ns = begin_ns;
  if (options_.is_by_worker) {
    part->header.streams = range.streams;
    part->header.framework_names = range.framework_names;
    part->header.earlier.clear();
    // Stream numbers of a range count from 0.
    for (EarlierPreparation earlier : header_->earlier) {
      if (ranges_[range_of_[earlier.stream]].get() != &range) continue;
      earlier.stream = stream_in_range_[earlier.stream];
      part->header.earlier.push_back(std::move(earlier));
    }
  }
  if (range.workers == nullptr) {
    range.workers = std::make_shared<const std::string>(WorkersOf(part->header));
  }
  part->filter = *header_->filter;
  // The first part also has losses from before its first event.
  if (range.written_until_ns != 0) part->filter.window_start_ns = begin_ns;
  part->header.filter = &part->filter;
  part->number = ++opened_;
  part->name = fmt::format("system_profile.part{:04}.pftrace{}", part->number,
                           options_.is_gzip ? ".gz" : "");
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, files_.Open(part->name));
  auto counted = std::make_unique<CountedFile>(std::move(file));
  part->counted = counted.get();
  part->file = std::move(counted);
  if (options_.is_gzip) {
    // The counter is below the compression: the size of a part is that of its file.
    ASSIGN_OR_RETURN(part->file, MakeGzipFile(std::move(part->file)));
  }
  PftraceExporter::Options trace = options_.trace;
  trace.no_verdicts = true;
  part->exporter = std::make_unique<PftraceExporter>(std::move(trace), *part->file);
  RETURN_IF_ERROR(part->exporter->Begin(part->header));
  range.part = std::move(part);
  range.written_until_ns = begin_ns;
  return absl::OkStatus();
}

// Applies the rule of TraceLosses to the streams of the range.
bool PftraceParts::HasLosses(const Range& range) const {
  TimelineHeader header = *header_;
  header.streams = range.streams;
  return !TraceLosses(header).empty();
}

void PftraceParts::ChooseRanges() {
  const bool is_compressed = options_.is_gzip || options_.trace.compresses_packets;
  const uint64_t per_event = is_compressed ? kCompressedBytesPerEvent : kBytesPerEvent;
  const auto bytes_of = [&](const TimelineStream& stream) {
    return std::min<uint64_t>(stream.description.events, UINT64_MAX >> 32) * per_event;
  };
  uint64_t all = 0;
  for (const TimelineStream& stream : header_->streams) all += bytes_of(stream);
  // All ranges are open at the same time, with a buffer each, hence their limit.
  const uint64_t goal = std::max(options_.part_bytes, all / kWorkerPartsMax + 1);
  range_of_.resize(header_->streams.size());
  stream_in_range_.resize(header_->streams.size());
  uint64_t bytes = 0;
  const WorkerIdentity* worker = nullptr;
  // A range is closed only where another worker begins, so that a worker's streams share a trace.
  for (const uint32_t stream : DisplayOrder(header_->streams)) {
    const TimelineStream& about = header_->streams[stream];
    const bool is_new_worker = worker == nullptr || *worker != about.description.identity.worker;
    const bool is_full = bytes > 0 && bytes + bytes_of(about) > goal;
    if (ranges_.empty() || (is_new_worker && is_full && ranges_.size() < kWorkerPartsMax)) {
      ranges_.push_back(std::make_unique<Range>());
      bytes = 0;
    }
    worker = &about.description.identity.worker;
    bytes += bytes_of(about);
    Range& range = *ranges_.back();
    range_of_[stream] = static_cast<uint32_t>(ranges_.size() - 1);
    stream_in_range_[stream] = static_cast<uint32_t>(range.streams.size());
    range.streams.push_back(about);
    range.framework_names.push_back(header_->framework_names[stream]);
  }
}

absl::Status PftraceParts::Write(const TimelineBatch& batch) {
  insight_->Take(batch);  // before the records' streams become those of their ranges
  if (!options_.is_by_worker) return WriteTo(*ranges_.front(), batch);
  for (const std::unique_ptr<Range>& range : ranges_) {
    range->batch.records.clear();
    range->batch.begin_ns = batch.begin_ns;
    range->batch.end_ns = batch.end_ns;
  }
  for (TimelineRecord* const record : batch.records) {
    Range& range = *ranges_[range_of_[record->stream]];
    // The batch is not used by anybody after this exporter, so its records may be changed.
    record->stream = stream_in_range_[record->stream];
    range.batch.records.push_back(record);
  }
  for (const std::unique_ptr<Range>& range : ranges_) {
    if (range->part == nullptr && range->batch.records.empty()) continue;
    if (range->part == nullptr) RETURN_IF_ERROR(OpenFirst(*range));
    RETURN_IF_ERROR(WriteTo(*range, range->batch));
  }
  return absl::OkStatus();
}

// The exporter's own count is before compression; the counter of the file lacks what the exporter
// still buffers.
uint64_t PftraceParts::BytesOf(const Part& part) const {
  const bool is_compressed = options_.is_gzip || options_.trace.compresses_packets;
  return is_compressed ? part.counted->bytes() + part.exporter->bytes_buffered()
                       : part.exporter->bytes_written();
}

// A part without events is never closed, so that a piece larger than a part does not make empty
// ones.
absl::Status PftraceParts::WriteTo(Range& range, const TimelineBatch& batch) {
  size_t done = 0;
  do {
    if (range.part->has_events && BytesOf(*range.part) >= options_.part_bytes) {
      RETURN_IF_ERROR(Continue(range));
    }
    const size_t until = EndOfPiece(batch, done, options_.part_bytes);
    RETURN_IF_ERROR(WriteSome(range, batch, done, until));
    done = until;
  } while (done < batch.records.size());
  return absl::OkStatus();
}

absl::Status PftraceParts::WriteSome(Range& range, const TimelineBatch& batch, size_t first,
                                     size_t until) {
  const bool is_last = until == batch.records.size();
  const uint64_t end_ns = is_last ? batch.end_ns : batch.records[until]->start_ns;
  PftraceExporter& exporter = *range.part->exporter;
  const uint64_t bytes_before = exporter.bytes_written();
  if (first == 0 && is_last) {
    RETURN_IF_ERROR(exporter.Write(batch));
  } else {
    // A piece is a batch of its own for the exporter: it covers the time up to the next piece's
    // begin.
    some_.begin_ns = first == 0 ? batch.begin_ns : batch.records[first]->start_ns;
    some_.end_ns = end_ns;
    some_.records.assign(batch.records.begin() + static_cast<ptrdiff_t>(first),
                         batch.records.begin() + static_cast<ptrdiff_t>(until));
    RETURN_IF_ERROR(exporter.Write(some_));
  }
  if (exporter.bytes_written() > bytes_before) range.part->has_events = true;
  range.written_until_ns = end_ns;
  return absl::OkStatus();
}

// The warnings of the header are in every part, and only new ones belong to this one.
absl::Status PftraceParts::Continue(Range& range) {
  ExportSummary summary;
  summary.warnings = range.part->header.warnings;
  const uint64_t end_ns = range.written_until_ns;
  RETURN_IF_ERROR(Close(range, end_ns, end_ns, summary));
  return Open(range, end_ns);
}

std::string PftraceParts::WorkersOf(const TimelineHeader& header) {
  std::string workers;
  for (const uint32_t stream : DisplayOrder(header.streams)) {
    const std::string& label = header.streams[stream].rank.label;
    if (!label.empty()) workers += (workers.empty() ? "" : ", ") + JsonText(label);
  }
  return workers;
}

absl::Status PftraceParts::Close(Range& range, uint64_t end_ns, uint64_t index_end_ns,
                                 ExportSummary& summary) {
  Part& part = *range.part;
  const size_t known = summary.warnings.size();
  RETURN_IF_ERROR(part.exporter->FinishAt(end_ns, summary));
  for (size_t i = known; i < summary.warnings.size(); ++i) {
    if (warnings_.size() == kPartWarningsMax) {
      ++further_warnings_;
    } else {
      warnings_.push_back(fmt::format("{}: {}", part.name, summary.warnings[i]));
    }
  }
  summary.warnings.resize(known);
  RETURN_IF_ERROR(part.file->Close());
  // From here on the part is in the index, and `counted` must not be used any more.
  bytes_closed_ += part.counted->bytes();
  closed_.push_back({.number = part.number,
                     .name = part.name,
                     .bytes = part.counted->bytes(),
                     .begin_ns = part.header.begin_ns,
                     .end_ns = index_end_ns,
                     .workers = range.workers});
  part.counted = nullptr;
  return absl::OkStatus();
}

std::string PftraceParts::AnswerJson(const CaptureAnswer& answer) {
  const auto list = [](const std::vector<InsightLine>& lines) {
    std::string texts;
    for (const InsightLine& line : lines)
      texts += (texts.empty() ? "" : ", ") + JsonText(line.text);
    return texts;
  };
  return fmt::format("  \"judged\": {},\n  \"verdicts\": [{}],\n  \"refusals\": [{}]\n",
                     JsonText(answer.text), list(answer.verdicts), list(answer.refusals));
}

// 64-bit numbers are texts, as in protobuf's JSON. docs/formats/pftrace.md describes the file.
absl::Status PftraceParts::WriteIndex(const CaptureAnswer& answer) {
  ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                   files_.Open("system_profile.parts.json"));
  const auto write = [&](std::string_view text) {
    bytes_closed_ += text.size();
    return file->Write(text);
  };
  RETURN_IF_ERROR(write(fmt::format(
      "{{\n  \"version\": 1,\n  \"capture_id\": \"{}\",\n  \"split\": \"{}\",\n  \"part_bytes\": "
      "\"{}\",\n  \"parts\": [",
      header_->capture->id.ToString(), options_.is_by_worker ? "worker" : "time",
      options_.part_bytes)));
  const char* separator = "\n";
  for (const Entry& entry : closed_) {
    RETURN_IF_ERROR(write(fmt::format(
        "{}    {{\"file\": \"{}\", \"bytes\": \"{}\", \"begin_ns\": \"{}\", \"end_ns\": \"{}\", "
        "\"workers\": [{}]}}",
        std::exchange(separator, ",\n"), entry.name, entry.bytes, entry.begin_ns, entry.end_ns,
        *entry.workers)));
  }
  RETURN_IF_ERROR(write("\n  ],\n" + AnswerJson(answer) + "}\n"));
  return file->Close();
}

absl::Status PftraceParts::Finish(ExportSummary& summary) {
  for (const std::unique_ptr<Range>& range : ranges_) {
    // A range without events gets a part only for its losses, or if no other range has one, so that
    // an export has at least one trace.
    const bool is_needed = range == ranges_.back() && opened_ == 0;
    if (range->part == nullptr && !is_needed && !HasLosses(*range)) continue;
    if (range->part == nullptr) RETURN_IF_ERROR(OpenFirst(*range));
    RETURN_IF_ERROR(Close(*range, UINT64_MAX, range->written_until_ns, summary));
  }
  ranges_.clear();
  for (std::string& warning : warnings_) summary.warnings.push_back(std::move(warning));
  if (further_warnings_ > 0) {
    summary.warnings.push_back(fmt::format("and {} more warnings of parts", further_warnings_));
  }
  // By number, because ranges close their parts at different times.
  std::sort(closed_.begin(), closed_.end(),
            [](const Entry& a, const Entry& b) { return a.number < b.number; });
  const CaptureAnswer answer = insight_->Finish();
  return WriteIndex(answer);
}

uint64_t PftraceParts::bytes_written() const {
  uint64_t bytes = bytes_closed_;
  for (const std::unique_ptr<Range>& range : ranges_) {
    const Part* const part = range->part.get();
    if (part != nullptr && part->counted != nullptr) bytes += part->counted->bytes();
  }
  return bytes;
}

}  // namespace neurontrace
