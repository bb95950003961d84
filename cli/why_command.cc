// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/interrupt_watcher.h"
#include "cli/progress_line.h"
#include "cli/record_programs.h"
#include "cli/shared_options.h"
#include "cli/store_aggregator.h"
#include "cli/text.h"
#include "cli/time_window.h"
#include "cli/why_view.h"
#include "lib/base/clean_text.h"
#include "lib/base/clock.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/trace/watch_limits.h"

namespace neurontrace::cli {
namespace {

// As often as the aggregator judges.
constexpr std::chrono::nanoseconds kWatchPeriod{limits::kWatchJudgeMinNs};
// While it does not answer.
constexpr std::chrono::seconds kRetryPeriod{1};
constexpr uint64_t kProgressAfterNs = 1'000'000'000;

// Shows on a terminal how much of a capture has been read. A short answer needs no line.
class ReadingProgress {
 public:
  ReadingProgress(bool enabled, const v1::Capture& capture)
      : line_(enabled), events_(capture.events()), began_ns_(clock_.MonotonicNs()) {}

  void Draw(const v1::ExplainProgress& progress) {
    const uint64_t passed_ns = clock_.MonotonicNs() - began_ns_;
    if (passed_ns < kProgressAfterNs) return;
    const double fraction = progress.chunks_total() == 0
                                ? -1
                                : static_cast<double>(progress.chunks_read()) /
                                      static_cast<double>(progress.chunks_total());
    line_.Draw(fraction, fmt::format("judging a capture of {} events for {}", FormatCount(events_),
                                     FormatDuration(passed_ns)));
  }

 private:
  const SystemClock clock_;
  ProgressLine line_;
  const uint64_t events_;
  const uint64_t began_ns_;
};

// Values of the options as typed.
struct InsightQuery {
  std::string id;
  std::string window;
  std::string from;
  std::string to;
  std::string job;
  bool json = false;
  bool live = false;
  bool watch = false;
  std::string store;
  ProgramPlaces places;

  bool is_live() const { return live || watch; }
};

// Returns the request without its capture. Fails with INVALID_ARGUMENT for options that exclude
// each other. Makes no call.
absl::StatusOr<v1::ExplainRequest> ExplainRequestOf(const InsightQuery& options) {
  const bool has_window = !options.window.empty() || !options.from.empty() || !options.to.empty();
  if (options.is_live() && !options.id.empty()) {
    return InvalidArgument("{} asks the running watch; omit {}, or {} for the capture",
                           options.watch ? "--watch" : "--live", options.id,
                           options.watch ? "--watch" : "--live");
  }
  if (!options.is_live() && options.id.empty()) {
    return InvalidArgument(
        "no capture given; pass its ID, or --live for the running watch (neurontrace captures "
        "lists captures)");
  }
  if (options.is_live() && (has_window || !options.store.empty())) {
    return InvalidArgument("--live and --watch answer for now; omit the window and --store");
  }
  std::string from = options.from;
  std::string to = options.to;
  if (!options.window.empty()) {
    const size_t dots = options.window.find("..");
    if (!from.empty() || !to.empty() || dots == std::string::npos) {
      return InvalidArgument(
          "--window {}: write FROM..TO, such as 1s..2.5s, without --from and --to", options.window);
    }
    from = options.window.substr(0, dots);
    to = options.window.substr(dots + 2);
  }
  ASSIGN_OR_RETURN(const TimeWindow window, ParseTimeWindow(from, to));
  v1::ExplainRequest request;
  request.set_job(options.job);
  request.set_begin_ns(window.start_ns);
  request.set_begin_is_relative(window.start_is_relative);
  request.set_end_ns(window.end_ns);
  request.set_end_is_relative(window.end_is_relative);
  request.set_is_before_now(window.is_before_now);
  return request;
}

// Prints the answer and returns the exit code.
int PrintAnswer(const Context& context, const v1::InsightReport& report) {
  if (context.json) {
    Print("{}", FormatJson(report));
  } else {
    Print("{}", FormatInsight(report, context.columns));
  }
  return ExitCodeOf(report);
}

// Asks once about a capture. Reading it takes as long as it takes: the call has no deadline, but
// the one before it has.
int ExplainCapture(Context& context, v1::ExplainRequest request, const std::string& id) {
  v1::Capture capture;
  if (const auto status = GetCapture(context, id, capture); !status.ok()) {
    return Fail(context, status);
  }
  request.set_capture_id(capture.capture_id());
  grpc::ClientContext call;
  v1::ExplainReply reply;
  {
    ReadingProgress progress(context.progress, capture);
    const auto reader = context.stub().ExplainCapture(&call, request);
    while (reader->Read(&reply)) {
      if (reply.has_progress()) progress.Draw(reply.progress());
    }
    const grpc::Status status = reader->Finish();
    if (!status.ok()) return Fail(context, status);
  }
  // The report is the last reply.
  if (!reply.has_report()) return Fail(DataLoss("the aggregator ended its answer too early"));
  return PrintAnswer(context, reply.report());
}

grpc::Status AskWatch(Context& context, const v1::ExplainRequest& request,
                      v1::InsightReport& report) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  return context.stub().Explain(&call, request, &report);
}

// Returns whether a later call may be answered: the aggregator is being restarted, or its watch was
// turned off and may be turned on again.
bool IsTemporary(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::NOT_FOUND:
      return true;
    default:
      return false;
  }
}

