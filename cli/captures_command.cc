// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/capture_view.h"
#include "cli/capture_watch.h"
#include "cli/certificate_view.h"
#include "cli/command.h"
#include "cli/outcome_view.h"
#include "cli/quantity.h"
#include "cli/selection_view.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"

namespace neurontrace::cli {
namespace {

// Returns the cell for a text that may be empty.
std::string DashIfEmpty(std::string text) { return text.empty() ? "-" : text; }

// Returns one line for each of the newest `shown` captures, the newest last, after a line that
// counts the older ones. Columns that are empty in every row are omitted.
std::string FormatCaptures(const v1::ListCapturesReply& reply, int shown) {
  const int size = reply.captures_size();
  const int first = std::max(0, size - shown);
  std::vector<std::string> header = {"CAPTURE", "NAME",   "STATE", "MODE", "STARTED",
                                     "WORKERS", "EVENTS", "LOST",  "SIZE"};
  const auto add_column = [&](const char* name, const auto& text_of) {
    const bool is_used = std::any_of(reply.captures().begin() + first, reply.captures().end(),
                                     [&](const v1::Capture& one) { return !text_of(one).empty(); });
    if (is_used) header.push_back(name);
    return is_used;
  };
  // Many sites use none of these, so the columns appear only with content.
  const auto star = [](const v1::Capture& one) { return std::string(one.starred() ? "*" : ""); };
  const auto jobs = [](const v1::Capture& one) { return FormatJobs(one.spec()); };
  const auto cause = [](const v1::Capture& one) { return one.spec().cause(); };
  const bool with_stars = add_column("STAR", star);
  const bool with_jobs = add_column("JOB", jobs);
  const bool with_tags = add_column("TAGS", FormatTags);
  const bool with_causes = add_column("CAUSE", cause);
  std::vector<std::vector<std::string>> rows;
  for (int i = first; i < size; ++i) {
    const v1::Capture& capture = reply.captures(i);
    const v1::CaptureSpec& spec = capture.spec();
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        capture.capture_id(), DashIfEmpty(spec.name()), CaptureStateName(capture.state()),
        CaptureModeName(spec.mode()), FormatTime(capture.started_realtime_ns()),
        FormatCount(CountWorkers(capture.workers())), FormatCount(capture.events()),
        FormatLost(capture.events_lost(), capture.events_lost_unknown()),
        FormatBytes(capture.bytes())});
    if (with_stars) row.push_back(DashIfEmpty(star(capture)));
    if (with_jobs) row.push_back(DashIfEmpty(FormatJobs(spec)));
    if (with_tags) row.push_back(DashIfEmpty(FormatTags(capture)));
    if (with_causes) row.push_back(DashIfEmpty(spec.cause()));
  }
  const std::string older =
      first == 0 ? ""
                 : fmt::format("({} older: neurontrace captures list --all shows them)\n", first);
  return older + FormatTable(header, rows);
}

// Returns one line for each stream of a capture, for `show --wide`.
std::string FormatStreams(const v1::Capture& capture) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::CaptureStream& stream : capture.streams()) {
    rows.push_back({std::to_string(stream.number()), stream.identity().worker().instance_id(),
                    std::to_string(stream.identity().worker().pid()), CoreName(stream.identity()),
                    stream.worker_gid() < 0 ? "unknown" : std::to_string(stream.worker_gid()),
                    FormatCount(stream.events()), FormatCount(stream.chunks()),
                    FormatBytes(stream.bytes()),
                    FormatDuration(stream.last_timestamp_ns() - stream.first_timestamp_ns())});
  }
  return FormatTable(
      {"STREAM", "INSTANCE", "PID", "SOURCE", "WORKER GID", "EVENTS", "CHUNKS", "SIZE", "SPAN"},
      rows);
}

// The list on a terminal shows this many; older ones are counted.
constexpr int kCapturesShown = 50;

