// SPDX-License-Identifier: Apache-2.0
// How a run of `neurontrace record` ends: the half of RecordSession that comes after the command.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "cli/absent_workers.h"
#include "cli/capture_view.h"
#include "cli/export_file.h"
#include "cli/how_to_open.h"
#include "cli/interrupt_watcher.h"
#include "cli/record_session.h"
#include "cli/text.h"
#include "cli/worker_ranks.h"
#include "lib/base/json_writer.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

constexpr auto kStatePoll = std::chrono::milliseconds(20);

// The output of an export, as a string.
class Results {
 public:
  explicit Results(Context& context) : context_(context), before_(context.results) {
    context.results = open_memstream(&text_, &bytes_);
  }
  ~Results() {
    Take();
    free(text_);
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  std::string Take() {
    if (context_.results != before_) std::fclose(context_.results);
    context_.results = before_;
    return std::string(text_ == nullptr ? "" : text_, bytes_);
  }

 private:
  Context& context_;
  std::FILE* const before_;
  char* text_ = nullptr;
  size_t bytes_ = 0;
};

// JSON without its line breaks, which are in no string of it.
std::string OnOneLine(const std::string& text) {
  std::string line;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    line += text.substr(from, end - from);
    from = std::min(text.find_first_not_of(' ', end + 1), text.size());
  }
  return line.empty() ? "null" : line;
}

}  // namespace

void RecordSession::Conclude() {
  InterruptWatcher interrupts([this](int count) {
    if (count == 1) {
      Print(stderr,
            "neurontrace: the command has ended and the trace is being written; press again to "
            "exit without it\n");
      return;
    }
    if (count > 2) EndAtOnce(count);  // it waits for the reader of a pipe, or for a disk
    // Every call to them ends at once, and with it what waits for an answer.
    if (agent_ != nullptr) agent_->Kill();
    if (aggregator_ != nullptr) aggregator_->Kill();
  });
  NoteDaemons();
  if (capture_.capture_id().empty()) {  // ended by a signal before there was one
    problem_ = "the command was ended before it started; no trace";
    Say(problem_ + "\n");
  } else if (const absl::Status stopped = StopCapture(); !stopped.ok()) {
    KeepStore(std::string(stopped.message()));
  } else {
    Report();
  }
  if (agent_ != nullptr) agent_->Stop();
  if (aggregator_ != nullptr) aggregator_->Stop();
  if (options_.keep_store && !has_kept_store_) {
    directory_->Keep();
    has_kept_store_ = true;
    Say(fmt::format("the store is kept in {}/store\n", directory_->path()));
  }
  if (options_.json) TellJson();
}

void RecordSession::TellFailure(const absl::Status& status) {
  if (!options_.json) {
    Fail(status);
    return;
  }
  problem_ = std::string(status.message());
  TellJson();
}

// A line of ours among the command's on stderr.
void RecordSession::Say(const std::string& text) const {
  if (!options_.quiet && !options_.json) Print(stderr, "neurontrace: {}", text);
}

// On a line of its own, whatever the command has left on the last one.
void RecordSession::TellJson() const {
  const bool has_capture = !capture_.capture_id().empty();
  JsonWriter out(JsonWriter::Style::kSpaced);
  out.Open('{').Member("exit_code", exit_code_).Key("capture");
  out.Json(has_capture ? OnOneLine(FormatCaptureJson(capture_)) : "null");
  out.Key("export").Json(OnOneLine(exported_)).Member("problem", problem_);
  out.Member("reasons", reasons_);
  out.Member("store", has_kept_store_ ? directory_->path() + "/store" : "").Close('}');
  Print(stderr, "\n{}\n", out.Take());
}