// Reports on stderr when answers stop coming and come again, once each.
class AnswerNotices {
 public:
  explicit AnswerNotices(const Clock& clock) : clock_(clock) {}

  void OnAnswer() {
    if (failure_ != grpc::StatusCode::OK) {
      Print(stderr, "neurontrace: {}: the watch answers again\n", FormatTime(clock_.RealtimeNs()));
    }
    failure_ = grpc::StatusCode::OK;
  }
  void OnFailure(const grpc::Status& status) {
    if (failure_ == status.error_code()) return;
    failure_ = status.error_code();
    Print(stderr, "neurontrace: {}: the watch does not answer: {}; asking again until Ctrl-C\n",
          FormatTime(clock_.RealtimeNs()), CleanText(status.error_message(), kFailureBytesMax));
  }

 private:
  static constexpr size_t kFailureBytesMax = 1'024;
  const Clock& clock_;
  grpc::StatusCode failure_ = grpc::StatusCode::OK;
};

// Asks as often as is judged until an interrupt, and prints what changed. The first answer has to
// come; from then on an aggregator that is away is asked again.
int FollowWatch(Context& context, const v1::ExplainRequest& request) {
  Interrupt interrupt;
  const InterruptWatcher watcher([&interrupt](int) { interrupt.Set(); });
  const SystemClock clock;
  InsightChanges changes;
  AnswerNotices notices(clock);
  int code = kExitDone;
  bool has_answer = false;
  std::chrono::nanoseconds pause = kWatchPeriod;
  do {
    v1::InsightReport report;
    if (const auto status = AskWatch(context, request, report); !status.ok()) {
      if (interrupt.is_set()) return code;
      if (!has_answer || !IsTemporary(status)) return Fail(context, status);
      notices.OnFailure(status);
      pause = kRetryPeriod;
      continue;
    }
    has_answer = true;
    pause = kWatchPeriod;
    notices.OnAnswer();
    const std::string text = changes.Take(report, clock.RealtimeNs(), context.columns);
    if (!text.empty()) {
      Print("{}", context.json ? FormatJsonLine(report) : text);
      // The reader of a pipe needs each change when it happens.
      std::fflush(stdout);
    }
    code = ExitCodeOf(report);
  } while (!interrupt.WaitFor(pause));
  return code;
}

// Asks about a capture of a store on which no aggregator runs, by starting one.
int ExplainStored(Context& context, const v1::ExplainRequest& request,
                  const InsightQuery& options) {
  // Before any thread starts, as it forks.
  const auto own = StoreAggregator::Start(options.store, options.places);
  if (!own.ok()) return Fail(own.status());
  Interrupt interrupt;
  const InterruptWatcher watcher([&interrupt](int) { interrupt.Set(); });
  const auto address = (*own)->WaitForAddress([&interrupt] { return interrupt.is_set(); });
  if (!address.ok()) return Fail(address.status());
  // It is on loopback and has no certificates; those of the user are for the site's.
  context.aggregator = *address;
  context.security = {};
  return ExplainCapture(context, request, options.id);
}

int RunWhy(Context& context, const InsightQuery& options) {
  if (options.json) context.json = true;
  const auto request = ExplainRequestOf(options);
  if (!request.ok()) return FailUsage(request.status());
  if (options.watch) return FollowWatch(context, *request);
  if (!options.store.empty()) return ExplainStored(context, *request, options);
  if (!options.live) return ExplainCapture(context, *request, options.id);
  v1::InsightReport report;
  if (const auto status = AskWatch(context, *request, report); !status.ok()) {
    return Fail(context, status);
  }
  return PrintAnswer(context, report);
}

}  // namespace

void AddWhyCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<InsightQuery>();
  CLI::App* command = app.add_subcommand(
      "why", "Say which rank is slow or hung, in which phase and collective, or why not");
  command->add_option("ID", options->id, "Capture id, or a unique prefix of one");
  command->add_flag("--json", options->json, "The same as --output json");
  command
      ->add_option("--window", options->window,
                   "Judge only this part of the capture, FROM..TO: each after the first event "
                   "(1.5s), before now (-5m), or epoch nanoseconds; one of them may be empty")
      ->check(NotEmpty("omit it for the whole capture"));
  command->add_option("--from", options->from, "Start of the window, as in export")
      ->check(NotEmpty("omit it to start with the first event"));
  command->add_option("--to", options->to, "End of the window, as in export")
      ->check(NotEmpty("omit it to end with the last event"));
  command->add_option("--job", options->job, "Judge only the workers of this job")
      ->check(NotEmpty("omit it for all jobs"));
  command->add_flag("--live", options->live,
                    "Ask the running watch (neurontrace watch on), instead of an ID");
  command->add_flag("--watch", options->watch,
                    "Ask the running watch until Ctrl-C, and print what changes");
  command
      ->add_option("--store", options->store,
                   "Read the store in this directory, on which no aggregator runs, by starting one "
                   "for the time of the command")
      ->check(CLI::ExistingDirectory);
  AddStorePrograms(*command, options->places.programs);
  command->footer(
      "Examples:\n"
      "  neurontrace why 01JD\n"
      "  neurontrace why 01JD --window 10s..20s --job llama-70b --json\n"
      "  neurontrace why --watch\n\n"
      "Exit codes: 0 named, or nobody to name; 1 failed; 2 wrong usage; 3 a part was refused.");
  command->callback([&context, &run, options] {
    options->places.own_directory = OwnDirectory();
    run = [&context, options] { return RunWhy(context, *options); };
  });
}

}  // namespace neurontrace::cli
