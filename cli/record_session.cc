// SPDX-License-Identifier: Apache-2.0
#include "cli/record_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "cli/absent_workers.h"
#include "cli/capture_progress.h"
#include "cli/capture_view.h"
#include "cli/export_file.h"
#include "cli/interrupt_watcher.h"
#include "cli/open_instructions.h"
#include "cli/output_place.h"
#include "cli/text.h"
#include "cli/worker_ranks.h"
#include "lib/base/json_writer.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/wire/export_options.h"

namespace neurontrace::cli {
namespace {

// Limits for the start of a daemon and for its connection; a loaded machine needs seconds.
constexpr uint32_t kDaemonStartMs = 30'000;
// The interval at which states that nobody reports are asked for.
constexpr auto kAgentPoll = std::chrono::milliseconds(10);
// Looks at the command's processes begin soon, for short commands, and become rare, because reading
// the maps of a process delays it.
constexpr int64_t kFirstScanNs = 20'000'000;
constexpr int64_t kScanPauseMaxNs = 5'000'000'000;
// The deadline of a call during which signals wait to be forwarded.
constexpr auto kWorkersAnswer = std::chrono::milliseconds(200);
// Signals that are forwarded to the command if they are sent to this program. The terminal sends
// its own to both.
constexpr int kForwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// Returns the monotonic time in ns.
int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RecordSession::RecordSession(Context& context, const RecordOptions& options)
    : context_(context), options_(options), scan_pause_ns_(kFirstScanNs) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  // Blocked before anything starts, so that every later process and thread inherits the mask and
  // the command gets the old one.
  for (const int signal : kForwarded) sigaddset(&mask, signal);
  sigprocmask(SIG_BLOCK, &mask, &old_mask_);
  signals_ = UniqueFd(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
}

RecordSession::~RecordSession() = default;

absl::Status RecordSession::Begin() {
  // The checks before the directory exists fail as a shell would, with its exit codes.
  program_ = FindProgram(options_.command[0], EnvironmentVariable("PATH"));
  if (program_.empty() || !FileExists(program_)) {
    exit_code_ = kExitCommandMissing;
    return NotFound("{}: command not found", options_.command[0]);
  }
  if (access(program_.c_str(), X_OK) != 0) {
    exit_code_ = kExitCannotRun;
    return FailedPrecondition("{} cannot be run: {}", program_, strerror(errno));
  }
  ASSIGN_OR_RETURN(const RecordPrograms programs, FindRecordPrograms(options_.places, FileExists));
  RETURN_IF_ERROR(CheckOutputPlace(options_.path, MakesManyFiles(options_.request)));
  ASSIGN_OR_RETURN(directory_, ScratchDirectory::Make(options_.directory));
  // The kernel limits the length of a socket path.
  const std::string socket = directory_->path() + "/agent.sock";
  if (socket.size() >= sizeof(sockaddr_un::sun_path)) {
    return InvalidArgument("{} is too long for a socket path: name another --directory", socket);
  }
  char* const path = realpath(programs.tap.c_str(), nullptr);  // the command may change directory
  const std::string tap = path == nullptr ? programs.tap : path;
  free(path);
  std::vector<TracedCommand::Variable> variables = {
      {"LD_PRELOAD", WithPreload(tap, EnvironmentVariable("LD_PRELOAD"))},
      {"NEURONTRACE_AGENT_SOCKET", socket}};
  // Another tool of the user stays.
  const std::string annotations = FindAnnotationLibrary(tap, FileExists);
  if (EnvironmentVariable("NVTX_INJECTION64_PATH").empty() && !annotations.empty()) {
    variables.push_back({"NVTX_INJECTION64_PATH", annotations});
  }
  // The process of the command is forked before any thread exists: gRPC and the watcher start
  // threads.
  ASSIGN_OR_RETURN(command_, TracedCommand::Prepare(options_.command, variables, old_mask_));
  tree_ = std::make_unique<ProcessTree>(host_, "/proc", command_->pid());
  // From here on a closed stderr must not end the program.
  signal(SIGPIPE, SIG_IGN);  // whoever reads our stderr may go; the trace is written all the same
  absl::Status status = StartDaemons(programs, socket);
  if (status.ok()) status = StartCapture();
  // The user ended the command while the daemons started, so the failures that follow from this are
  // no errors.
  if (IsAbandoned()) return absl::OkStatus();
  RETURN_IF_ERROR(status);
  return Release();
}

absl::Status RecordSession::StartDaemons(const RecordPrograms& programs,
                                         const std::string& socket) {
  const auto is_abandoned = [this] { return IsAbandoned(); };
  const std::string& path = directory_->path();
  // The store matters only to this run, and there is no run after a crash of the machine, so it
  // need not survive one.
  ASSIGN_OR_RETURN(aggregator_,
                   DaemonProcess::Start(
                       {programs.aggregator, "--listen", "127.0.0.1:0", "--store", path + "/store",
                        "--health-address", "127.0.0.1:0", "--durability", "page-cache"},
                       path + "/aggregator.log"));
  // This aggregator is on loopback and has no certificates; those of the user are for the site's.
  context_.security = {};
  ASSIGN_OR_RETURN(context_.aggregator,
                   aggregator_->WaitForLine("listening on ", kDaemonStartMs, is_abandoned));
  // The agent's own search for processes is off, because only those of the command are recorded.
  std::vector<std::string> agent = {programs.agent,
                                    "--aggregator",
                                    context_.aggregator,
                                    "--socket",
                                    socket,
                                    "--spool",
                                    "none",
                                    "--health-address",
                                    "127.0.0.1:0",
                                    "--drain-seconds",
                                    "3",
                                    "--no-process-scan"};
  if (!options_.framework_directory.empty()) {
    agent.insert(agent.end(), {"--framework-dir", options_.framework_directory});
  }
  ASSIGN_OR_RETURN(agent_, DaemonProcess::Start(agent, path + "/agent.log"));
  return agent_->WaitForLine("listening on ", kDaemonStartMs, is_abandoned).status();
}

absl::Status RecordSession::WaitForAgent() {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kDaemonStartMs);
  for (;;) {
    grpc::ClientContext call;
    SetDeadline(call, context_);
    v1::GetStatusReply reply;
    const grpc::Status status = context_.stub().GetStatus(&call, {}, &reply);
    if (status.ok() && reply.agents_connected() > 0) return absl::OkStatus();
    if (IsAbandoned() || std::chrono::steady_clock::now() > deadline) {
      return Unavailable("the agent cannot reach its aggregator at {}: {}", context_.aggregator,
                         status.error_message());
    }
    std::this_thread::sleep_for(kAgentPoll);
  }
}

absl::Status RecordSession::StartCapture() {
  RETURN_IF_ERROR(WaitForAgent());
  grpc::ClientContext call;
  SetDeadline(call, context_);
  v1::StartCaptureRequest request;
  *request.mutable_spec() = options_.spec;
  const grpc::Status status = context_.stub().StartCapture(&call, request, &capture_);
  if (!status.ok()) return Unavailable("cannot start a capture: {}", status.error_message());
  return WaitForBegin();
}

// Waits until the planned begin has passed. A fast worker would otherwise have events before the
// moment at which recording begins, and lose them.
absl::Status RecordSession::WaitForBegin() {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kDaemonStartMs);
  const std::string id = capture_.capture_id();
  while (!IsPastBegin(capture_)) {
    // Ended captures have the reason in their first warning.
    if (HasEnded(capture_)) {
      return Unavailable("the capture did not start: {}",
                         capture_.warnings().empty() ? "" : capture_.warnings(0));
    }
    if (IsAbandoned() || std::chrono::steady_clock::now() > deadline) {
      return Unavailable("the capture did not start in time");
    }
    std::this_thread::sleep_for(kAgentPoll);
    const grpc::Status status = GetCapture(context_, id, capture_);
    if (!status.ok()) {
      return Unavailable("the aggregator does not answer: {}", status.error_message());
    }
  }
  return absl::OkStatus();
}

