// SPDX-License-Identifier: Apache-2.0
#include "lib/web/export_downloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/json_writer.h"
#include "lib/trace/export_traits.h"
#include "lib/trace/limits.h"
#include "lib/trace/web_limits.h"
#include "lib/web/api_reply.h"
#include "lib/web/tar_spool.h"
#include "lib/web/web_parameters.h"

namespace neurontrace {
namespace {

// A format by its name in ExportTraits; "pftrace" is what the page calls perfetto.
struct Format {
  std::string_view name;
  v1::ExportFormat value;
  std::string_view ending;  // of the downloaded file

  // Returns whether the format has several files.
  bool is_archive() const {
    const ExportTraits* const traits = FindExportTraits(name);
    return traits != nullptr && traits->is_directory();
  }
};
constexpr Format kFormats[] = {{"pftrace", v1::EXPORT_FORMAT_PERFETTO, "pftrace"},
                               {"perfetto", v1::EXPORT_FORMAT_PERFETTO, "pftrace"},
                               {"chrome-json", v1::EXPORT_FORMAT_CHROME_JSON, "trace.json"},
                               {"json", v1::EXPORT_FORMAT_JSON, "json"},
                               {"events", v1::EXPORT_FORMAT_EVENTS, "events.jsonl"},
                               {"summary-text", v1::EXPORT_FORMAT_SUMMARY_TEXT, "summary.txt"},
                               {"summary-json", v1::EXPORT_FORMAT_SUMMARY_JSON, "summary.json"},
                               {"parquet", v1::EXPORT_FORMAT_PARQUET, "parquet.tar"},
                               {"xspace", v1::EXPORT_FORMAT_XSPACE, "xspace.tar"}};

grpc::Status Invalid(std::string message) {
  return {grpc::StatusCode::INVALID_ARGUMENT, std::move(message)};
}

grpc::Status FromAbsl(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

// Returns a text of outside as part of a file's name.
std::string FileName(std::string_view text) {
  std::string name(text.substr(0, 128));
  std::ranges::replace_if(
      name,
      [](unsigned char c) {
        return (std::isalnum(c) == 0 || c > 0x7f) && c != '-' && c != '_' && c != '.';
      },
      '_');
  return name;
}

bool IsDownloadName(std::string_view name) {
  return name.size() <= limits::kWebDownloadNameBytesMax &&
         std::ranges::all_of(name, [](unsigned char c) {
           return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_');
         });
}

// Parses a time of the query. An empty text is 0, which stands for an open end.
bool ParseTime(std::string_view text, uint64_t& time_ns) {
  if (text.empty()) return true;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), time_ns);
  return error == std::errc() && rest == text.data() + text.size();
}

// Parses "8-15,20" and passes each range to `add`. An empty text has none. Returns false for any
// other text, and beyond limits::kSelectionItemsMax ranges.
template <typename Number, typename Add>
bool ParseRanges(std::string_view text, const Add& add) {
  const auto parse = [](std::string_view digits, Number& number) {
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() && rest == digits.data() + digits.size();
  };
  for (uint32_t count = 0; !text.empty(); ++count) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t dash = std::min(part.find('-'), part.size());
    const std::string_view upper = part.substr(std::min(dash + 1, part.size()));
    Number first = 0;
    Number last = 0;
    if (!parse(part.substr(0, dash), first) || first < 0) return false;
    if (!parse(upper.empty() ? part.substr(0, dash) : upper, last) || last < first) return false;
    if (count >= limits::kSelectionItemsMax) return false;
    add(first, last);
  }
  return true;
}

// Fills the window and the selection of a request from the parameters of an address.
grpc::Status Select(std::string_view query, v1::ExportRequest& message) {
  if (!ParseRanges<int64_t>(DecodedParameterOf(query, "gids"), [&](int64_t first, int64_t last) {
        v1::GidRange& range = *message.add_worker_gids();
        range.set_first(first);
        range.set_last(last);
      })) {
    return Invalid("gids: write ranks and ranges between commas, for example 8-15,20");
  }
  if (!ParseRanges<uint32_t>(DecodedParameterOf(query, "streams"),
                             [&](uint32_t first, uint32_t last) {
                               v1::StreamRange& range = *message.add_streams();
                               range.set_first(first);
                               range.set_last(last);
                             })) {
    return Invalid("streams: write numbers and ranges between commas, for example 4-11,20");
  }
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
  if (!ParseTime(ParameterOf(query, "from"), from_ns) ||
      !ParseTime(ParameterOf(query, "to"), to_ns)) {
    return Invalid("from, to: write whole nanoseconds, or omit them for the whole capture");
  }
  message.set_window_start_ns(from_ns);
  message.set_window_end_ns(to_ns);
  return grpc::Status::OK;
}