// Options of all subcommands; each uses its own part.
struct CapturesOptions {
  std::string id;
  std::vector<std::string> ids;
  std::string name;
  bool all = false;
  bool running = false;
  bool starred = false;
  bool remove = false;
  std::string job;
  std::vector<std::string> tags;
  std::string keep_for;
  bool forever = false;
  CertificateView view;
};

// Returns whether a capture meets every condition of `list`.
bool IsListed(const v1::Capture& capture, const CapturesOptions& options) {
  if (options.running && HasEnded(capture)) return false;
  if (options.starred && !capture.starred()) return false;
  if (!options.job.empty() && !NamesJob(capture.spec(), options.job)) return false;
  const std::vector<std::string> tags = TagsOf(capture);
  return std::all_of(options.tags.begin(), options.tags.end(), [&tags](const std::string& tag) {
    return std::find(tags.begin(), tags.end(), tag) != tags.end();
  });
}

// Lists captures. The aggregator returns all of them and the filter runs here.
int ListCaptures(Context& context, const CapturesOptions& options) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListCapturesReply reply;
  if (const auto status = context.stub().ListCaptures(&call, {}, &reply); !status.ok()) {
    return Fail(context, status);
  }
  v1::ListCapturesReply listed;
  for (const v1::Capture& capture : reply.captures()) {
    if (IsListed(capture, options)) *listed.add_captures() = WithoutRawIds(capture);
  }
  if (context.json) {
    Print("{}", FormatJson(listed));
  } else if (reply.captures().empty()) {
    Print("No captures yet. Start one: neurontrace capture --duration 5s -o trace.pftrace\n");
  } else if (listed.captures().empty()) {
    Print("None of the {} captures match.\n", reply.captures_size());
  } else {
    Print("{}", FormatCaptures(listed, options.all ? listed.captures_size() : kCapturesShown));
  }
  return kExitDone;
}

// Returns the exit code of `show`. A capture that was found never fails merely for having no data:
// that is incomplete. A running one is not judged.
int ShownCode(const v1::Capture& capture) {
  if (!HasEnded(capture)) return kExitDone;
  const ExitCode code = ExitCodeOf(capture);
  return code == kExitFailed && capture.state() != v1::CAPTURE_STATE_NOT_BEGUN ? kExitIncomplete
                                                                               : code;
}

// Shows one capture. With a filter that matches no worker it prints which ones exist.
int ShowCapture(Context& context, const CapturesOptions& options) {
  v1::Capture capture;
  if (const auto status = GetCapture(context, options.id, capture); !status.ok()) {
    return Fail(context, status);
  }
  // The code is that of the whole capture, whatever part of it is shown.
  const int code = ShownCode(capture);
  if (context.json) {
    Print("{}", FormatCaptureJson(capture));
    return code;
  }
  if (const std::string none = ExplainNoneShown(capture.certificate(), options.view);
      !none.empty()) {
    Print("{}", none);
    return code;
  }
  if (options.view.wide && !capture.streams().empty()) Print("{}\n", FormatStreams(capture));
  WorkerRanks ranks = FetchRanks(context);
  ranks.Take(capture);
  CertificateView view = options.view;
  if (!view.wide) view.columns = context.columns;
  Print("{}", FormatCapture(capture, ranks, CaptureDetail::kWhole, view));
  return code;
}

// Follows a capture that was started elsewhere; interrupts end only the watching. With --output
// json prints one object per change, else a summary at the end.
int WatchOne(Context& context, const std::string& id) {
  CaptureWatch watch(context);
  v1::Capture capture;
  if (const auto status = GetCapture(context, id, capture); !status.ok()) {
    return Fail(context, status);
  }
  WatchOptions options = {.interrupt_stops = false};
  if (context.json) {
    options.on_change = [](const v1::Capture& changed) {
      Print("{}", FormatJsonLine(WithoutRawIds(changed)));
      // The reader of a pipe needs each change when it happens.
      std::fflush(stdout);
    };
  }
  // A capture that has ended is printed at once, in the same form.
  if (!HasEnded(capture)) {
    if (const auto status = watch.Follow(capture, options); !status.ok()) {
      return FailWatching(context, capture, status);
    }
  } else if (context.json) {
    options.on_change(capture);
  }
  if (context.json) return ExitCodeOf(capture);
  // The messages of the stream are brief and lack the certificate's workers.
  if (const auto status = GetCapture(context, capture.capture_id(), capture); !status.ok()) {
    return Fail(context, status);
  }
  WorkerRanks ranks = FetchRanks(context);
  ranks.Take(capture);
  Print("{}", FormatCapture(capture, ranks, CaptureDetail::kShort, {.columns = context.columns}));
  return ExitCodeOf(capture);
}

