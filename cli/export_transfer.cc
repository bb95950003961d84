// SPDX-License-Identifier: Apache-2.0
#include "cli/export_transfer.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/text.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Pauses between calls: short enough for a restart of the aggregator, and growing so that an absent
// one is not called in a tight loop.
constexpr milliseconds kFirstPause(100);
constexpr milliseconds kLongestPause(2'000);
// Limit of restarts, as an export may change all the time while its capture runs.
constexpr int kRestartsMax = 3;

// Returns whether the same call may succeed later: the aggregator is unreachable, or ended the call
// because it stops.
bool CanPass(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::CANCELLED;
}

}  // namespace

void DrawExportProgress(ProgressLine& line, const v1::ExportProgress& progress,
                        uint64_t held_bytes) {
  const double fraction = progress.chunks_total() == 0
                              ? -1
                              : static_cast<double>(progress.chunks_read()) /
                                    static_cast<double>(progress.chunks_total());
  // Only an export to the aggregator's own destination names a step.
  const std::string step = progress.step().empty() ? "" : " " + progress.step();
  const bool is_held = progress.bytes_written() < held_bytes;
  line.Draw(
      fraction,
      fmt::format("exporting{}: {} spans, {}{}", step, FormatCount(progress.spans()),
                  FormatBytes(progress.bytes_written()),
                  is_held ? fmt::format(", resuming after {}", FormatBytes(held_bytes)) : ""));
}

ExportTransfer::ExportTransfer(Context& context, const v1::ExportRequest& request,
                               ExportDestination& destination, ExportInterrupt& interrupt,
                               bool draws)
    : context_(context),
      destination_(destination),
      interrupt_(interrupt),
      asked_(request),
      line_(draws),
      pause_(kFirstPause) {}

Transferred ExportTransfer::Run() {
  Transferred ended;
  ended.written = Resume();
  if (!ended.written.ok()) return ended;
  if (held_bytes_ != 0) {
    ReportProgress(fmt::format("resuming {}: {} already received", destination_.part()->path(),
                               FormatBytes(held_bytes_)));
  }
  do {
    ended = Call();
  } while (TryAgain(ended));
  // Progress is removed before any result is printed.
  line_.Clear();
  ended.is_interrupted = interrupt_.is_interrupted();
  ended.bytes = held_bytes_ + fresh_bytes_;
  ended.can_resume = ended.written.ok() && (ended.is_interrupted || CanPass(ended.call));
  return ended;
}

Transferred ExportTransfer::Call() {
  Transferred ended;
  fresh_bytes_ = 0;
  differs_.clear();
  // The call has no deadline, as the duration of an export is not known.
  grpc::ClientContext call;
  interrupt_.SetCall(&call);
  const auto reader = context_.stub().Export(&call, asked_);
  v1::ExportReply reply;
  while (reader->Read(&reply)) {
    has_answered_ = true;
    if (reply.has_progress()) DrawExportProgress(line_, reply.progress(), held_bytes_);
    if (reply.has_done()) ended.done = reply.done();
    if (reply.has_held_differs()) differs_ = reply.held_differs();
    // The call was cancelled because of the destination; the rest is read until the stream ends, as
    // gRPC requires before Finish.
    if (!ended.written.ok()) continue;
    ended.written = Take(reply);
    if (!ended.written.ok()) call.TryCancel();
  }
  ended.call = reader->Finish();
  interrupt_.SetCall(nullptr);
  return ended;
}

absl::Status ExportTransfer::Take(const v1::ExportReply& reply) {
  switch (reply.reply_case()) {
    case v1::ExportReply::kFile:
      return destination_.Begin(reply.file(), reply.held_bytes());
    case v1::ExportReply::kData:
      fresh_bytes_ += reply.data().size();
      return destination_.Write(reply.file_number(), reply.data());
    case v1::ExportReply::kFileEnd:
      return destination_.End(reply.file_number());
    default:
      return absl::OkStatus();
  }
}

bool ExportTransfer::TryAgain(Transferred& ended) {
  if (ended.is_whole() || !ended.written.ok() || interrupt_.is_interrupted()) return false;
  // Bytes in a pipe cannot be read back and compared with the export.
  if (destination_.part() == nullptr) return false;
  if (!differs_.empty() && ++restart_count_ <= kRestartsMax) {
    ended.written = Restart();
    return ended.written.ok();
  }
  // An aggregator that has never answered is more likely a wrong address than a restart.
  if (!CanPass(ended.call) || !has_answered_) return false;
  const auto now = steady_clock::now();
  // Every new byte restarts the time, so that a slow connection that breaks often still succeeds.
  if (!broken_at_ || fresh_bytes_ != 0) {
    if (!broken_at_) ReportProgress(fmt::format("{}; retrying", ended.call.error_message()));
    broken_at_ = now;
    pause_ = kFirstPause;
  }
  const auto left = std::chrono::duration_cast<milliseconds>(
      *broken_at_ + milliseconds(context_.export_retry_ms) - now);
  if (left <= milliseconds(0)) return false;
  line_.Draw(-1, fmt::format("no answer from the aggregator, retrying for another {} s",
                             left.count() / 1'000 + 1));
  if (!interrupt_.Wait(std::min(pause_, left))) return false;
  pause_ = std::min(2 * pause_, kLongestPause);
  // The files are read again because the interrupted call may have written to them.
  ended.written = Resume();
  return ended.written.ok();
}

absl::Status ExportTransfer::Resume() {
  asked_.clear_held();
  held_bytes_ = 0;
  ASSIGN_OR_RETURN(std::vector<v1::HeldFile> held, destination_.Resume());
  for (v1::HeldFile& file : held) {
    held_bytes_ += file.bytes();
    *asked_.add_held() = std::move(file);
  }
  return absl::OkStatus();
}

absl::Status ExportTransfer::Restart() {
  ReportProgress(
      fmt::format("{}: the export changed since the partial download, because of better clock "
                  "models or more events; the export starts over",
                  differs_));
  asked_.clear_held();
  held_bytes_ = 0;
  return destination_.Restart();
}

void ExportTransfer::ReportProgress(const std::string& words) {
  if (context_.quiet || context_.json) return;
  line_.Clear();
  Print(stderr, "note: {}\n", words);
}

}  // namespace neurontrace::cli
