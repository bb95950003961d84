// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/framework_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/clean_text.h"
#include "base/sha256.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// A file that is no whole trace file is read as it is once it has not changed for so long.
constexpr uint64_t kIncompleteWaitNs = 10'000'000'000;
// An order that is older than this tells of a capture that began without this agent.
constexpr uint64_t kLateNs = 2'000'000'000;

constexpr char kDigestMark = '~';
constexpr size_t kDigestDigits = 16;

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The first 48 bits of a capture id are its time in milliseconds.
uint64_t StartOf(const CaptureId& capture_id) {
  uint64_t ms = 0;
  for (const char byte : capture_id.bytes().substr(0, 6)) {
    ms = ms << 8 | static_cast<unsigned char>(byte);
  }
  return ms * 1'000'000;
}

// As it is sent, since cursors bring it back so and it is compared with theirs. Of a name that
// cannot be sent as it is, a digest keeps it apart from others that look alike then. It stands as a
// folder, so that a mapping file is still known by its name; a name that is like one with a digest
// gets a digest, too, so that no file can take another's.
std::string StreamName(std::string name) {
  constexpr size_t kNameBytesMax = limits::kIdentityStringBytesMax;
  if (!name.starts_with(kDigestMark) && CleanText(name, kNameBytesMax) == name) return name;
  std::string digest = fmt::format("{}{:.{}}/", kDigestMark, Sha256HexOf(name), kDigestDigits);
  const std::string clean = CleanText(name, name.size());
  // The end of a long path tells more than its beginning.
  size_t begin = clean.size() - std::min(clean.size(), kNameBytesMax - digest.size());
  while (begin < clean.size() && Utf8SequenceBytes(std::string_view(clean).substr(begin)) == 0) {
    ++begin;
  }
  return digest.append(clean, begin);
}

}  // namespace

FrameworkCapture::FrameworkCapture(const CaptureId& capture_id, const Surroundings& surroundings,
                                   std::span<const StreamCursor> cursors, bool is_over)
    : capture_id_(capture_id),
      surroundings_(surroundings),
      cursors_(cursors.begin(), cursors.end()),
      is_over_(is_over),
      came_late_(!cursors.empty() ||
                 surroundings.clock.RealtimeNs() > StartOf(capture_id) + kLateNs),
      started_realtime_ns_(StartOf(capture_id)) {
  std::set<std::string> names;
  for (const std::string& path : surroundings_.files.files) {
    FileState state;
    LookAtFile(path, state);
    // Two files of one name in two folders are told apart by their paths.
    std::string name = BaseName(path);
    if (!names.insert(name).second) name = path;
    AddFile(path, std::move(name), state, true);
  }
  if (!surroundings_.files.directory.empty()) {
    before_ = ListTraceFiles(surroundings_.files.directory, directory_truncated_);
    if (came_late_) Look();
  }
}

void FrameworkCapture::Stop() {
  if (stopping_) return;
  Look();
  stopping_ = true;
  stopped_ns_ = surroundings_.clock.MonotonicNs();
}

bool FrameworkCapture::IsNews(const std::string& name, const FileState& state) const {
  const auto known = before_.find(name);
  if (known == before_.end() || known->second != state) return true;
  // Of a capture that began earlier only times tell what has come since.
  return came_late_ && state.modified_ns >= started_realtime_ns_;
}

void FrameworkCapture::AddFile(std::string path, std::string name, const FileState& state,
                               bool listed) {
  if (files_.size() >= limits::kFrameworkFilesPerCaptureMax) {
    too_many_ = true;
    return;
  }
  name = StreamName(std::move(name));
  if (is_over_ && std::none_of(cursors_.begin(), cursors_.end(),
                               [&](const auto& c) { return c.stream.name == name; })) {
    return;
  }
  File file;
  file.path = std::move(path);
  file.name = name;
  file.seen = state;
  file.listed = listed;
  file.changed_ns = surroundings_.clock.MonotonicNs();
  files_.emplace(std::move(name), std::move(file));
}

void FrameworkCapture::Look() {
  const std::string& directory = surroundings_.files.directory;
  if (directory.empty()) return;
  const auto now = ListTraceFiles(directory, directory_truncated_);
  for (const auto& [name, state] : now) {
    const auto known = files_.find(StreamName(name));
    if (known == files_.end()) {
      if (!stopping_ && IsNews(name, state)) AddFile(directory + "/" + name, name, state, false);
      continue;
    }
    File& file = known->second;
    if (file.listed) continue;
    file.settled = file.seen == state;
    if (file.settled) continue;
    file.seen = state;
    file.changed_ns = surroundings_.clock.MonotonicNs();
    if (file.stream != nullptr && file.stream->state() == TraceFileStream::State::kIncomplete) {
      file.stream.reset();  // It has grown: look through it again.
    }
  }
  for (auto& [name, file] : files_) {
    // One that is gone is opened all the same, to say so.
    if (!file.listed && !now.contains(file.path.substr(directory.size() + 1))) file.settled = true;
  }
}

