// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xspace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "agent/source/framework/session_files.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// Bytes of one read and reads of one step, for the content mark.
constexpr size_t kDrainBytes = 64u << 10;
constexpr int kDrainReads = 8;

// `file` outlives it. Random access, as planes are walked through twice; a gzip stream does not
// offer that. Returns the file as the input of a wire reader.
XSpaceInput InputOf(const TraceFile& file) {
  return {.read = [&file](uint64_t offset, char* out,
                          size_t size) { return file.ReadAt(offset, out, size); },
          .size = file.state().bytes};
}

// Reads some more of the file; returns true at its end.
absl::StatusOr<bool> DrainFile(TraceFile& file) {
  std::array<char, kDrainBytes> bytes;
  for (int i = 0; i < kDrainReads; ++i) {
    const auto n = file.Read(bytes.data(), bytes.size());
    if (!n.ok()) return n.status();
    if (*n == 0) return true;
  }
  return false;
}

}  // namespace

XSpaceFileScan::XSpaceFileScan(TraceFile file)
    : file_(std::make_unique<TraceFile>(std::move(file))), scan_(InputOf(*file_)) {
  facts_.kind = ContentKind::kXSpace;
  if (file_->is_gzip()) {
    facts_.complete = facts_.is_refused = true;
    facts_.problem = "the XSpace is compressed with gzip; decompress it";
    scan_.reset();
  }
}

absl::StatusOr<bool> XSpaceFileScan::Step(uint64_t /*bytes*/) {
  // The facts first, then every byte for the content mark, which ReadAt does not compute.
  if (scan_) {
    if (!scan_->Step()) return false;
    if (absl::IsAborted(scan_->status())) return scan_->status();
    facts_.xspace = scan_->facts();
    facts_.complete = facts_.xspace->complete;
    facts_.problem = facts_.xspace->problem;
    facts_.has_own_time = facts_.xspace->has_own_time();
    facts_.base_time_ns = facts_.xspace->start_ns.value_or(0);
    facts_.first_time_ns = facts_.xspace->first_time_ns();
    scan_.reset();
  }
  const absl::StatusOr<bool> drained = DrainFile(*file_);
  if (absl::IsAborted(drained.status())) return drained.status();
  if (drained.ok() && !*drained) return false;
  // The scan counts no events; only whether there are any matters.
  facts_.elements = facts_.xspace && facts_.xspace->first_line_ns ? 1 : 0;
  facts_.content_bytes = file_->bytes_read();
  facts_.content_mark = file_->ContentMark();
  return true;
}

XSpaceFileReader::XSpaceFileReader(TraceFile file, const TraceFileFacts& facts,
                                   uint64_t first_element, uint32_t pid)
    : file_(std::make_unique<TraceFile>(std::move(file))),
      refusal_(facts.is_refused ? facts.problem : ""),
      reader_(InputOf(*file_), facts.xspace.value_or(XSpaceFacts()), first_element,
              XSpaceThreads(pid)) {}

EventReader::Kind XSpaceFileReader::Next() {
  if (!refusal_.empty()) {
    if (refused_) return Kind::kEnd;
    refused_ = Loss{.place = LossPlace::kDecode,
                    .reason = LossReason::kMalformed,
                    .events_unknown = true,
                    .detail = refusal_};
    return Kind::kLoss;
  }
  // The kinds of an XSpace are a subset of those of EventReader.
  switch (reader_.Next()) {
    case XSpaceReader::Kind::kEvent:
      return Kind::kEvent;
    case XSpaceReader::Kind::kLoss:
      return Kind::kLoss;
    case XSpaceReader::Kind::kNotYet:
      return Kind::kNotYet;
    case XSpaceReader::Kind::kChanged:
      return Kind::kChanged;
    case XSpaceReader::Kind::kEnd:
      break;
  }
  return Kind::kEnd;
}

absl::StatusOr<bool> XSpaceFileReader::Drain() { return DrainFile(*file_); }

std::unique_ptr<SessionBase> SessionBase::Find(const std::string& path, const std::string& root) {
  std::optional<std::string> beside = XSpaceOfTrace(path);
  if (!beside && IsPerfettoTraceName(path)) beside = OnlyXSpaceIn(std::string(FolderOf(path)));
  if (!beside) return nullptr;
  auto file = TraceFile::Open(*beside, root);
  // A session without a readable XSpace keeps times of its own.
  if (!file.ok() || file->is_gzip()) return nullptr;
  std::string name = beside->substr(FolderOf(*beside).size());
  return std::unique_ptr<SessionBase>(new SessionBase(std::move(name), *std::move(file)));
}

SessionBase::SessionBase(std::string name, TraceFile file)
    : name_(std::move(name)),
      file_(std::make_unique<TraceFile>(std::move(file))),
      scan_(InputOf(*file_)) {}

void SessionBase::Apply(TraceFileFacts& facts) const {
  const XSpaceFacts& beside = scan_.facts();
  // Times stay as they are, and the text says why.
  if (!beside.start_ns) {
    facts.base_description =
        fmt::format("{} beside it does not have the start time of the session", name_);
    return;
  }
  // Times of a hostile file may be anything.
  if (__builtin_add_overflow(facts.first_time_ns, *beside.start_ns, &facts.first_time_ns)) {
    facts.first_time_ns = *beside.start_ns;
  }
  for (uint64_t* bound_ns : {&facts.time_bounds.first_ns, &facts.time_bounds.last_ns}) {
    *bound_ns = std::min(TimeBounds::kLastNs, AddSaturating(*bound_ns, *beside.start_ns));
  }
  facts.base_time_ns = *beside.start_ns;
  facts.has_own_time = false;
  facts.base_description =
      fmt::format("its times count from the start of the session in {}", name_);
}

}  // namespace neurontrace
