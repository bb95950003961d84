// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file_stream.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "agent/source/framework/trace_file_reader.h"
#include "agent/source/framework/trace_file_scan.h"
#include "agent/source/framework/xspace_file.h"
#include "lib/base/status.h"
#include "lib/trace/framework_mapping.h"

// How it works: kScanning probes the first bytes, scans the content for its facts and its mark, and
// looks for the session's base. Read starts the second reading of the same open file, which writes
// event by event and then drains the file. If the file's state changes, its content is compared
// with the mark: reading continues if it is the same, and the stream ends with a loss otherwise.
namespace neurontrace {
namespace {

// Bounds of one step, in bytes or parts, whichever comes first. They keep a step within a few
// milliseconds.
constexpr uint64_t kStepBytes = 512u << 10;
constexpr int kReadStepPieces = 512;  // events, or what takes their place
// Bytes of one read, and reads of one step, while content is compared.
constexpr size_t kCheckBytes = 64u << 10;
constexpr int kCheckStepReads = 32;
// A file that changes more often than this while it is read is not compared again.
constexpr uint32_t kChecksMax = 4;

// The two readings for each kind of file.
std::unique_ptr<FactsReader> MakeScan(TraceFile file, ContentKind kind) {
  if (kind == ContentKind::kXSpace) return std::make_unique<XSpaceFileScan>(std::move(file));
  return std::make_unique<TraceFileScan>(std::move(file), kind);
}
// The reader must cut the file into the same elements as the scan that made the facts. `pid` is the
// process that wrote the file, if its folder names it, else 0.
std::unique_ptr<EventReader> MakeReader(TraceFile file, const TraceFileFacts& facts,
                                        uint64_t first_element, uint32_t pid) {
  if (facts.kind == ContentKind::kXSpace) {
    return std::make_unique<XSpaceFileReader>(std::move(file), facts, first_element, pid);
  }
  return std::make_unique<TraceFileReader>(std::move(file), facts, first_element);
}

}  // namespace

TraceFileStream::TraceFileStream(std::string path, Options options)
    : path_(std::move(path)), options_(std::move(options)) {
  auto file = TraceFile::Open(path_, options_.root);
  if (!file.ok()) {
    // Changed while it was opened: to be tried again, which a failure is not.
    absl::IsAborted(file.status()) ? void(state_ = State::kChanged) : Fail(file.status());
    return;
  }
  file_.emplace(*std::move(file));
  opened_state_ = file_->state();
}

TraceFileStream::~TraceFileStream() = default;

void TraceFileStream::Fail(const absl::Status& status) {
  state_ = State::kFailed;
  problem_ = std::string(status.message());
  scan_.reset();
  file_.reset();
}

void TraceFileStream::Read(std::unique_ptr<StreamWriter> writer, uint64_t first_element,
                           bool is_continuation) {
  writer_ = std::move(writer);
  // The content's mark goes with the cursor, so that the next run of the agent knows which content
  // the position refers to.
  writer_->SetSequenceMark(first_element, facts_.content_mark);
  reported_before_ = is_continuation ? first_element : 0;
  position_ = first_element;
  if (facts_.has_own_time) {
    writer_->SetRemark(RemarkKind::kUnknownOrigin, 1,
                       {facts_.base_description.empty() ? writer_->stream().name
                                                        : InFile(facts_.base_description)});
  }
  if (facts_.rank) {
    writer_->SetRankEvidence(
        {{RankSource::kFrameworkFile, *facts_.rank, facts_.world_size.value_or(0),
          "distributedInfo.rank of " + writer_->stream().name}});
  }
  if (!facts_.rank_problem.empty()) {
    writer_->SetRemark(RemarkKind::kRankUnreadable, 1, {InFile(facts_.rank_problem)});
  }
  state_ = State::kReading;
  OpenReader();
}

void TraceFileStream::OpenReader() {
  auto file = file_->Reread();
  if (absl::IsAborted(file.status())) return BeginCheck();
  if (!file.ok()) return EndChanged(std::string(file.status().message()));
  reader_ = MakeReader(*std::move(file), facts_, position_, writer_->stream().worker.pid);
}

void TraceFileStream::MarkStored() {
  state_ = State::kEnded;
  position_ = facts_.elements;
  file_.reset();
}

void TraceFileStream::Step(ShapeCache& shapes) {
  if (state_ == State::kScanning) {
    StepScan();
  } else if (state_ == State::kReading) {
    if (check_) {
      StepCheck();
    } else if (draining_) {
      StepDrain();
    } else {
      StepRead(shapes);
    }
  }
}

void TraceFileStream::StepScan() {
  absl::Status status;
  // The scan is done, and the XSpace beside the file is being read.
  if (base_ != nullptr) {
    if (base_->Step()) EndScan();
    return;
  }
  if (scan_ == nullptr) {
    status = Probe();
    if (status.ok()) return;
  } else {
    const absl::StatusOr<bool> done = scan_->Step(kStepBytes);
    if (done.ok() && !*done) return;
    status = done.status();
  }
  if (absl::IsAborted(status)) {
    state_ = State::kChanged;
    scan_.reset();
    file_.reset();
    return;
  }
  if (!status.ok()) return Fail(status);
  facts_ = scan_->facts();
  scan_.reset();
  // Times without a base: perhaps the session's XSpace beside the file has it.
  if (facts_.has_own_time && facts_.kind == ContentKind::kTraceEventJson) {
    base_ = SessionBase::Find(path_, options_.root);
    if (base_ != nullptr) return;
  }
  EndScan();
}

void TraceFileStream::EndScan() {
  if (base_ != nullptr) base_->Apply(facts_);
  base_.reset();
  problem_ = facts_.problem;
  state_ = facts_.complete ? State::kScanned : State::kIncomplete;
}

// Decides by the name and the first bytes which kind of file it is.
absl::Status TraceFileStream::Probe() {
  ASSIGN_OR_RETURN(TraceFile file, file_->Reread());
  std::string bytes(kContentProbeBytes, '\0');
  size_t size = 0;
  // Empty gzip members give nothing, so many of them in a row are taken for no trace.
  for (int i = 0; size < bytes.size() && i < kCheckStepReads; ++i) {
    const auto n = file.Read(&bytes[size], bytes.size() - size);
    if (absl::IsAborted(n.status())) return n.status();
    if (!n.ok() || *n == 0) break;
    size += n->value_or(0);
  }
  bytes.resize(size);
  ContentKind kind = DetectContent(bytes);
  if (IsFrameworkMappingName(path_)) {
    kind = ContentKind::kMapping;
  } else if (kind != ContentKind::kTraceEventJson && kind != ContentKind::kXSpace) {
    if (!options_.must_be_trace) {
      state_ = State::kNoTrace;
      problem_ = kind == ContentKind::kMapping
                     ? "mapping entries; a mapping file must be named framework_mapping_*.json"
                     : DescribeContent(bytes);
      file_.reset();
      return absl::OkStatus();
    }
    kind = ContentKind::kTraceEventJson;
  }
  BeginScan(kind);
  return absl::OkStatus();
}

void TraceFileStream::BeginScan(ContentKind kind) {
  auto file = file_->Reread();
  if (!file.ok()) {
    absl::IsAborted(file.status()) ? void(state_ = State::kChanged) : Fail(file.status());
    return;
  }
  file->WatchPrefix(options_.prefix_bytes, options_.prefix_mark);
  scan_ = MakeScan(*std::move(file), kind);
}

void TraceFileStream::StepRead(ShapeCache& shapes) {
  // The loop ends when the step is used up, or returns when the reading changes its state.
  const uint64_t end = reader_->bytes_read() + kStepBytes;
  for (int i = 0; i < kReadStepPieces && reader_->bytes_read() < end; ++i) {
    const EventReader::Kind kind = reader_->Next();
    position_ = reader_->position();
    for (const EventReader::Anomaly& anomaly : reader_->anomalies()) {
      // An earlier stream of the same content has reported these.
      if (position_ <= reported_before_) break;
      writer_->AddRemark(position_ - 1, anomaly.kind, InFile(anomaly.detail));
    }
    switch (kind) {
      case EventReader::Kind::kEvent: {
        const FrameworkEvent& event = reader_->event();
        const Shape& shape = event.shape;
        writer_->Append(
            position_ - 1,
            shapes.Find({shape.event_type, shape.phase, shape.present, shape.quoted, shape.keys}),
            event.fields, event.values);
        break;
      }
      case EventReader::Kind::kLoss:
        TakeLoss();
        break;
      case EventReader::Kind::kDamage:
        if (position_ < reported_before_) break;
        AddDamage(position_, reader_->damage());
        break;
      case EventReader::Kind::kPassedOver:
        break;
      case EventReader::Kind::kNotYet:
        // Tick also after a step without progress, so that open chunks do not wait for a slow file.
        return writer_->Tick(position_);
      case EventReader::Kind::kChanged:
        return BeginCheck();
      case EventReader::Kind::kEnd:
        RemarkOpenSpans();
        // Nothing was read of what was refused.
        draining_ = !facts_.is_refused;
        if (!draining_) End();
        return;
    }
  }
  writer_->Tick(position_);
}

void TraceFileStream::RemarkOpenSpans() {
  Remark open = reader_->open_spans();
  for (std::string& detail : open.details) detail = InFile(detail);
  writer_->SetRemark(open.kind, open.count, std::move(open.details));
}

void TraceFileStream::TakeLoss() {
  const Loss& loss = reader_->loss();
  // The rest of a file is lost behind its last element.
  const uint64_t at = loss.events_unknown ? position_ : position_ - 1;
  if (at < reported_before_) return;
  // What has no time is an oddity.
  const bool is_damage = loss.reason != LossReason::kNoTime;
  if (is_damage) AddDamage(at, loss.detail);
  writer_->AddLoss(at, loss);
}

void TraceFileStream::AddDamage(uint64_t at, const std::string& what) {
  if (problem_.empty()) problem_ = what;
  writer_->AddRemark(at, RemarkKind::kDamagedElement, InFile(what));
}

// Reads to the end of the file, which shows whether both readings were of the same content.
void TraceFileStream::StepDrain() {
  const absl::StatusOr<bool> done = reader_->Drain();
  if (absl::IsAborted(done.status())) return BeginCheck();
  if (done.ok() && !*done) return;
  if (reader_->content_mark() != facts_.content_mark) {
    return EndChanged("it changed while it was read, and events of two versions may be mixed");
  }
  if (facts_.bytes_behind > 0) {
    AddDamage(position_,
              fmt::format("{} bytes after the end of the trace are not read", facts_.bytes_behind));
  }
  End();
}

// The change may be one of the name or owner, or an append, which leave the content as it was.
void TraceFileStream::BeginCheck() {
  // A file that is still being written could be compared again and again.
  if (checks_++ == kChecksMax) return EndChanged("it keeps changing while it is read");
  auto file = file_->Reread(true);
  if (!file.ok()) return EndChanged(std::string(file.status().message()));
  check_.emplace(*std::move(file));
}

void TraceFileStream::StepCheck() {
  std::array<char, kCheckBytes> bytes;
  for (int i = 0; i < kCheckStepReads; ++i) {
    const auto n = check_->Read(bytes.data(), bytes.size());
    if (n.ok() && *n != 0) continue;
    if (absl::IsAborted(n.status())) return BeginCheck();
    // The size and the digest of all bytes up to the end that the first reading saw.
    const bool is_same = check_->bytes_read() == facts_.content_bytes &&
                         check_->ContentMark() == facts_.content_mark;
    if (!is_same) return EndChanged("its content changed while it was read");
    // The content is unchanged: all open readings expect the file's new state from here on.
    file_->AcceptState(check_->state());
    if (reader_ != nullptr) reader_->AcceptState(check_->state());
    check_.reset();
    if (reader_ == nullptr) OpenReader();
    return;
  }
}

void TraceFileStream::EndChanged(const std::string& what) {
  has_changed_ = true;
  problem_ = what;
  const std::string detail = fmt::format("after {} elements: {}", position_, what);
  writer_->AddRemark(position_, RemarkKind::kFileChanged, InFile(detail));
  writer_->AddLoss(position_, {.place = LossPlace::kDecode,
                               .reason = LossReason::kUnknown,
                               .events_unknown = true,
                               .detail = detail});
  check_.reset();
  End();
}

void TraceFileStream::End() {
  // Behind the last element, so that a loss at its position is included.
  writer_->End(position_ + 1);
  reader_.reset();
  file_.reset();
  state_ = State::kEnded;
}

std::string TraceFileStream::InFile(const std::string& what) const {
  return fmt::format("{}: {}", writer_->stream().name, what);
}

void TraceFileStream::Flush() {
  if (state_ == State::kReading) writer_->Flush(position_);
}

bool TraceFileStream::finished() const {
  return state_ == State::kFailed || state_ == State::kNoTrace || state_ == State::kChanged ||
         (state_ == State::kEnded && (writer_ == nullptr || writer_->finished()));
}

StreamWriter::Counts TraceFileStream::counts() const {
  return writer_ == nullptr ? StreamWriter::Counts{} : writer_->counts();
}

}  // namespace neurontrace