bool FrameworkCapture::Step() {
  return std::any_of(files_.begin(), files_.end(),
                     [this](auto& item) { return StepFile(item.second); });
}

bool FrameworkCapture::StepFile(File& file) {
  if (file.stream == nullptr) {
    if (!file.listed && !file.settled) return false;
    file.stream = std::make_unique<TraceFileStream>(
        file.path, file.listed ? "" : surroundings_.files.directory);
    return true;
  }
  switch (file.stream->state()) {
    case TraceFileStream::State::kScanning:
    case TraceFileStream::State::kReading:
      file.stream->Step(surroundings_.shapes);
      return true;
    case TraceFileStream::State::kScanned:
      Begin(file);
      return true;
    case TraceFileStream::State::kIncomplete: {
      const uint64_t now = surroundings_.clock.MonotonicNs();
      const bool waited = now - file.changed_ns >= kIncompleteWaitNs ||
                          (stopping_ && now - stopped_ns_ >= kIncompleteWaitNs);
      if (!file.listed && !waited) return false;
      Begin(file);
      return true;
    }
    case TraceFileStream::State::kEnded:
    case TraceFileStream::State::kFailed:
      return false;
  }
  return false;
}

void FrameworkCapture::Begin(File& file) {
  StreamIdentity identity;
  identity.agent_id = surroundings_.files.agent_id;
  identity.worker.instance_id = surroundings_.files.instance_id;
  identity.worker.boot_id = surroundings_.files.boot_id;
  identity.worker.pid = PidOfDirectory(file.path);
  identity.kind = StreamKind::kFramework;
  identity.nc_idx = limits::kNoNcIdx;
  identity.name = file.name;
  const auto cursor = std::find_if(cursors_.begin(), cursors_.end(),
                                   [&](const auto& c) { return c.stream == identity; });
  if (cursor != cursors_.end() && cursor->ended) {
    file.stream->MarkStored();
    file.read_before = EventsRead(*cursor);
    return;
  }
  auto writer =
      std::make_unique<StreamWriter>(capture_id_, std::move(identity), surroundings_.clock,
                                     surroundings_.sink, surroundings_.metrics);
  uint64_t first_element = 0;
  if (cursor != cursors_.end()) {
    writer->Resume(*cursor);
    first_element = cursor->source_position;
  }
  file.stream->Read(std::move(writer), first_element);
}

void FrameworkCapture::Flush() {
  for (const auto& [name, file] : files_) {
    if (file.stream != nullptr) file.stream->Flush();
  }
}

bool FrameworkCapture::finished() const {
  return stopping_ && std::all_of(files_.begin(), files_.end(), [](const auto& item) {
           return item.second.stream != nullptr && item.second.stream->finished();
         });
}

CaptureWorkerStatus FrameworkCapture::status() const {
  CaptureWorkerStatus status;
  status.capture_id = capture_id_;
  status.worker.instance_id = surroundings_.files.instance_id;
  status.worker.boot_id = surroundings_.files.boot_id;
  status.framework = true;
  size_t failed = 0;
  size_t with_problem = 0;
  bool lost_unknown = false;
  bool given_up = false;
  std::string problem;
  for (const auto& [name, file] : files_) {
    if (file.stream == nullptr) continue;
    const bool has_failed = file.stream->state() == TraceFileStream::State::kFailed;
    failed += has_failed;
    // One that is being waited for has no problem yet.
    const bool counts = has_failed || file.stream->state() == TraceFileStream::State::kEnded;
    if (counts && !file.stream->problem().empty()) {
      ++with_problem;
      if (problem.empty()) problem = fmt::format("{}: {}", name, file.stream->problem());
    }
    status.streams += !has_failed && !file.stream->works();
    status.streams += file.stream->state() == TraceFileStream::State::kReading;
    const StreamWriter::Counts counts_of_file = file.stream->counts();
    status.events_read += counts_of_file.read + file.read_before;
    status.events_stored += counts_of_file.stored + file.read_before;
    status.events_lost += counts_of_file.lost;
    lost_unknown = lost_unknown || counts_of_file.lost_unknown;
    given_up = given_up || counts_of_file.given_up;
  }
  if (with_problem > 0) {
    status.detail =
        fmt::format("{} of {} files are not whole{}, such as {}", with_problem, files_.size(),
                    lost_unknown ? ", part of them is lost" : "", problem);
  }
  if (too_many_ || directory_truncated_) status.detail += "; there are more files than are read";
  if (status.detail.size() > limits::kDetailBytesMax) {
    status.detail.resize(limits::kDetailBytesMax);
  }
  status.state = stopping_ ? CaptureWorkerState::kStopping : CaptureWorkerState::kRecording;
  if (finished()) {
    status.state =
        failed == files_.size() ? CaptureWorkerState::kRefused : CaptureWorkerState::kComplete;
    if (given_up) {
      status.state = CaptureWorkerState::kLost;
      status.detail = "a file's stream was given up on the way; its agent's log says why";
    }
  }
  return status;
}

}  // namespace neurontrace