absl::Status RecordSession::StopCapture() {
  v1::CaptureReference reference;
  reference.set_capture_id(capture_.capture_id());
  {
    grpc::ClientContext call;
    SetDeadline(call, context_);
    const grpc::Status status = context_.stub().StopCapture(&call, reference, &capture_);
    const bool has_ended = status.error_code() == grpc::StatusCode::NOT_FOUND;  // by itself
    if (!status.ok() && !has_ended) {
      return Unavailable("the aggregator does not answer: {}", status.error_message());
    }
  }
  for (;; std::this_thread::sleep_for(kStatePoll)) {
    grpc::Status status = GetCapture(context_, reference.capture_id(), capture_);
    if (!status.ok()) {
      return Unavailable("the aggregator does not answer: {}", status.error_message());
    }
    if (HasEnded(capture_)) return absl::OkStatus();
  }
}

void RecordSession::Report() {
  int code = kExitFailed;
  const bool has_events = capture_.events() > 0;
  if (has_events) {
    Results results(context_);
    v1::ExportRequest request = options_.request;
    request.set_capture_id(capture_.capture_id());
    // Its aggregator ends with it and does not come back: nobody could go on.
    context_.export_retry_ms = 0;
    code =
        ExportToFile(context_, request, {.path = options_.path, .leaving = Leaving::kOfNoMeaning});
    exported_ = results.Take();
  }
  if (has_events && !options_.json) {
    Say(fmt::format("the command ended with {}\n", command_->Outcome()));
    WorkerRanks ranks;
    ranks.Take(capture_);
    const std::string outcome = FormatCapture(capture_, ranks, CaptureDetail::kShort);
    if (!options_.quiet) Print(stderr, "{}{}", outcome, exported_);
  }
  if (!has_events) SayWhyNothing();
  if (has_events && code == kExitFailed) KeepStore("the trace could not be written");
  const std::string how = HowToOpen(options_.request, options_.path);
  if (code != kExitFailed && !how.empty() && !options_.json && !options_.quiet) {
    Print(stderr, "{}\n", how);
  }
}

std::vector<std::string> RecordSession::WhyNothing() {
  std::vector<std::string> reasons;
  if (!lost_daemon_.empty()) {
    reasons.push_back(fmt::format("the private {} ended early", lost_daemon_));
  }
  if (getenv("NEURON_RT_INSPECT_ENABLE") != nullptr) {
    reasons.push_back(
        "NEURON_RT_INSPECT_ENABLE is set, so the runtime's own profiler takes the events; unset "
        "it");
  }
  bool has_worker = false;
  for (const v1::CaptureWorkerStatus& worker : capture_.workers()) {
    if (worker.framework()) continue;
    has_worker = true;
    reasons.push_back(fmt::format("pid {}: {}", worker.worker().pid(),
                                  worker.detail().empty() ? "recorded no event" : worker.detail()));
  }
  problem_ = fmt::format("no trace of {}: {}", options_.command[0],
                         has_worker ? "its workers recorded nothing" : "no worker appeared");
  if (has_worker) return reasons;
  for (std::string& reason : ExplainNoWorker(*tree_, PreloadObstacle(host_, program_))) {
    reasons.push_back(std::move(reason));
  }
  return reasons;
}

void RecordSession::SayWhyNothing() {
  reasons_ = WhyNothing();
  if (options_.json) return;
  std::string lines;
  for (const std::string& reason : reasons_) lines += "  " + reason + "\n";
  // Also for those who asked for quiet: they asked for a trace first.
  Print(stderr, "neurontrace: {}\n{}", problem_, lines);
}

void RecordSession::KeepStore(const std::string& why) {
  if (directory_ == nullptr) return;
  directory_->Keep();
  has_kept_store_ = true;
  problem_ = why;
  if (options_.json) return;
  Print(stderr,
        "neurontrace: {}\n"
        "  The recorded data is in {}/store: run neurontrace-aggregator --store {}/store, then\n"
        "  neurontrace export {} -o trace.pftrace. The daemons' logs are beside it.\n",
        why, directory_->path(), directory_->path(), capture_.capture_id());
}

}  // namespace neurontrace::cli