grpc::Status Busy() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          fmt::format("{} downloads are running, or one has this name; wait for the end of one",
                      limits::kWebDownloadsMax)};
}

// Returns the head of an attachment.
WebReply Attachment(const std::string& file_name) {
  return {
      .content_type = "application/octet-stream",
      .headers = {{"Cache-Control", "no-store"},
                  {"Content-Disposition", fmt::format("attachment; filename=\"{}\"", file_name)}}};
}

std::string CommandWithoutArchive(const std::string& capture_id, std::string_view format) {
  return fmt::format("Without an archive: neurontrace export {} --format {} -o DIRECTORY",
                     FileName(capture_id), format);
}

// Names of downloads have no '/', so no name of one user is that of another.
std::string KeyOf(const std::string& user, std::string_view name) {
  return name.empty() ? "" : fmt::format("{}/{}", name, user);
}

}  // namespace

// The stream reports to it on one thread; the page reads and cancels on others.
class ExportDownloads::Download {
 public:
  explicit Download(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  bool has_ended() const {
    const MutexLock lock(mutex_);
    return state_ != State::kRunning;
  }

  // `call` is to be cancelled by Cancel, until it is replaced by null.
  void SetCall(OperatorCalls::Call* call) {
    const MutexLock lock(mutex_);
    call_ = call;
    if (call_ != nullptr && is_cancelled_) call_->context()->TryCancel();
  }
  void Cancel() {
    const MutexLock lock(mutex_);
    if (state_ != State::kRunning) return;
    is_cancelled_ = true;
    if (call_ != nullptr) call_->context()->TryCancel();
  }

  void SetFile(std::string file_name, uint64_t bytes_total) {
    const MutexLock lock(mutex_);
    file_name_ = std::move(file_name);
    bytes_total_ = bytes_total;
  }
  void AddBytes(size_t bytes) {
    const MutexLock lock(mutex_);
    bytes_ += bytes;
  }
  void SetProgress(const v1::ExportProgress& progress) {
    const MutexLock lock(mutex_);
    progress_ = progress;
  }
  void SetDone(v1::ExportDone done) {
    const MutexLock lock(mutex_);
    progress_ = done.total();
    done_ = std::move(done);
  }
  // Called once, with the result. Calls after the first change nothing.
  void End(const grpc::Status& status, std::string_view hint = {}) {
    const MutexLock lock(mutex_);
    if (state_ != State::kRunning) return;
    status_ = status;
    hint_ = hint;
    state_ = status.ok() ? State::kDone : is_cancelled_ ? State::kCancelled : State::kFailed;
  }

  // Returns the answer of /downloads/NAME.
  std::string Json() const {
    const MutexLock lock(mutex_);
    static constexpr std::string_view kStates[] = {"running", "done", "cancelled", "failed"};
    JsonWriter json;
    json.Open('{').Member("state", kStates[static_cast<size_t>(state_)]);
    json.Member("file", file_name_);
    json.Member("bytes", fmt::format("{}", bytes_));
    json.Member("bytes_total", fmt::format("{}", bytes_total_));
    json.Member("chunks_read", fmt::format("{}", progress_.chunks_read()));
    json.Member("chunks_total", fmt::format("{}", progress_.chunks_total()));
    json.Member("incomplete", done_.capture_incomplete()).Member("verdict", done_.verdict());
    WriteTexts(done_.warnings(), json.Key("warnings"));
    WriteTexts(done_.notes(), json.Key("notes"));
    if (state_ == State::kFailed) {
      json.Key("error");
      WriteError(status_, hint_, json);
    }
    json.Close('}');
    return json.Take();
  }

 private:
  enum class State : uint8_t { kRunning, kDone, kCancelled, kFailed };

  static void WriteTexts(const google::protobuf::RepeatedPtrField<std::string>& texts,
                         JsonWriter& json) {
    json.Open('[');
    const int shown = std::min(texts.size(), limits::kWebDownloadTextsMax);
    for (int i = 0; i < shown; ++i) json.Value(texts[i]);
    if (texts.size() > shown) json.Value(fmt::format("and {} more", texts.size() - shown));
    json.Close(']');
  }

  const std::string name_;
  mutable Mutex mutex_;
  OperatorCalls::Call* call_ NT_GUARDED_BY(mutex_) = nullptr;
  State state_ NT_GUARDED_BY(mutex_) = State::kRunning;
  bool is_cancelled_ NT_GUARDED_BY(mutex_) = false;
  std::string file_name_ NT_GUARDED_BY(mutex_);
  uint64_t bytes_ NT_GUARDED_BY(mutex_) = 0;        // that the aggregator sent
  uint64_t bytes_total_ NT_GUARDED_BY(mutex_) = 0;  // 0: unknown
  v1::ExportProgress progress_ NT_GUARDED_BY(mutex_);
  v1::ExportDone done_ NT_GUARDED_BY(mutex_);
  grpc::Status status_ NT_GUARDED_BY(mutex_);
  std::string hint_ NT_GUARDED_BY(mutex_);
};

// The bytes of an export: those of its file, or an archive of its files.
class ExportDownloads::ExportStream final : public WebStream {
 public:
  ExportStream(v1::OperatorService::StubInterface& service, std::shared_ptr<OperatorCalls> calls,
               const v1::ExportRequest& request, std::optional<TarSpool> spool,
               std::string_view format, std::shared_ptr<Download> download)
      : capture_id_(request.capture_id()),
        format_(format),
        download_(std::move(download)),
        spool_(std::move(spool)),
        call_(std::move(calls)) {
    download_->SetCall(&call_);
    reader_ = service.Export(call_.context(), request);
  }
  // A browser that leaves in the middle ends the call.
  ~ExportStream() override {
    download_->SetCall(nullptr);
    download_->End({grpc::StatusCode::CANCELLED, "the browser ended the download"});
  }

