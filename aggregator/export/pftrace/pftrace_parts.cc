// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/pftrace_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aggregator/export/gzip_file.h"
#include "aggregator/export/pftrace/display_order.h"
#include "base/status.h"
#include "trace/event_json.h"

namespace neurontrace {
namespace {

// What an event of a stream takes in a file, about: a range of workers is chosen before it is
// written. Measured on the events of tests/bench.
constexpr uint64_t kBytesPerEvent = 110;
constexpr uint64_t kCompressedBytesPerEvent = 14;

std::string JsonTextOf(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> PftraceParts::Make(Options options, OutputFiles& files) {
  if (options.part_bytes < kPartBytesMin) {
    return InvalidArgument("export: parts have {} bytes at least", kPartBytesMin);
  }
  return std::make_unique<PftraceParts>(std::move(options), files);
}

absl::Status PftraceParts::Begin(const TimelineHeader& header) {
  header_ = &header;
  return options_.is_by_worker ? OpenRanges() : OpenStretch(header.begin_ns);
}

absl::Status PftraceParts::Open(std::unique_ptr<Part> part) {
  part->header.filter = &part->filter;
  part->name =
      fmt::format("system_profile.part{:04}.pftrace{}", ++opened_, options_.is_gzip ? ".gz" : "");
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, files_.Open(part->name));
  auto counted = std::make_unique<CountedFile>(std::move(file));
  part->counted = counted.get();
  part->file = std::move(counted);
  if (options_.is_gzip) {
    ASSIGN_OR_RETURN(part->file, MakeGzipFile(std::move(part->file)));
  }
  part->exporter = std::make_unique<PftraceExporter>(options_.trace, *part->file);
  RETURN_IF_ERROR(part->exporter->Begin(part->header));
  parts_.push_back(std::move(part));
  return absl::OkStatus();
}

absl::Status PftraceParts::OpenStretch(uint64_t begin_ns) {
  auto part = std::make_unique<Part>();
  part->header = *header_;
  part->header.begin_ns = begin_ns;
  part->filter = *header_->filter;
  // The first has what lies before its first event, too: losses.
  if (opened_ > 0) part->filter.window_start_ns = begin_ns;
  return Open(std::move(part));
}

absl::Status PftraceParts::OpenRanges() {
  const bool is_compressed = options_.is_gzip || options_.trace.compresses_packets;
  const uint64_t per_event = is_compressed ? kCompressedBytesPerEvent : kBytesPerEvent;
  const auto bytes_of = [&](const TimelineStream& stream) {
    return std::min<uint64_t>(stream.description.events, UINT64_MAX >> 32) * per_event;
  };
  uint64_t all = 0;
  for (const TimelineStream& stream : header_->streams) all += bytes_of(stream);
  const uint64_t goal = std::max(options_.part_bytes, all / kWorkerPartsMax + 1);
  part_of_.resize(header_->streams.size());
  stream_in_part_.resize(header_->streams.size());
  std::vector<std::unique_ptr<Part>> parts;
  uint64_t bytes = 0;
  const WorkerIdentity* worker = nullptr;
  for (const uint32_t stream : DisplayOrder(header_->streams)) {
    const TimelineStream& about = header_->streams[stream];
    const bool is_new_worker = worker == nullptr || *worker != about.description.identity.worker;
    const bool is_full = bytes > 0 && bytes + bytes_of(about) > goal;
    if (parts.empty() || (is_new_worker && is_full && parts.size() < kWorkerPartsMax)) {
      parts.push_back(std::make_unique<Part>());
      bytes = 0;
    }
    worker = &about.description.identity.worker;
    bytes += bytes_of(about);
    Part& part = *parts.back();
    part_of_[stream] = static_cast<uint32_t>(parts.size() - 1);
    stream_in_part_[stream] = static_cast<uint32_t>(part.streams.size());
    part.streams.push_back(about);
    part.header.framework_names.push_back(header_->framework_names[stream]);
  }
  if (parts.empty()) parts.push_back(std::make_unique<Part>());
  for (std::unique_ptr<Part>& part : parts) {
    std::vector<FrameworkNames> names = std::move(part->header.framework_names);
    part->header = *header_;
    part->header.framework_names = std::move(names);
    part->header.streams = part->streams;
    part->filter = *header_->filter;
    RETURN_IF_ERROR(Open(std::move(part)));
  }
  return absl::OkStatus();
}

absl::Status PftraceParts::Write(const TimelineBatch& batch) {
  if (options_.is_by_worker) {
    written_until_ns_ = batch.end_ns;
    return WriteRanges(batch);
  }
  Part& part = *parts_.front();
  const bool is_full = part.counted->bytes() >= options_.part_bytes;
  if (is_full && !batch.records.empty()) {
    ExportSummary summary;
    summary.warnings = part.header.warnings;
    RETURN_IF_ERROR(Close(part, batch.begin_ns, summary));
    parts_.clear();
    RETURN_IF_ERROR(OpenStretch(batch.begin_ns));
  }
  written_until_ns_ = batch.end_ns;
  return parts_.front()->exporter->Write(batch);
}

absl::Status PftraceParts::WriteRanges(const TimelineBatch& batch) {
  for (const std::unique_ptr<Part>& part : parts_) {
    part->batch.records.clear();
    part->batch.begin_ns = batch.begin_ns;
    part->batch.end_ns = batch.end_ns;
  }
  for (TimelineRecord* const record : batch.records) {
    Part& part = *parts_[part_of_[record->stream]];
    record->stream = stream_in_part_[record->stream];  // nobody else looks at it any more
    part.batch.records.push_back(record);
  }
  for (const std::unique_ptr<Part>& part : parts_) {
    RETURN_IF_ERROR(part->exporter->Write(part->batch));
  }
  return absl::OkStatus();
}

std::vector<std::string> PftraceParts::WorkersOf(const TimelineHeader& header) {
  std::vector<std::string> workers;
  for (const uint32_t stream : DisplayOrder(header.streams)) {
    const TimelineStream& about = header.streams[stream];
    if (!about.rank.label.empty()) workers.push_back(about.rank.label);
  }
  return workers;
}

absl::Status PftraceParts::Close(Part& part, uint64_t end_ns, ExportSummary& summary) {
  const size_t known = summary.warnings.size();
  RETURN_IF_ERROR(part.exporter->FinishAt(end_ns, summary));
  for (size_t i = known; i < summary.warnings.size(); ++i) {
    warnings_.push_back(fmt::format("{}: {}", part.name, summary.warnings[i]));
  }
  summary.warnings.resize(known);
  RETURN_IF_ERROR(part.file->Close());
  bytes_closed_ += part.counted->bytes();
  closed_.push_back({.name = part.name,
                     .bytes = part.counted->bytes(),
                     .begin_ns = part.header.begin_ns,
                     .end_ns = end_ns == UINT64_MAX ? written_until_ns_ : end_ns,
                     .workers = WorkersOf(part.header)});
  part.counted = nullptr;
  return absl::OkStatus();
}

absl::Status PftraceParts::WriteIndex() {
  std::string text = fmt::format(
      "{{\n  \"version\": 1,\n  \"capture_id\": \"{}\",\n  \"split\": \"{}\",\n  \"part_bytes\": "
      "\"{}\",\n  \"parts\": [",
      header_->capture->id.ToString(), options_.is_by_worker ? "worker" : "time",
      options_.part_bytes);
  const char* separator = "\n";
  for (const Entry& entry : closed_) {
    text += fmt::format(
        "{}    {{\"file\": \"{}\", \"bytes\": \"{}\", \"begin_ns\": \"{}\", \"end_ns\": \"{}\", "
        "\"workers\": [",
        std::exchange(separator, ",\n"), entry.name, entry.bytes, entry.begin_ns, entry.end_ns);
    for (size_t i = 0; i < entry.workers.size(); ++i) {
      text += (i == 0 ? "" : ", ") + JsonTextOf(entry.workers[i]);
    }
    text += "]}";
  }
  text += "\n  ]\n}\n";
  ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                   files_.Open("system_profile.parts.json"));
  RETURN_IF_ERROR(file->Write(text));
  bytes_closed_ += text.size();
  return file->Close();
}

absl::Status PftraceParts::Finish(ExportSummary& summary) {
  for (const std::unique_ptr<Part>& part : parts_) {
    RETURN_IF_ERROR(Close(*part, UINT64_MAX, summary));
  }
  parts_.clear();
  for (std::string& warning : warnings_) summary.warnings.push_back(std::move(warning));
  return WriteIndex();
}

uint64_t PftraceParts::bytes_written() const {
  uint64_t bytes = bytes_closed_;
  for (const std::unique_ptr<Part>& part : parts_) {
    if (part->counted != nullptr) bytes += part->counted->bytes();
  }
  return bytes;
}

}  // namespace neurontrace