// Deletes a capture that has ended. The aggregator refuses one that is still running.
int DeleteCapture(Context& context, const std::string& id) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::CaptureReference reference;
  reference.set_capture_id(id);
  v1::DeleteCaptureReply reply;
  if (const auto status = context.stub().DeleteCapture(&call, reference, &reply); !status.ok()) {
    return Fail(context, status);
  }
  if (context.json) {
    Print("{}", FormatJson(reply));
  } else {
    Print("deleted: {} chunks, {}\n", FormatCount(reply.chunks()), FormatBytes(reply.bytes()));
  }
  return kExitDone;
}

// Sends one change. `capture` is valid only if the status is OK.
grpc::Status UpdateCapture(Context& context, const v1::UpdateCaptureRequest& request,
                           v1::Capture& capture) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  return context.stub().UpdateCapture(&call, request, &capture);
}

// Sends one change and prints the capture, as `describe` ends the sentence that begins with its id.
int UpdateAndPrint(Context& context, const v1::UpdateCaptureRequest& request,
                   std::string (*describe)(const v1::Capture&)) {
  v1::Capture capture;
  if (const auto status = UpdateCapture(context, request, capture); !status.ok()) {
    return Fail(context, status);
  }
  if (context.json) {
    Print("{}", FormatCaptureJson(capture));
  } else {
    Print("{} {}\n", capture.capture_id(), describe(capture));
  }
  return kExitDone;
}

int RenameCapture(Context& context, const CapturesOptions& options) {
  v1::UpdateCaptureRequest request;
  request.set_capture_id(options.id);
  request.set_name(options.name);
  return UpdateAndPrint(context, request, [](const v1::Capture& capture) {
    const std::string& name = capture.spec().name();
    return name.empty() ? "has no name" : "is named " + name;
  });
}

// Changes every capture that it can. Each failure is printed.
int StarCaptures(Context& context, const CapturesOptions& options, bool starred) {
  v1::ListCapturesReply changed;
  int code = kExitDone;
  for (const std::string& id : options.ids) {
    v1::UpdateCaptureRequest request;
    request.set_capture_id(id);
    request.set_starred(starred);
    v1::Capture capture;
    const auto status = UpdateCapture(context, request, capture);
    if (!status.ok()) {
      code = Fail(context, status);
      // Without an aggregator the others fail, too, each after a wait.
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
          status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
        break;
      }
      continue;
    }
    if (!context.json) {
      Print("{} {}\n", capture.capture_id(), capture.starred() ? "starred" : "not starred");
    }
    *changed.add_captures() = WithoutRawIds(std::move(capture));
  }
  if (context.json) Print("{}", FormatJson(changed));
  return code;
}

int TagCapture(Context& context, const CapturesOptions& options) {
  v1::UpdateCaptureRequest request;
  request.set_capture_id(options.id);
  auto& tags = options.remove ? *request.mutable_remove_tags() : *request.mutable_add_tags();
  tags.Add(options.tags.begin(), options.tags.end());
  return UpdateAndPrint(context, request, [](const v1::Capture& capture) {
    const std::string text = FormatTags(capture);
    return text.empty() ? "has no tags" : "has the tags " + text;
  });
}