  // Reads up to the first bytes, so that a refused export is answered with its error. An archive
  // may have its first bytes at the end, so its first file is enough.
  grpc::Status Begin(std::string& piece) {
    Next next = Next::kMore;
    if (!spool_) {
      next = Read(piece);
    } else {
      while (next == Next::kMore && !has_file_) next = ReadReply(piece);
    }
    if (next == Next::kFailed) return status_;
    if (next == Next::kMore) return grpc::Status::OK;
    const grpc::Status empty(grpc::StatusCode::FAILED_PRECONDITION, "there is nothing to export");
    download_->End(empty);
    return empty;
  }

  // The spool has nothing until a file has ended.
  Next Read(std::string& piece) override {
    piece.clear();
    while (true) {
      if (spool_) {
        if (const absl::Status read = spool_->Read(piece); !read.ok()) return Abandon(read);
        if (!piece.empty()) return Next::kMore;
      }
      const Next next = has_ended_ ? Next::kEnd : ReadReply(piece);
      if (next == Next::kEnd && spool_ && !is_finished_) {
        is_finished_ = true;
        if (const absl::Status end = spool_->Finish(); !end.ok()) return Abandon(end);
        continue;
      }
      if (next == Next::kEnd) download_->End(grpc::Status::OK);
      if (next != Next::kMore || !piece.empty()) return next;
    }
  }

 private:
  // Reads one reply, and fills `piece` if it has bytes of a single file.
  Next ReadReply(std::string& piece) {
    v1::ExportReply reply;
    if (!reader_->Read(&reply)) {
      has_ended_ = true;
      status_ = reader_->Finish();
      if (status_.ok() && !is_done_) {
        status_ = {grpc::StatusCode::DATA_LOSS, "the aggregator ended the export too early"};
      }
      if (status_.ok()) return Next::kEnd;
      download_->End(status_);
      return Next::kFailed;
    }
    const absl::Status taken = Take(reply, piece);
    return taken.ok() ? Next::kMore : Abandon(taken);
  }

