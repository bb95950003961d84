// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/framework_capture.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include "agent/source/framework/session_files.h"
#include "lib/base/clean_text.h"
#include "lib/base/sha256.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/framework_mapping.h"
#include "lib/trace/limits.h"

// A file takes these steps: Look notices it, two looks find it unchanged, Open scans it, Begin
// finds or makes its stream, and HandleEnded keeps the stream until its chunks are stored. A change
// of the file starts them again, with a further stream for the new content.
namespace neurontrace {
namespace {

// Folders below the watched directory that are looked into.
constexpr int kDepthMax = 4;

// Adds one entry of the directory to the listing. What disappears meanwhile is left out.
void AddEntry(const std::filesystem::directory_entry& entry, const std::string& directory,
              DirectoryListing& listing) {
  std::error_code error;
  if (!entry.is_symlink(error) && entry.is_directory(error)) return;
  std::string path = entry.path().lexically_relative(directory).string();
  struct stat status {};
  if (!CanBeTraceFileName(entry.path().filename().string())) {
    if (listing.others++ == 0 || path < listing.other) listing.other = std::move(path);
    return;
  }
  if (lstat(entry.path().c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return;
  listing.files.emplace(std::move(path), StateOf(status));
  if (listing.files.size() > limits::kFrameworkDirectoryFilesMax) {
    // The last in the order of paths: which files are kept must not depend on the order in which
    // the file system lists them.
    listing.files.erase(std::prev(listing.files.end()));
    ++listing.files_beyond;
  }
}

// A file that does not end as a trace should is read anyway once it has not changed for this long.
constexpr uint64_t kIncompleteWaitNs = 10'000'000'000;
// A file that changed while it was looked through is opened again after this time.
constexpr uint64_t kReopenNs = 1'000'000'000;
// An order this much older than the capture's own time belongs to a capture that began without this
// agent.
constexpr uint64_t kLateNs = 2'000'000'000;

constexpr char kDigestMark = '~';
constexpr size_t kDigestDigits = 16;
// Room for the prefix that VersionName adds.
constexpr size_t kVersionBytesMax = 8;

// Returns the path without its folders.
std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The first 48 bits of a capture id are its time in milliseconds.
uint64_t StartOf(const CaptureId& capture_id) {
  uint64_t ms = 0;
  for (const char byte : capture_id.bytes().substr(0, 6)) {
    ms = ms << 8 | static_cast<unsigned char>(byte);
  }
  return ms * 1'000'000;
}

// Returns the name as it is sent, since cursors return it in that form and are compared with it. A
// name that cannot be sent unchanged gets a digest, which keeps it apart from others that look
// alike after cleaning. The digest takes the form of a folder, so that a mapping file is still
// recognised by its name; a name that already looks like one with a digest gets one too, so that no
// file can take another's name.
std::string StreamName(std::string name) {
  constexpr size_t kNameBytesMax = limits::kIdentityStringBytesMax - kVersionBytesMax;
  if (!name.starts_with(kDigestMark) && CleanText(name, kNameBytesMax) == name) return name;
  std::string digest = fmt::format("{}{:.{}}/", kDigestMark, Sha256HexOf(name), kDigestDigits);
  const std::string clean = CleanText(name, std::numeric_limits<size_t>::max());
  // Keeps the end of a long path, which identifies the file better than its beginning.
  size_t begin = clean.size() - std::min(clean.size(), kNameBytesMax - digest.size());
  while (begin < clean.size() && Utf8SequenceBytes(std::string_view(clean).substr(begin)) == 0) {
    ++begin;
  }
  return digest.append(clean, begin);
}

// The name of a file's second, third, ... content.
std::string VersionName(const std::string& name, uint32_t version) {
  return version == 1 ? name : fmt::format("{}{}/{}", kDigestMark, version, name);
}

// Compares what concerns the content; links, owner and mode may differ.
bool SameFile(const FileState& a, const FileState& b) {
  return a.bytes == b.bytes && a.modified_ns == b.modified_ns && a.device == b.device &&
         a.inode == b.inode;
}

}  // namespace

bool IsTraceFileName(std::string_view name) {
  if (IsFrameworkMappingName(name)) return true;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name == "trace.json" || name.ends_with(".trace.json");
}

bool CanBeTraceFileName(std::string_view name) {
  return name.ends_with(".json") || name.ends_with(".json.gz") || name.ends_with(".pb");
}

uint32_t PidOfDirectory(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return 0;
  std::string_view folder = path.substr(0, slash);
  folder.remove_prefix(folder.rfind('/') + 1);
  constexpr std::string_view kMark = "_pid_";
  const size_t mark = folder.rfind(kMark);
  if (mark == std::string_view::npos) return 0;
  const std::string_view digits = folder.substr(mark + kMark.size());
  uint32_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  // 0 is no process, and is what streams without a pid have.
  return error == std::errc() && end == digits.data() + digits.size() ? pid : 0;
}

bool InspectFile(const std::string& path, FileState& state) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  state = StateOf(status);
  return true;
}

DirectoryListing ListTraceFiles(const std::string& directory) {
  DirectoryListing listing;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(
      directory, std::filesystem::directory_options::skip_permission_denied, error);
  uint32_t entries = 0;
  for (const std::filesystem::recursive_directory_iterator end; !error && it != end;
       it.increment(error)) {
    // A directory with millions of files must not hold up the sequence.
    if (++entries > limits::kFrameworkDirectoryEntriesMax) {
      listing.is_truncated = true;
      break;
    }
    std::error_code ignored;
    if (it.depth() >= kDepthMax && it->is_directory(ignored) && !it->is_symlink(ignored)) {
      it.disable_recursion_pending();
      if (listing.too_deep++ == 0) {
        listing.deep_folder = it->path().lexically_relative(directory).string();
      }
    } else {
      AddEntry(*it, directory, listing);
    }
  }
  listing.is_whole = !error && !listing.is_truncated && listing.files_beyond == 0;
  return listing;
}

FrameworkCapture::FrameworkCapture(const CaptureId& capture_id,
                                   const CaptureEnvironment& capture_environment,
                                   std::span<const StreamCursor> cursors, bool is_over,
                                   std::unique_ptr<OnDemandCapture> on_demand)
    : capture_id_(capture_id),
      capture_environment_(capture_environment),
      on_demand_(std::move(on_demand)),
      cursors_(cursors.begin(), cursors.end()),
      is_over_(is_over),
      came_late_(!cursors.empty() ||
                 capture_environment.clock.RealtimeNs() > StartOf(capture_id) + kLateNs),
      started_realtime_ns_(StartOf(capture_id)) {
  for (const StreamCursor& cursor : cursors_) {
    if (cursor.sequence_mark != 0) contents_.emplace(cursor.sequence_mark, cursor.stream.name);
  }
  // Files of the command line first: they belong to every capture.
  std::set<std::string> names;
  for (const std::string& path : capture_environment_.files.files) {
    FileState state;
    InspectFile(path, state);
    // Two files with the same name in different folders are distinguished by their paths.
    std::string name = BaseName(path);
    if (!names.insert(name).second) name = path;
    AddFile(path, std::move(name), state, true);
  }
  if (!capture_environment_.files.directory.empty()) {
    before_ = ListTraceFiles(capture_environment_.files.directory).files;
    // A capture that began earlier: files that came since are recognised by their times now, before
    // they change again.
    if (came_late_) Poll();
  }
}

void FrameworkCapture::Stop() {
  if (stopping_) return;
  Poll();
  if (on_demand_ != nullptr) on_demand_->Stop();
  stopping_ = true;
  stopped_ns_ = capture_environment_.clock.MonotonicNs();
}

bool FrameworkCapture::TakesFile(const std::string& name) const {
  return !stopping_ || (on_demand_ != nullptr && on_demand_->IsFileOf(name));
}

bool FrameworkCapture::IsNews(const std::string& name, const FileState& state) const {
  // A file that was there and has not changed since is not part of the capture.
  const auto known = before_.find(name);
  if (known == before_.end() || !SameFile(known->second, state)) return true;
  // For a capture that began earlier, only times show what has come since.
  return came_late_ && state.modified_ns >= started_realtime_ns_;
}

void FrameworkCapture::AddFile(std::string path, std::string name, const FileState& state,
                               bool listed) {
  File file;
  file.name = StreamName(std::move(name));
  if (is_over_ && FindCursor(IdentityOf(file, 1)) == nullptr) return;
  // Decides whether a file that is no trace is an error or is skipped.
  file.must_be_trace = listed || IsTraceFileName(BaseName(path));
  file.path = std::move(path);
  file.seen = state;
  file.listed = listed;
  file.changed_ns = capture_environment_.clock.MonotonicNs();
  if (on_demand_ != nullptr) on_demand_->OnFile(file.path);
  std::string key = file.name;
  files_.emplace(std::move(key), std::move(file));
}

void FrameworkCapture::Poll() {
  if (on_demand_ != nullptr) on_demand_->Poll();
  const std::string& directory = capture_environment_.files.directory;
  if (directory.empty()) return;
  listing_ = ListTraceFiles(directory);
  const auto now = std::exchange(listing_.files, {});
  for (const auto& [name, state] : now) {
    const auto known = files_.find(StreamName(name));
    if (known != files_.end()) {
      if (!known->second.listed) Observe(known->second, state);
    } else if (TakesFile(name) && IsNews(name, state)) {
      AddFile(directory + "/" + name, name, state, false);
    }
  }
  for (auto& [name, file] : files_) {
    // One that is gone is opened all the same, to say so.
    if (!file.listed && listing_.is_whole &&
        !now.contains(file.path.substr(directory.size() + 1))) {
      file.settled = true;
    }
  }
}

void FrameworkCapture::Observe(File& file, const FileState& state) {
  file.settled = file.seen == state;
  if (!file.settled) {
    file.seen = state;
    file.changed_ns = capture_environment_.clock.MonotonicNs();
    file.incomplete = false;
  }
  // What comes after the end of the capture is no part of it.
  if (file.fate == Fate::kWaiting || stopping_ || state == file.opened) return;
  if (file.openings > limits::kFrameworkOpeningsPerFileMax) return;
  file.incomplete = false;
  file.fate = Fate::kWaiting;
}

bool FrameworkCapture::Step() {
  return std::any_of(files_.begin(), files_.end(),
                     [this](auto& item) { return StepFile(item.second); });
}

bool FrameworkCapture::StepFile(File& file) {
  if (file.current == nullptr) {
    if (file.fate != Fate::kWaiting || !CanOpen(file)) return false;
    Open(file);
    return true;
  }
  switch (file.current->state()) {
    case TraceFileStream::State::kScanning:
    case TraceFileStream::State::kReading:
      file.current->Step(capture_environment_.shapes);
      break;
    case TraceFileStream::State::kScanned:
      switch (SessionPartOf(file)) {
        case SessionPart::kWaiting:
          return false;
        case SessionPart::kTwice:
          GiveUp(file, Fate::kRead, "");
          break;
        case SessionPart::kOwn:
          Begin(file);
          break;
      }
      break;
    case TraceFileStream::State::kIncomplete:
      if (file.listed || WasWaitedFor(file)) {
        Begin(file);
      } else {
        // Opened again when it changes, or when it has been waited for.
        file.incomplete = true;
        file.current.reset();
      }
      break;
    case TraceFileStream::State::kNoTrace:
      GiveUp(file, Fate::kNoTrace, file.current->problem());
      break;
    case TraceFileStream::State::kFailed:
      GiveUp(file, Fate::kFailed, file.current->problem());
      break;
    case TraceFileStream::State::kChanged:
      Reopen(file);
      break;
    case TraceFileStream::State::kEnded:
      HandleEnded(file);
      break;
  }
  return true;
}

bool FrameworkCapture::CanOpen(const File& file) const {
  if (capture_environment_.clock.MonotonicNs() < file.not_before_ns) return false;
  if (file.listed || WasWaitedFor(file)) return true;
  return file.settled && !file.incomplete;
}

bool FrameworkCapture::WasWaitedFor(const File& file) const {
  const uint64_t now = capture_environment_.clock.MonotonicNs();
  return now - file.changed_ns >= kIncompleteWaitNs ||
         (stopping_ && now - stopped_ns_ >= kIncompleteWaitNs);
}

void FrameworkCapture::Open(File& file) {
  if (streams_begun_ >= limits::kFrameworkFilesPerCaptureMax && file.streams.empty() &&
      file.must_be_trace) {
    file.opened = file.seen;
    return GiveUp(file, Fate::kTooMany, "");
  }
  if (++file.openings > limits::kFrameworkOpeningsPerFileMax && !file.streams.empty()) {
    AddRemark(RemarkKind::kFileChanged, 1,
              file.name + ": it changes too often, and the latest version is not read", remarks_);
    return GiveUp(file, Fate::kRead, "");
  }
  TraceFileStream::Options options;
  // Listed files are the operator's own choice, so links in their paths are followed.
  if (!file.listed) options.root = capture_environment_.files.directory;
  options.must_be_trace = file.must_be_trace;
  if (!file.streams.empty()) {
    // A file that was appended to continues the earlier content, which is then not read again.
    options.prefix_bytes = file.streams.back()->facts().content_bytes;
    options.prefix_mark = file.streams.back()->facts().content_mark;
  }
  file.current = std::make_unique<TraceFileStream>(file.path, std::move(options));
  file.opened = file.current->state() == TraceFileStream::State::kFailed
                    ? file.seen
                    : file.current->opened_state();
}

void FrameworkCapture::GiveUp(File& file, Fate fate, std::string problem) {
  const StreamCursor* const cursor = FindCursor(IdentityOf(file, 1));
  if (fate == Fate::kFailed && file.streams.empty() && cursor != nullptr) EndOvertaken(*cursor);
  file.fate = fate;
  file.problem = std::move(problem);
  file.current.reset();
}

// The file changed while it was scanned, before anything of it was stored.
void FrameworkCapture::Reopen(File& file) {
  if (stopping_ && WasWaitedFor(file) && file.openings > 1) {
    AddRemark(RemarkKind::kFileChanged, 1, file.name + ": it keeps changing and is not read",
              remarks_);
    return GiveUp(file, Fate::kRead, "");
  }
  file.current.reset();
  file.settled = false;
  file.not_before_ns = capture_environment_.clock.MonotonicNs() + kReopenNs;
}

StreamIdentity FrameworkCapture::IdentityOf(const File& file, uint32_t version) const {
  StreamIdentity identity;
  identity.agent_id = capture_environment_.files.agent_id;
  identity.worker.instance_id = capture_environment_.files.instance_id;
  identity.worker.boot_id = capture_environment_.files.boot_id;
  identity.worker.pid = PidOfDirectory(file.path);
  identity.kind = StreamKind::kFramework;
  identity.nc_idx = limits::kNoNcIdx;
  identity.name = VersionName(file.name, version);
  return identity;
}

const StreamCursor* FrameworkCapture::FindCursor(const StreamIdentity& identity) const {
  const auto cursor = std::find_if(cursors_.begin(), cursors_.end(),
                                   [&](const auto& c) { return c.stream == identity; });
  return cursor == cursors_.end() ? nullptr : &*cursor;
}

// By the digest of the content, so copies and compressed copies are recognised.
bool FrameworkCapture::IsSameContent(const File& file) {
  const uint64_t mark = file.current->facts().content_mark;
  for (const auto& stream : file.streams) {
    if (stream->facts().content_mark == mark && !stream->has_changed()) return true;
  }
  if (file.current->facts().elements == 0) return false;
  const auto known = contents_.find(mark);
  // Compressed and plain copies have the same mark, as it is of the decompressed bytes.
  if (known == contents_.end()) return false;
  AddRemark(RemarkKind::kSameContent, 1,
            fmt::format("{}: it has the same content as {}", file.name, known->second), remarks_);
  return true;
}

// Returns the XSpace of the session that a JSON file was made from, if it belongs to this capture.
FrameworkCapture::File* FrameworkCapture::XSpaceOf(const File& file) {
  const std::optional<std::string> path = XSpaceOfTrace(file.path);
  const bool is_of_folder = IsPerfettoTraceName(file.path);
  File* found = nullptr;
  for (auto& [name, other] : files_) {
    if (!IsXSpaceName(other.path)) continue;
    if (is_of_folder ? FolderOf(other.path) != FolderOf(file.path) : other.path != path) continue;
    if (found != nullptr) return nullptr;  // nothing tells which of them
    found = &other;
  }
  return found;
}

// JAX writes an XSpace, and JSON with the same events beside it. The XSpace is read, unless the
// JSON was begun before it came, or the XSpace cannot be read completely.
FrameworkCapture::SessionPart FrameworkCapture::SessionPartOf(File& file) {
  // A file whose stream exists must be continued, whatever the other file of the session offers.
  const auto is_begun = [this](const File& other) {
    return !other.streams.empty() || FindCursor(IdentityOf(other, 1)) != nullptr ||
           (other.current != nullptr && other.current->state() == TraceFileStream::State::kReading);
  };
  const auto report_twice = [this](const File& of, const File& kept) {
    AddRemark(RemarkKind::kSameContent, 1,
              fmt::format("{}: {} has the events of the same session", of.name, kept.name),
              remarks_);
    return SessionPart::kTwice;
  };
  if (is_begun(file)) return SessionPart::kOwn;
  if (file.current->facts().kind == ContentKind::kXSpace) {
    for (const auto& [name, other] : files_) {
      if (IsXSpaceName(other.path) || !is_begun(other) || XSpaceOf(other) != &file) continue;
      return report_twice(file, other);
    }
    return SessionPart::kOwn;
  }
  const File* const xspace = XSpaceOf(file);
  if (xspace == nullptr) return SessionPart::kOwn;
  if (is_begun(*xspace)) {
    const TraceFileStream* const read = xspace->current != nullptr ? xspace->current.get()
                                        : !xspace->streams.empty() ? xspace->streams.back().get()
                                                                   : nullptr;
    const bool is_whole = read == nullptr || read->facts().complete;
    return is_whole ? report_twice(file, *xspace) : SessionPart::kOwn;
  }
  return xspace->fate == Fate::kWaiting ? SessionPart::kWaiting : SessionPart::kOwn;
}

// Finds the stream of this content: one that an earlier run of the agent began, or a new one. The
// mark in a cursor identifies the content, so versions are matched by it rather than by order.
void FrameworkCapture::Begin(File& file) {
  const TraceFileFacts& facts = file.current->facts();
  if (streams_begun_ >= limits::kFrameworkFilesPerCaptureMax) {
    return GiveUp(file, Fate::kTooMany, "");
  }
  // Versions are tried in order: those of this run are skipped, those of earlier runs must match.
  for (uint32_t version = 1; version <= limits::kFrameworkVersionsPerFileMax; ++version) {
    StreamIdentity identity = IdentityOf(file, version);
    const bool is_taken =
        std::any_of(file.streams.begin(), file.streams.end(), [&](const auto& stream) {
          return stream->identity() != nullptr && *stream->identity() == identity;
        });
    if (is_taken) continue;
    const StreamCursor* const cursor = FindCursor(identity);
    if (cursor == nullptr) {
      // A capture that is over begins no new streams.
      if (IsSameContent(file) || is_over_) return GiveUp(file, Fate::kRead, "");
      return BeginStream(file, std::move(identity), nullptr);
    }
    if (cursor->sequence_mark == 0 || cursor->sequence_mark == facts.content_mark) {
      return BeginStream(file, std::move(identity), cursor);
    }
    EndOvertaken(*cursor);
  }
  AddRemark(
      RemarkKind::kFileChanged, 1,
      fmt::format("{}: the limit of {} versions of a file is reached, and this one is not read",
                  file.name, limits::kFrameworkVersionsPerFileMax),
      remarks_);
  GiveUp(file, Fate::kRead, "");
}

// Ends a stream that an earlier run of the agent began and whose content no longer exists.
void FrameworkCapture::EndOvertaken(const StreamCursor& cursor) {
  if (cursor.ended) return;
  const auto known = std::find_if(overtaken_.begin(), overtaken_.end(), [&](const auto& writer) {
    return writer->stream() == cursor.stream;
  });
  if (known != overtaken_.end()) return;
  auto writer =
      std::make_unique<StreamWriter>(capture_id_, cursor.stream, capture_environment_.clock,
                                     capture_environment_.sink, capture_environment_.metrics);
  writer->Resume(cursor);
  const std::string detail = fmt::format(
      "after {} elements: the file changed before all of it was read", cursor.source_position);
  writer->AddRemark(cursor.source_position, RemarkKind::kFileChanged,
                    fmt::format("{}: {}", cursor.stream.name, detail));
  writer->AddLoss(cursor.source_position, {.place = LossPlace::kDecode,
                                           .reason = LossReason::kUnknown,
                                           .events_unknown = true,
                                           .detail = detail});
  writer->End(cursor.source_position + 1);
  overtaken_.push_back(std::move(writer));
}

void FrameworkCapture::BeginStream(File& file, StreamIdentity identity,
                                   const StreamCursor* cursor) {
  const TraceFileFacts& facts = file.current->facts();
  StreamWriter::Options options;
  if (facts.has_own_time) options.clock_domain = ClockDomain::kOwn;
  ++streams_begun_;
  if (facts.elements > 0) contents_.emplace(facts.content_mark, identity.name);
  // Stored completely by an earlier run: counted, not read.
  if (cursor != nullptr && cursor->ended) {
    file.current->MarkStored();
    file.read_before += EventsRead(*cursor);
    return;
  }
  // An appended file continues where the earlier content ended: no event of it is read twice.
  const bool is_continuation = !file.streams.empty() && facts.continues_prefix;
  if (cursor == nullptr && !file.streams.empty() && !is_continuation) {
    AddRemark(RemarkKind::kFileRewritten, 1, file.name, remarks_);
  }
  auto writer = std::make_unique<StreamWriter>(
      capture_id_, std::move(identity), capture_environment_.clock, capture_environment_.sink,
      capture_environment_.metrics, options);
  uint64_t first_element = is_continuation ? file.streams.back()->position() : 0;
  if (cursor != nullptr) {
    writer->Resume(*cursor);
    first_element = cursor->source_position;
  }
  file.current->Read(std::move(writer), first_element, is_continuation && cursor == nullptr);
}

void FrameworkCapture::HandleEnded(File& file) {
  const bool has_changed = file.current->has_changed();
  file.streams.push_back(std::move(file.current));
  file.fate = Fate::kRead;
  if (has_changed) {
    // The new content is read as a stream of its own.
    file.fate = Fate::kWaiting;
    file.settled = false;
    file.not_before_ns = capture_environment_.clock.MonotonicNs() + kReopenNs;
  }
}

void FrameworkCapture::Flush() {
  for (const auto& [name, file] : files_) {
    if (file.current != nullptr) file.current->Flush();
  }
}

bool FrameworkCapture::finished() const {
  if (!stopping_ || (on_demand_ != nullptr && on_demand_->IsAwaited())) return false;
  const auto is_done = [](const auto& writer) { return writer->finished(); };
  return std::all_of(overtaken_.begin(), overtaken_.end(), is_done) &&
         std::all_of(files_.begin(), files_.end(), [&](const auto& item) {
           const File& file = item.second;
           return file.fate != Fate::kWaiting && file.current == nullptr &&
                  std::all_of(file.streams.begin(), file.streams.end(), is_done);
         });
}

void FrameworkCapture::AddNoTraceRemark(std::vector<Remark>& remarks) const {
  if (listing_.others > 0) {
    AddRemark(RemarkKind::kNoTrace, listing_.others,
              fmt::format("{} with names other than *.json, *.json.gz and *.pb, such as {}",
                          listing_.others, listing_.other),
              remarks);
  }
  if (listing_.too_deep > 0) {
    AddRemark(RemarkKind::kNoTrace, listing_.too_deep,
              fmt::format("{} folders nested too deeply, such as {}", listing_.too_deep,
                          listing_.deep_folder),
              remarks);
  }
  size_t named = 0;
  for (const auto& [name, file] : files_) {
    if (file.fate != Fate::kNoTrace) continue;
    AddRemark(RemarkKind::kNoTrace, 1,
              named++ < limits::kRemarkDetailsMax ? fmt::format("{}: {}", name, file.problem) : "",
              remarks);
  }
}

std::vector<Remark> FrameworkCapture::Remarks() const {
  std::vector<Remark> remarks = remarks_;
  if (on_demand_ != nullptr) on_demand_->AddRemarks(remarks);
  AddNoTraceRemark(remarks);
  uint64_t too_many = listing_.files_beyond;
  std::string first;
  for (const auto& [name, file] : files_) {
    if (file.fate == Fate::kFailed) {
      AddRemark(RemarkKind::kFilePassedOver, 1, fmt::format("{}: {}", name, file.problem), remarks);
    } else if (file.fate == Fate::kTooMany) {
      ++too_many;
      if (first.empty()) first = name;
    }
  }
  if (too_many > 0) {
    AddRemark(RemarkKind::kTooManyFiles, too_many,
              fmt::format("at most {} files are read for a capture; {} is the first one skipped",
                          limits::kFrameworkFilesPerCaptureMax, first),
              remarks);
  }
  if (listing_.is_truncated) {
    AddRemark(
        RemarkKind::kTooManyFiles, 1,
        fmt::format("{} has more than {} entries; files beyond the limit are not found",
                    capture_environment_.files.directory, limits::kFrameworkDirectoryEntriesMax),
        remarks);
  }
  return remarks;
}

CaptureWorkerStatus FrameworkCapture::status() const {
  CaptureWorkerStatus status;
  status.capture_id = capture_id_;
  status.worker.instance_id = capture_environment_.files.instance_id;
  status.worker.boot_id = capture_environment_.files.boot_id;
  status.framework = true;
  size_t failed = 0;
  std::set<std::string_view> with_problem;
  bool lost_unknown = false;
  bool given_up = false;
  std::string problem;
  // Sums over all streams first, then the text for people, then the state.
  const auto add_problem = [&](const std::string& name, const std::string& what) {
    if (what.empty()) return;
    with_problem.insert(name);
    if (problem.empty()) problem = fmt::format("{}: {}", name, what);
  };
  const auto add_stream = [&](const std::string& name, const TraceFileStream& stream) {
    const StreamWriter::Counts counts = stream.counts();
    ++status.streams;
    status.events_read += counts.read;
    status.events_stored += counts.stored;
    status.events_lost += counts.lost;
    lost_unknown = lost_unknown || counts.lost_unknown;
    given_up = given_up || counts.given_up;
    if (stream.state() == TraceFileStream::State::kEnded) add_problem(name, stream.problem());
  };
  for (const auto& [name, file] : files_) {
    failed += file.fate == Fate::kFailed && file.streams.empty();
    if (file.fate == Fate::kFailed) add_problem(name, file.problem);
    for (const auto& stream : file.streams) add_stream(name, *stream);
    if (file.current != nullptr && file.current->identity() != nullptr) {
      add_stream(name, *file.current);
    }
    status.events_read += file.read_before;
    status.events_stored += file.read_before;
  }
  if (!with_problem.empty()) {
    status.detail = fmt::format(
        "{} of {} could not be read completely, such as {}", with_problem.size(),
        files_.size() == 1 ? "1 file" : fmt::format("{} files", files_.size()), problem);
  }
  if (status.detail.size() > limits::kDetailBytesMax) {
    status.detail.resize(limits::kDetailBytesMax);
  }
  status.events_lost_unknown = lost_unknown;
  status.remarks = Remarks();
  if (on_demand_ != nullptr) status.framework_traces = on_demand_->Traces();
  status.state = stopping_ ? CaptureWorkerState::kStopping : CaptureWorkerState::kRecording;
  if (finished()) {
    if (files_.empty() && status.detail.empty()) status.detail = "no trace file appeared";
    status.state = failed > 0 && failed == files_.size() ? CaptureWorkerState::kRefused
                                                         : CaptureWorkerState::kComplete;
    if (given_up) {
      status.state = CaptureWorkerState::kLost;
      status.detail =
          "a file's stream was abandoned before the aggregator stored all of it; see the agent's "
          "log";
    }
  }
  return status;
}

}  // namespace neurontrace