absl::Status RecordSession::Release() {
  const int error = command_->Release();
  scan_at_ns_ = MonotonicNs() + scan_pause_ns_;
  if (error == 0) return absl::OkStatus();
  // A missing file has an exit code of its own; all other errors of exec share one.
  exit_code_ = error == ENOENT ? kExitCommandMissing : kExitCannotRun;
  return FailedPrecondition("{} cannot be run: {}", program_, strerror(error));
}

bool RecordSession::IsAbandoned() { return command_->HasEnded(); }

void RecordSession::AwaitCommand() {
  // Waits for signals or the next look, whichever is first. Rounding up avoids a loop of empty
  // waits.
  while (!command_->HasEnded()) {
    const int64_t wait_ns =
        scan_at_ns_ == 0 ? -1 : std::max<int64_t>(0, scan_at_ns_ - MonotonicNs());
    pollfd ready = {signals_.get(), POLLIN, 0};
    poll(&ready, 1, wait_ns < 0 ? -1 : static_cast<int>(wait_ns / 1'000'000 + 1));
    signalfd_siginfo signal;
    while (read(signals_.get(), &signal, sizeof(signal)) == sizeof(signal)) Handle(signal);
    if (scan_at_ns_ != 0 && MonotonicNs() >= scan_at_ns_) ScanProcesses();
  }
  exit_code_ = command_->exit_code();
}

void RecordSession::Handle(const signalfd_siginfo& signal) {
  if (signal.ssi_signo == SIGCHLD) {
    RecordDaemons();
    return;
  }
  // The terminal sends its signals to the whole process group, so the command has received them.
  // Signals from the command's own processes to their group have also reached it.
  if (signal.ssi_code > 0 || tree_->Has(signal.ssi_pid)) return;
  command_->Forward(static_cast<int>(signal.ssi_signo));
}

