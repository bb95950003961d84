// SPDX-License-Identifier: Apache-2.0
#include "cli/export_file.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/status.h"
#include "cli/capture_view.h"
#include "cli/export_destination.h"
#include "cli/progress_line.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

// While it lives, an interrupt cancels the call.
class Cancellation {
 public:
  Cancellation(InterruptWatcher* interrupts, std::string temporary, grpc::ClientContext& call)
      : interrupts_(interrupts) {
    if (interrupts_ == nullptr) return;
    interrupts_->Redirect([this, &call, temporary = std::move(temporary)](int count) {
      if (count > 1) {  // whatever holds it up, a disk or the reader of a pipe
        RemoveTemporary(temporary);
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

  // From now on interrupts do nothing: what is on the disk is put in order. The call has ended.
  void Hold() {
    if (interrupts_ != nullptr) interrupts_->Redirect([](int) {});
  }

 private:
  InterruptWatcher* const interrupts_;
  std::atomic<bool> is_interrupted_ = false;
};

void DrawProgress(ProgressLine& line, const v1::ExportProgress& progress) {
  const double fraction = progress.chunks_total() == 0
                              ? -1
                              : static_cast<double>(progress.chunks_read()) /
                                    static_cast<double>(progress.chunks_total());
  line.Draw(fraction, fmt::format("exporting{}{}: {} spans, {}", progress.step().empty() ? "" : " ",
                                  progress.step(), FormatCount(progress.spans()),
                                  FormatBytes(progress.bytes_written())));
}

absl::Status Put(const v1::ExportReply& reply, ExportDestination& destination) {
  switch (reply.reply_case()) {
    case v1::ExportReply::kFile:
      return destination.Begin(reply.file());
    case v1::ExportReply::kData:
      return destination.Write(reply.file_number(), reply.data());
    case v1::ExportReply::kFileEnd:
      return destination.End(reply.file_number());
    default:
      return absl::OkStatus();
  }
}

// How a call for an export ended.
struct Received {
  bool is_whole() const { return written.ok() && call.ok() && done.has_value(); }

  absl::Status written;
  grpc::Status call;
  std::optional<v1::ExportDone> done;
};

Received Receive(Context& context, const v1::ExportRequest& request, const std::string& path,
                 grpc::ClientContext& call, ExportDestination& destination) {
  const auto reader = context.stub().Export(&call, request);
  ProgressLine line(context.progress && path != "-");
  Received received;
  v1::ExportReply reply;
  while (reader->Read(&reply)) {
    if (reply.has_progress()) DrawProgress(line, reply.progress());
    if (reply.has_done()) received.done = reply.done();
    if (!received.written.ok()) continue;  // the call is on its way to its end
    received.written = Put(reply, destination);
    if (!received.written.ok()) call.TryCancel();
  }
  received.call = reader->Finish();
  line.Clear();
  return received;
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

void ReportDelivery(const Context& context, const v1::ExportDone& done) {
  if (context.json) {
    fmt::print(context.results, "{}", FormatJson(done));
    return;
  }
  fmt::print(context.results, "the aggregator wrote {}: {} files, {}", done.written_to(),
             FormatCount(done.files_written()), FormatBytes(done.total().bytes_written()));
  if (done.files_there() != 0) {
    fmt::print(context.results, "; {} were there", FormatCount(done.files_there()));
  }
  fmt::print(context.results, "\n");
  for (const std::string& warning : done.warnings()) {
    fmt::print(context.results, "warning: {}\n", warning);
  }
  for (const std::string& note : done.notes()) fmt::print(context.results, "note: {}\n", note);
  if (done.capture_incomplete()) fmt::print(context.results, "capture {}\n", done.verdict());
}

}  // namespace

void EndAtOnce(int) {
  fmt::print(stderr, "neurontrace: interrupted\n");
  std::_Exit(kExitFailed);
}

int ExportToFile(Context& context, const v1::ExportRequest& request, const std::string& path,
                 InterruptWatcher* interrupts) {
  const bool is_directory = WordsOf(request.format()).is_directory || request.max_file_bytes() != 0;
  auto destination = is_directory ? OpenDirectoryDestination(path) : OpenFileDestination(path);
  if (!destination.ok()) return Fail(destination.status());
  grpc::ClientContext call;  // no deadline: an export takes as long as it takes
  Cancellation cancellation(interrupts, (*destination)->temporary(), call);
  Received received = Receive(context, request, path, call, **destination);
  cancellation.Hold();
  if (received.is_whole()) {
    received.written = (*destination)->Keep();
  } else if (cancellation.is_interrupted()) {
    received.written = absl::CancelledError("interrupted: " + (path == "-" ? "the output" : path) +
                                            " is not written");
  }
  destination->reset();  // what is not kept goes while interrupts wait
  if (!received.written.ok()) return Fail(received.written);
  if (!received.call.ok()) return Fail(context, received.call);
  if (!received.done.has_value()) {
    return Fail(DataLoss("the aggregator ended the export of {} too early", request.capture_id()));
  }
  Report(context, *received.done,
         request.format() == v1::EXPORT_FORMAT_SUMMARY_JSON ||
             request.format() == v1::EXPORT_FORMAT_SUMMARY_TEXT,
         path);
  return received.done->capture_incomplete() ? kExitIncomplete : kExitDone;
}

int ExportToDestination(Context& context, const v1::ExportRequest& request,
                        InterruptWatcher* interrupts) {
  grpc::ClientContext call;
  const Cancellation cancellation(interrupts, "", call);
  const auto reader = context.stub().Export(&call, request);
  std::optional<v1::ExportDone> done;
  {
    ProgressLine line(context.progress);
    v1::ExportReply reply;
    while (reader->Read(&reply)) {
      if (reply.has_progress()) DrawProgress(line, reply.progress());
      if (reply.has_done()) done = reply.done();
    }
    line.Clear();
  }
  const grpc::Status status = reader->Finish();
  if (!done && cancellation.is_interrupted()) {
    return Fail(absl::CancelledError(
        fmt::format("interrupted: {} is not whole, and has no manifest.json; the same command goes "
                    "on with it",
                    request.destination())));
  }
  if (!status.ok()) return Fail(context, status);
  if (!done || done->written_to().empty()) {
    return Fail(DataLoss("the aggregator did not write {}: is it older than this command?",
                         request.destination()));
  }
  ReportDelivery(context, *done);
  return done->capture_incomplete() ? kExitIncomplete : kExitDone;
}

}  // namespace neurontrace::cli