// Returns how long a capture is kept, as the end of a sentence.
std::string FormatRetention(const v1::Capture& capture) {
  const uint64_t kept_ns = capture.spec().retention_ns();
  if (capture.spec().mode() == v1::CAPTURE_MODE_CONTINUOUS) {
    return kept_ns == 0 ? "keeps its latest events, while its size allows"
                        : "keeps events of the last " + FormatDuration(kept_ns);
  }
  if (kept_ns == 0) return "is kept until somebody deletes it";
  if (capture.stopped_realtime_ns() == 0) {
    return fmt::format("is kept for {} after its end", FormatDuration(kept_ns));
  }
  return fmt::format("is kept for {} after its end, until about {}", FormatDuration(kept_ns),
                     FormatTime(AddSaturating(capture.stopped_realtime_ns(), kept_ns)));
}

int KeepCapture(Context& context, const CapturesOptions& options) {
  if (options.keep_for.empty() != options.forever) {
    return FailUsage(InvalidArgument("choose how long: --for 30d or --forever"));
  }
  v1::UpdateCaptureRequest request;
  request.set_capture_id(options.id);
  request.set_retention_ns(0);
  if (!options.forever) {
    const auto ns = ParseSpan("--for", options.keep_for);
    if (!ns.ok()) return FailUsage(ns.status());
    request.set_retention_ns(*ns);
  }
  return UpdateAndPrint(context, request, FormatRetention);
}

constexpr char kIdText[] = "Capture id, or a unique prefix of one";
constexpr char kIdHint[] = "neurontrace captures lists them";

// Adds the command that changes how long a capture is kept.
void AddKeepCommand(CLI::App& command, const std::shared_ptr<CapturesOptions>& options,
                    Context& context, Run& run) {
  CLI::App* keep = command.add_subcommand("keep", "Change how long a capture is kept");
  keep->add_option("ID", options->id, kIdText)->required()->check(NotEmpty(kIdHint));
  keep->add_option("--for", options->keep_for,
                   "Delete the capture this long after its end: 30d; of a running continuous "
                   "capture, the maximum age of its events")
      ->check(NotEmpty("write a duration such as 30d"));
  keep->add_flag("--forever", options->forever, "Keep it until somebody deletes it");
  keep->footer(
      "Examples:\n"
      "  neurontrace captures keep 01JD --for 30d\n"
      "  neurontrace captures keep 01JD --forever\n"
      "A shorter time deletes, and needs the role admin.");
  keep->callback([&context, &run, options] {
    run = [&context, options] { return KeepCapture(context, *options); };
  });
}

// Adds the commands that change what people write about captures.
void AddUpdateCommands(CLI::App& command, const std::shared_ptr<CapturesOptions>& options,
                       Context& context, Run& run) {
  const CLI::Validator is_id = NotEmpty(kIdHint);
  CLI::App* rename = command.add_subcommand("rename", "Give a capture another name");
  rename->add_option("ID", options->id, kIdText)->required()->check(is_id);
  rename->add_option("NAME", options->name, "The new name; '' removes the name")->required();
  rename->footer("Example:\n  neurontrace captures rename 01JD 'night run'");
  rename->callback([&context, &run, options] {
    run = [&context, options] { return RenameCapture(context, *options); };
  });
  for (const bool starred : {true, false}) {
    CLI::App* star = command.add_subcommand(
        starred ? "star" : "unstar",
        starred ? "Mark captures with a star" : "Remove the star of captures");
    star->add_option("ID", options->ids, "Capture ids, or unique prefixes")
        ->required()
        ->check(is_id);
    star->footer(starred ? "Example:\n  neurontrace captures star 01JD 01JF\n"
                           "A star is for people: it does not change how long a capture is kept."
                         : "Example:\n  neurontrace captures unstar 01JD 01JF");
    star->callback([&context, &run, options, starred] {
      run = [&context, options, starred] { return StarCaptures(context, *options, starred); };
    });
  }
  CLI::App* tag = command.add_subcommand("tag", "Add tags to a capture, or remove some");
  tag->add_option("ID", options->id, kIdText)->required()->check(is_id);
  tag->add_option("TAG", options->tags, "Tags, such as baseline or ticket=4711")
      ->required()
      ->check(NotEmpty("name a tag"));
  tag->add_flag("--remove", options->remove, "Remove these tags instead");
  tag->footer(
      "Examples:\n"
      "  neurontrace captures tag 01JD baseline 'needs review'\n"
      "  neurontrace captures tag 01JD 'needs review' --remove\n"
      "Tags that were set by capture --tag stay.");
  tag->callback([&context, &run, options] {
    run = [&context, options] { return TagCapture(context, *options); };
  });
}

}  // namespace

void AddCapturesCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<CapturesOptions>();
  CLI::App* command =
      app.add_subcommand("captures", "List, show, watch, name, tag, keep and delete captures");
  command->footer(
      "Examples:\n"
      "  neurontrace captures\n"
      "  neurontrace captures list --running\n"
      "  neurontrace captures list --starred --tag baseline\n"
      "  neurontrace captures show 01JD\n"
      "  neurontrace captures show 01JD --brief\n"
      "  neurontrace captures watch 01JD\n"
      "  neurontrace captures rename 01JD 'night run'\n"
      "  neurontrace captures star 01JD\n"
      "  neurontrace captures tag 01JD baseline\n"
      "  neurontrace captures keep 01JD --for 30d\n"
      "  neurontrace captures delete 01JD8Z2M6WQJ4V1T0S3R5XK7PA\n"
      "An id may be shortened to a unique prefix.\n"
      "Exit code of show and watch: 1 if the capture did not start, 3 if it ended and something is "
      "missing.");
  command->require_subcommand(0, 1);
  CLI::App* list = command->add_subcommand("list", "List captures, newest last (the default)");
  list->add_flag("--all", options->all, "List all captures, not only the newest 50");
  list->add_flag("--running", options->running, "Only captures that have not ended");
  list->add_option("--job", options->job, "Only captures of this job")
      ->check(NotEmpty("omit it for captures of every job"));
  list->add_flag("--starred", options->starred, "Only captures with a star");
  list->add_option("--tag", options->tags, "Only captures with this tag; may be repeated")
      ->check(NotEmpty("omit it for captures with any tags"))
      ->allow_extra_args(false);
  CLI::App* show = command->add_subcommand(
      "show", "Show one capture: its jobs, and what is recorded and missing of each worker");
  show->add_flag("--brief", options->view.brief, "Omit the line per worker");
  show->add_flag("--wide", options->view.wide,
                 "Show every worker, stream, finding and note without folding");
  show->add_option("--job", options->view.job, "Only this job and its workers")
      ->check(NotEmpty("omit it for every job"));
  show->add_option("--state", options->view.state,
                   "Only workers whose state starts with this: recorded, idle, vanished, never")
      ->check(CheckPart);
  CLI::App* watch =
      command->add_subcommand("watch", "Follow a capture until it ends; Ctrl-C does not stop it");
  AddUpdateCommands(*command, options, context, run);
  AddKeepCommand(*command, options, context, run);
  CLI::App* erase = command->add_subcommand("delete", "Delete a capture that has ended");
  for (CLI::App* const one : {show, watch, erase}) {
    one->add_option("ID", options->id, kIdText)->required()->check(NotEmpty(kIdHint));
  }
  command->callback([&context, &run, command, list, show, watch, erase, options] {
    if (show->parsed()) {
      run = [&context, options] { return ShowCapture(context, *options); };
    } else if (watch->parsed()) {
      run = [&context, options] { return WatchOne(context, options->id); };
    } else if (erase->parsed()) {
      run = [&context, options] { return DeleteCapture(context, options->id); };
    } else if (list->parsed() || command->get_subcommands().empty()) {
      run = [&context, options] { return ListCaptures(context, *options); };
    }
  });
}

}  // namespace neurontrace::cli