void RecordSession::RecordDaemons() {
  if (!lost_daemon_.empty()) return;
  if (aggregator_ != nullptr && !aggregator_->is_running()) lost_daemon_ = "aggregator";
  if (agent_ != nullptr && !agent_->is_running()) lost_daemon_ = "agent";
}

// Looks only until there is a worker, because afterwards nobody asks why there is none.
void RecordSession::ScanProcesses() {
  if (HasWorkers()) {
    scan_at_ns_ = 0;
    return;
  }
  tree_->Scan();
  scan_pause_ns_ = std::min(scan_pause_ns_ * 2, kScanPauseMaxNs);
  scan_at_ns_ = MonotonicNs() + scan_pause_ns_;
}

bool RecordSession::HasWorkers() {
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + kWorkersAnswer);
  v1::CaptureReference reference;
  reference.set_capture_id(capture_.capture_id());
  v1::Capture capture;
  return context_.stub().GetCapture(&call, reference, &capture).ok() && capture.workers_size() > 0;
}

// --- After the command ---

namespace {

constexpr auto kStatePoll = std::chrono::milliseconds(20);

// Collects the output of an export as a string in place of Context::results, until Take or the
// destructor.
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

  // Returns what was written and restores the context's output. Further calls return the same.
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

// Returns JSON without its line breaks, none of them inside a string; "null" for no text.
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
  // From here on Ctrl-C concerns this program alone: the command has ended.
  InterruptWatcher interrupts([this](int count) {
    if (count == 1) {
      Print(stderr,
            "neurontrace: the command has ended and the trace is being written; press again to "
            "exit without it\n");
      return;
    }
    if (count > 2) EndAtOnce(count);  // it waits for the reader of a pipe, or for a disk
    // Every call to the killed daemons ends at once, and with it whatever waits for an answer.
    if (agent_ != nullptr) agent_->Kill();
    if (aggregator_ != nullptr) aggregator_->Kill();
  });
  RecordDaemons();
  if (capture_.capture_id().empty()) {  // ended by a signal before there was one
    problem_ = "the command was ended before it started; no trace";
    PrintMessage(problem_ + "\n");
  } else if (const absl::Status stopped = StopCapture(); !stopped.ok()) {
    PreserveStore(std::string(stopped.message()));
  } else {
    Report();
  }
  // The agent stops first, while its aggregator still accepts what it sends.
  if (agent_ != nullptr) agent_->Stop();
  if (aggregator_ != nullptr) aggregator_->Stop();
  if (options_.keep_store && !has_kept_store_) {
    directory_->Keep();
    has_kept_store_ = true;
    PrintMessage(fmt::format("the store is kept in {}/store\n", directory_->path()));
  }
  if (options_.json) PrintJson();
}

void RecordSession::ReportFailure(const absl::Status& status) {
  if (!options_.json) {
    Fail(status);
    return;
  }
  problem_ = std::string(status.message());
  PrintJson();
}

// Messages are lines of this program among those of the command on stderr.
void RecordSession::PrintMessage(const std::string& text) const {
  if (!options_.quiet && !options_.json) Print(stderr, "neurontrace: {}", text);
}

// The object starts on a line of its own, whatever the command has left on the last one.
void RecordSession::PrintJson() const {
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
  // The capture ends when all data is stored; no limit, as the daemons end or answer.
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
    // The private aggregator ends with this run and does not return, so a retry or a kept part
    // would be useless.
    context_.export_retry_ms = 0;
    code = ExportToFile(context_, request,
                        {.path = options_.path, .partial_files = PartialFiles::kIgnore});
    exported_ = results.Take();
  }
  if (has_events && !options_.json) {
    PrintMessage(fmt::format("the command ended with {}\n", command_->Outcome()));
    WorkerRanks ranks;
    ranks.Take(capture_);
    const std::string outcome = FormatCapture(capture_, ranks, CaptureDetail::kShort);
    if (!options_.quiet) Print(stderr, "{}{}", outcome, exported_);
  }
  if (!has_events) PrintWhyNothing();
  if (has_events && code == kExitFailed) PreserveStore("the trace could not be written");
  const std::string how = OpenInstructions(options_.request, options_.path);
  if (code != kExitFailed && !how.empty() && !options_.json && !options_.quiet) {
    Print(stderr, "{}\n", how);
  }
}

// The reasons are ordered from certain to likely.
std::vector<std::string> RecordSession::NoRecordingReasons() {
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

void RecordSession::PrintWhyNothing() {
  reasons_ = NoRecordingReasons();
  if (options_.json) return;
  std::string lines;
  for (const std::string& reason : reasons_) lines += "  " + reason + "\n";
  // This is printed in spite of --quiet, because the missing trace was the purpose of the run.
  Print(stderr, "neurontrace: {}\n{}", problem_, lines);
}

void RecordSession::PreserveStore(const std::string& why) {
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
