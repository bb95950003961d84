// SPDX-License-Identifier: Apache-2.0
#include "cli/export_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/status.h"
#include "cli/capture_view.h"
#include "cli/progress_line.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

// A file that exists under its real name only once it is whole.
class OutputFile {
 public:
  ~OutputFile() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  absl::Status Open(const std::string& path) {
    path_ = path;
    if (path == "-") {
      file_ = stdout;
      return absl::OkStatus();
    }
    const std::string temporary = fmt::format("{}.{}.part", path, getpid());
    file_ = std::fopen(temporary.c_str(), "wb");
    if (file_ == nullptr)
      return FailedPrecondition("cannot write {}: {}", temporary, strerror(errno));
    temporary_ = temporary;
    return absl::OkStatus();
  }

  // Where the bytes are until they are all there; empty for standard output.
  const std::string& temporary() const { return temporary_; }

  absl::Status Write(const std::string& data) {
    if (std::fwrite(data.data(), 1, data.size(), file_) == data.size()) return absl::OkStatus();
    return FailedPrecondition("cannot write {}: {}", path_, strerror(errno));
  }

  absl::Status Close() {
    FILE* file = file_;
    file_ = nullptr;
    if (file == stdout) {
      if (std::fflush(file) == 0) return absl::OkStatus();
    } else if (std::fclose(file) == 0 && std::rename(temporary_.c_str(), path_.c_str()) == 0) {
      temporary_.clear();
      return absl::OkStatus();
    }
    return FailedPrecondition("cannot write {}: {}", path_, strerror(errno));
  }

 private:
  std::string path_;
  std::string temporary_;
  FILE* file_ = nullptr;
};

// While it lives, an interrupt cancels the call.
class Cancellation {
 public:
  Cancellation(InterruptWatcher* interrupts, const OutputFile& file, grpc::ClientContext& call)
      : interrupts_(interrupts) {
    if (interrupts_ == nullptr) return;
    interrupts_->Redirect([this, &call, temporary = file.temporary()](int count) {
      if (count > 1) {  // whatever holds it up, a disk or the reader of a pipe
        if (!temporary.empty()) unlink(temporary.c_str());
        EndAtOnce(count);
      }
      is_interrupted_ = true;
      call.TryCancel();
    });
  }
  ~Cancellation() {
    if (interrupts_ != nullptr) interrupts_->Redirect(EndAtOnce);
  }
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  bool is_interrupted() const { return is_interrupted_; }

 private:
  InterruptWatcher* const interrupts_;
  std::atomic<bool> is_interrupted_ = false;
};

void DrawProgress(ProgressLine& line, const v1::ExportProgress& progress) {
  const double fraction = progress.chunks_total() == 0
                              ? -1
                              : static_cast<double>(progress.chunks_read()) /
                                    static_cast<double>(progress.chunks_total());
  line.Draw(fraction, fmt::format("exporting: {} spans, {}", FormatCount(progress.spans()),
                                  FormatBytes(progress.bytes_written())));
}

void Report(const Context& context, const v1::ExportDone& done, bool is_summary,
            const std::string& path) {
  FILE* out = path == "-" ? stderr : context.results;
  if (context.json) {
    fmt::print(out, "{}", FormatJson(done));
    return;
  }
  const std::string size = FormatBytes(done.total().bytes_written());
  if (is_summary) {
    fmt::print(out, "wrote {}: {}\n", path, size);
  } else if (done.events() != 0) {
    fmt::print(out, "wrote {}: {} events, {}\n", path, FormatCount(done.events()), size);
  } else {
    fmt::print(out, "wrote {}: {} spans, {} instants, {}\n", path,
               FormatCount(done.total().spans()), FormatCount(done.instants()), size);
  }
  if (done.open_spans() + done.start_lost_spans() != 0) {
    fmt::print(out, "  of them {} still open at the end and {} whose start is not there\n",
               FormatCount(done.open_spans()), FormatCount(done.start_lost_spans()));
  }
  for (const std::string& warning : done.warnings()) fmt::print(out, "warning: {}\n", warning);
  for (const std::string& note : done.notes()) fmt::print(out, "note: {}\n", note);
  if (done.capture_incomplete()) fmt::print(out, "capture {}\n", done.verdict());
}

}  // namespace

absl::StatusOr<v1::ExportFormat> ExportFormatOf(const std::string& name, const std::string& path) {
  const auto ends_with = [&path](std::string_view end) {
    return std::string_view(path).ends_with(end);
  };
  if (name == "perfetto") return v1::EXPORT_FORMAT_PERFETTO;
  if (name == "json") return v1::EXPORT_FORMAT_JSON;
  if (name == "events") return v1::EXPORT_FORMAT_EVENTS;
  if (name == "summary-json") return v1::EXPORT_FORMAT_SUMMARY_JSON;
  if (!name.empty()) {
    return InvalidArgument("unknown format '{}': perfetto, json, events or summary-json", name);
  }
  if (ends_with(".jsonl")) return v1::EXPORT_FORMAT_EVENTS;
  if (ends_with("summary.json")) return v1::EXPORT_FORMAT_SUMMARY_JSON;
  return ends_with(".json") ? v1::EXPORT_FORMAT_JSON : v1::EXPORT_FORMAT_PERFETTO;
}

std::string DefaultFileName(v1::ExportFormat format) {
  if (format == v1::EXPORT_FORMAT_JSON) return "system_profile.json";
  if (format == v1::EXPORT_FORMAT_EVENTS) return "events.jsonl";
  if (format == v1::EXPORT_FORMAT_SUMMARY_JSON) return "summary.json";
  return "system_profile.pftrace";
}

void EndAtOnce(int) {
  fmt::print(stderr, "neurontrace: interrupted\n");
  std::_Exit(kExitFailed);
}

int ExportToFile(Context& context, const v1::ExportRequest& request, const std::string& path,
                 InterruptWatcher* interrupts) {
  OutputFile file;
  if (const auto status = file.Open(path); !status.ok()) return Fail(status);
  grpc::ClientContext call;  // no deadline: an export takes as long as it takes
  const Cancellation cancellation(interrupts, file, call);
  const auto reader = context.stub().Export(&call, request);
  ProgressLine line(context.progress && path != "-");
  v1::ExportDone done;
  bool whole = false;
  absl::Status write_status;
  v1::ExportReply reply;
  while (reader->Read(&reply)) {
    if (reply.has_progress()) DrawProgress(line, reply.progress());
    if (reply.has_done()) {
      done = reply.done();
      whole = true;
    }
    if (reply.has_data() && write_status.ok()) {
      write_status = file.Write(reply.data());
      if (!write_status.ok()) call.TryCancel();
    }
  }
  const grpc::Status status = reader->Finish();
  line.Clear();
  if (cancellation.is_interrupted() && !(status.ok() && whole && write_status.ok())) {
    return Fail(absl::CancelledError("interrupted: " + (path == "-" ? "the output" : path) +
                                     " is not written"));
  }
  if (!write_status.ok()) return Fail(write_status);
  if (!status.ok()) return Fail(context, status);
  if (!whole)
    return Fail(DataLoss("the aggregator ended the export of {} too early", request.capture_id()));
  if (const auto closed = file.Close(); !closed.ok()) return Fail(closed);
  Report(context, done, request.format() == v1::EXPORT_FORMAT_SUMMARY_JSON, path);
  return done.capture_incomplete() ? kExitIncomplete : kExitDone;
}

}  // namespace neurontrace::cli