  absl::Status Take(v1::ExportReply& reply, std::string& piece) {
    switch (reply.reply_case()) {
      case v1::ExportReply::kProgress:
        download_->SetProgress(reply.progress());
        return absl::OkStatus();
      case v1::ExportReply::kFile:
        has_file_ = true;
        return spool_ ? spool_->Begin(reply.file()) : absl::OkStatus();
      case v1::ExportReply::kFileEnd:
        return spool_ ? spool_->End(reply.file_number()) : absl::OkStatus();
      case v1::ExportReply::kDone:
        is_done_ = true;
        download_->SetDone(std::move(*reply.mutable_done()));
        return absl::OkStatus();
      case v1::ExportReply::kData:
        download_->AddBytes(reply.data().size());
        if (spool_) return spool_->Write(reply.file_number(), reply.data());
        piece = std::move(*reply.mutable_data());
        return absl::OkStatus();
      default:
        return absl::OkStatus();
    }
  }

  // Ends the call because of an error of this machine.
  Next Abandon(const absl::Status& status) {
    status_ = FromAbsl(status);
    has_ended_ = true;
    call_.context()->TryCancel();
    download_->End(status_, CommandWithoutArchive(capture_id_, format_));
    return Next::kFailed;
  }

  const std::string capture_id_;
  const std::string_view format_;
  const std::shared_ptr<Download> download_;
  std::optional<TarSpool> spool_;
  OperatorCalls::Call call_;
  std::unique_ptr<grpc::ClientReaderInterface<v1::ExportReply>> reader_;
  grpc::Status status_;
  bool has_file_ = false;
  bool is_done_ = false;      // the aggregator's last reply has arrived
  bool has_ended_ = false;    // the call has
  bool is_finished_ = false;  // the archive has its end
};

// The bytes of an artifact.
class ExportDownloads::ArtifactStream final : public WebStream {
 public:
  ArtifactStream(v1::OperatorService::StubInterface& service, std::shared_ptr<OperatorCalls> calls,
                 const v1::GetArtifactRequest& request, std::shared_ptr<Download> download)
      : download_(std::move(download)), call_(std::move(calls)) {
    download_->SetCall(&call_);
    reader_ = service.GetArtifact(call_.context(), request);
  }
  ~ArtifactStream() override {
    download_->SetCall(nullptr);
    download_->End({grpc::StatusCode::CANCELLED, "the browser ended the download"});
  }

  // Reads which file it is, so that a refusal is answered with its error.
  grpc::Status Begin(v1::Artifact& artifact) {
    v1::GetArtifactReply reply;
    if (reader_->Read(&reply) && reply.has_artifact()) {
      artifact = reply.artifact();
      return grpc::Status::OK;
    }
    grpc::Status status = reader_->Finish();
    if (status.ok()) status = {grpc::StatusCode::DATA_LOSS, "the aggregator sent no artifact"};
    download_->End(status);
    return status;
  }

  Next Read(std::string& piece) override {
    v1::GetArtifactReply reply;
    if (reader_->Read(&reply)) {
      piece = std::move(*reply.mutable_data());
      download_->AddBytes(piece.size());
      return Next::kMore;
    }
    const grpc::Status status = reader_->Finish();
    download_->End(status);
    return status.ok() ? Next::kEnd : Next::kFailed;
  }

