// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file_stream.h"

#include <fmt/format.h>

#include <utility>

#include "trace/remark.h"

namespace neurontrace {
namespace {

constexpr uint64_t kStepBytes = 512u << 10;
constexpr int kReadStepPieces = 512;  // events, or what stands in their place

}  // namespace

TraceFileStream::TraceFileStream(std::string path, std::string root)
    : path_(std::move(path)), root_(std::move(root)) {
  auto scan = TraceFileScan::Open(path_, root_);
  if (scan.ok()) {
    scan_.emplace(*std::move(scan));
  } else {
    Fail(scan.status());
  }
}

void TraceFileStream::Fail(const absl::Status& status) {
  state_ = State::kFailed;
  problem_ = std::string(status.message());
}

void TraceFileStream::Read(std::unique_ptr<StreamWriter> writer, uint64_t first_element) {
  writer_ = std::move(writer);
  if (facts_.rank) {
    writer_->SetRankEvidence(
        {{RankSource::kFrameworkFile, *facts_.rank, facts_.world_size.value_or(0),
          "distributedInfo.rank of " + writer_->stream().name}});
  }
  if (!facts_.rank_problem.empty()) {
    writer_->SetRemark(RemarkKind::kRankUnreadable, 1,
                       {fmt::format("{}: {}", writer_->stream().name, facts_.rank_problem)});
  }
  auto reader = TraceFileReader::Open(path_, facts_, first_element, root_);
  if (!reader.ok()) {
    // It was there a moment ago. What it held is lost; its stream says so.
    writer_->AddLoss(first_element, {.place = LossPlace::kDecode,
                                     .reason = LossReason::kUnknown,
                                     .events_unknown = true,
                                     .detail = std::string(reader.status().message())});
    writer_->End(first_element + 1);
    state_ = State::kEnded;
    problem_ = std::string(reader.status().message());
    return;
  }
  reader_.emplace(*std::move(reader));
  state_ = State::kReading;
}

void TraceFileStream::MarkStored() { state_ = State::kEnded; }

void TraceFileStream::Step(ShapeCache& shapes) {
  if (state_ == State::kScanning) {
    StepScan();
  } else if (state_ == State::kReading) {
    StepRead(shapes);
  }
}

void TraceFileStream::StepScan() {
  if (!scan_->Step(kStepBytes)) return;
  facts_ = scan_->facts();
  problem_ = facts_.problem;
  state_ = facts_.complete ? State::kScanned : State::kIncomplete;
  scan_.reset();
}

void TraceFileStream::StepRead(ShapeCache& shapes) {
  const uint64_t end = reader_->bytes_read() + kStepBytes;
  for (int i = 0; i < kReadStepPieces && reader_->bytes_read() < end; ++i) {
    const TraceFileReader::Kind kind = reader_->Next();
    for (const TraceFileReader::Oddity& oddity : reader_->oddities()) {
      writer_->AddRemark(reader_->position() - 1, oddity.kind,
                         fmt::format("{}: {}", writer_->stream().name, oddity.detail));
    }
    switch (kind) {
      case TraceFileReader::Kind::kEvent: {
        const FrameworkEvent& event = reader_->event();
        const Shape& shape = event.shape;
        writer_->Append(
            reader_->position() - 1,
            shapes.Find({shape.event_type, shape.phase, shape.present, shape.quoted, shape.keys}),
            event.fields, event.values);
        break;
      }
      case TraceFileReader::Kind::kLoss: {
        // The rest of a file is lost behind its last element.
        const uint64_t at = reader_->loss().events_unknown ? 0 : 1;
        writer_->AddLoss(reader_->position() - at, reader_->loss());
        break;
      }
      case TraceFileReader::Kind::kPassedOver:
        break;
      case TraceFileReader::Kind::kNotYet:
        return writer_->Tick(reader_->position());
      case TraceFileReader::Kind::kEnd:
        RemarkOpenSpans();
        writer_->End(reader_->position() + 1);
        reader_.reset();
        state_ = State::kEnded;
        return;
    }
  }
  writer_->Tick(reader_->position());
}

void TraceFileStream::RemarkOpenSpans() {
  const SpanJoiner& spans = reader_->spans();
  SpanJoiner::Unended open = spans.unended();
  for (std::string& detail : open.first) {
    detail = fmt::format("{}: {}", writer_->stream().name, detail);
  }
  if (spans.given_up() > 0) {
    open.first.insert(open.first.begin(),
                      fmt::format("{}: the ends of {} were not looked for any more, as too many "
                                  "were open at once",
                                  writer_->stream().name, spans.given_up()));
  }
  writer_->SetRemark(RemarkKind::kOpenSpan, open.count, std::move(open.first));
}

void TraceFileStream::Flush() {
  if (state_ == State::kReading) writer_->Flush(reader_->position());
}

bool TraceFileStream::finished() const {
  return state_ == State::kFailed ||
         (state_ == State::kEnded && (writer_ == nullptr || writer_->finished()));
}

StreamWriter::Counts TraceFileStream::counts() const {
  return writer_ == nullptr ? StreamWriter::Counts{} : writer_->counts();
}

}  // namespace neurontrace