 private:
  const std::shared_ptr<Download> download_;
  OperatorCalls::Call call_;
  std::unique_ptr<grpc::ClientReaderInterface<v1::GetArtifactReply>> reader_;
};

ExportDownloads::ExportDownloads(v1::OperatorService::StubInterface& service) : service_(service) {}

ExportDownloads::~ExportDownloads() = default;

std::shared_ptr<ExportDownloads::Download> ExportDownloads::Begin(const std::string& user,
                                                                  std::string_view name) {
  const std::string key = KeyOf(user, name);
  auto download = std::make_shared<Download>(key);
  if (name.empty()) return download;
  const MutexLock lock(mutex_);
  const auto is_same = [&](const auto& other) { return other->name() == key; };
  if (std::ranges::any_of(downloads_, is_same)) return nullptr;
  if (downloads_.size() >= limits::kWebDownloadsMax) {
    const auto ended =
        std::ranges::find_if(downloads_, [](const auto& other) { return other->has_ended(); });
    if (ended == downloads_.end()) return nullptr;
    downloads_.erase(ended);
  }
  downloads_.push_back(download);
  return download;
}

std::shared_ptr<ExportDownloads::Download> ExportDownloads::Find(const std::string& user,
                                                                 std::string_view name) {
  const std::string key = KeyOf(user, name);
  const MutexLock lock(mutex_);
  const auto found =
      std::ranges::find_if(downloads_, [&](const auto& other) { return other->name() == key; });
  return found == downloads_.end() ? nullptr : *found;
}

WebReply ExportDownloads::Export(const Caller& caller, const WebRequest& request,
                                 const std::string& id) {
  const std::string_view named = ParameterOf(request.query, "format");
  const auto* const format = std::ranges::find(kFormats, named, &Format::name);
  if (format == std::end(kFormats)) {
    std::string names;
    for (const ExportTraits& traits : AllExportTraits()) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", traits.name());
    }
    return ErrorReply(Invalid(fmt::format("format: there are {}", names)));
  }
  if (format->is_archive() && !caller.makes_archives) {
    return ErrorReply({grpc::StatusCode::UNIMPLEMENTED,
                       "format: it has several files, and the aggregator makes no archives"},
                      CommandWithoutArchive(id, format->name));
  }
  v1::ExportRequest message;
  message.set_capture_id(id);
  message.set_format(format->value);
  if (const grpc::Status selected = Select(request.query, message); !selected.ok()) {
    return ErrorReply(selected);
  }
  const std::string_view name = ParameterOf(request.query, "download");
  if (!IsDownloadName(name)) return ErrorReply(Invalid("download: use letters and digits"));
  const auto download = Begin(caller.user, name);
  if (download == nullptr) return ErrorReply(Busy());
  const std::string file_name = fmt::format("{}.{}", FileName(id), format->ending);
  download->SetFile(file_name, 0);
  std::optional<TarSpool> spool;
  if (format->is_archive()) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    spool.emplace(TarSpool::Options{
        .directory = fmt::format("{}.{}", FileName(id), format->name),
        .modified_s =
            static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count())});
  }
  auto bytes = std::make_unique<ExportStream>(service_, caller.calls, message, std::move(spool),
                                              format->name, download);
  WebReply reply = Attachment(file_name);
  if (const grpc::Status begun = bytes->Begin(reply.body); !begun.ok()) return ErrorReply(begun);
  reply.stream = std::move(bytes);
  return reply;
}

WebReply ExportDownloads::GetArtifact(const Caller& caller, const WebRequest& request,
                                      const std::string& id) {
  const std::string_view name = ParameterOf(request.query, "download");
  if (!IsDownloadName(name)) return ErrorReply(Invalid("download: use letters and digits"));
  v1::GetArtifactRequest message;
  message.set_capture_id(id);
  message.set_sha256(std::string(ParameterOf(request.query, "sha256")));
  const auto download = Begin(caller.user, name);
  if (download == nullptr) return ErrorReply(Busy());
  auto bytes = std::make_unique<ArtifactStream>(service_, caller.calls, message, download);
  v1::Artifact artifact;
  if (const grpc::Status begun = bytes->Begin(artifact); !begun.ok()) return ErrorReply(begun);
  const std::string file_name = FileName(artifact.path().substr(artifact.path().rfind('/') + 1));
  download->SetFile(file_name, artifact.bytes());
  WebReply reply = Attachment(file_name);
  reply.stream = std::move(bytes);
  return reply;
}

WebReply ExportDownloads::GetState(const Caller& caller, const WebRequest&, const std::string& id) {
  const auto download = Find(caller.user, id);
  // No error: a page asks before the browser has sent the request of its download.
  if (download == nullptr) return JsonReply(R"({"state":"unknown"})");
  return JsonReply(download->Json());
}

WebReply ExportDownloads::Cancel(const Caller& caller, const WebRequest& request,
                                 const std::string& id) {
  if (const auto download = Find(caller.user, id)) download->Cancel();
  return GetState(caller, request, id);
}

}  // namespace neurontrace
