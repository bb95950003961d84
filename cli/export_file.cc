// SPDX-License-Identifier: Apache-2.0
#include "cli/export_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/capture_view.h"
#include "cli/export_destination.h"
#include "cli/export_transfer.h"
#include "cli/output_place.h"
#include "cli/progress_line.h"
#include "cli/text.h"
#include "lib/base/sha256.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/wire/export_options.h"

namespace neurontrace::cli {
namespace {

// Returns whether the filters excluded every event. The aggregator reports this only as a warning
// with a known beginning.
bool IsEmptyExport(const v1::ExportDone& done) {
  return std::any_of(
      done.warnings().begin(), done.warnings().end(),
      [](const std::string& warning) { return warning.starts_with(kNothingSelected); });
}

// Returns the exit code of an export that was written.
ExitCode CodeOf(const v1::ExportDone& done) {
  return done.capture_incomplete() || IsEmptyExport(done) ? kExitIncomplete : kExitDone;
}

// Prints warnings, notes and the verdict of an incomplete capture, below the line about the file.
void ReportRemarks(FILE* out, const v1::ExportDone& done) {
  for (const std::string& warning : done.warnings()) Print(out, "warning: {}\n", warning);
  for (const std::string& note : done.notes()) Print(out, "note: {}\n", note);
  if (done.capture_incomplete()) Print(out, "capture: {}\n", done.verdict());
}

// Prints what was written to `path`. JSON is the aggregator's reply with the path of this machine.
void Report(const Context& context, v1::ExportDone done, bool is_summary, const std::string& path) {
  FILE* out = IsStandardOutput(path) ? stderr : context.results;
  if (context.json) {
    done.set_written_to(path);
    Print(out, "{}", FormatJson(done));
    return;
  }
  const std::string size = FormatBytes(done.total().bytes_written());
  // Summaries contain no events; formats of events count them; timelines consist of spans and
  // instants.
  if (is_summary) {
    Print(out, "wrote {}: {}\n", path, size);
  } else if (done.events() != 0) {
    Print(out, "wrote {}: {} events, {}\n", path, FormatCount(done.events()), size);
  } else {
    Print(out, "wrote {}: {} spans, {} instants, {}\n", path, FormatCount(done.total().spans()),
          FormatCount(done.instants()), size);
  }
  if (done.open_spans() + done.start_lost_spans() != 0) {
    Print(out, "  {} still open at the end; {} no recorded start\n",
          FormatCounted(done.open_spans(), "of them is", "of them are"),
          FormatCounted(done.start_lost_spans(), "has", "have"));
  }
  ReportRemarks(out, done);
}

// Prints what the aggregator wrote to its own destination.
void ReportDelivery(const Context& context, const v1::ExportDone& done) {
  if (context.json) {
    Print(context.results, "{}", FormatJson(done));
    return;
  }
  Print(context.results, "the aggregator wrote {}: {} files, {}", done.written_to(),
        FormatCount(done.files_written()), FormatBytes(done.total().bytes_written()));
  if (done.files_there() != 0) {
    Print(context.results, "; {} already existed", FormatCount(done.files_there()));
  }
  Print(context.results, "\n");
  ReportRemarks(context.results, done);
}

// Returns whether the format has sums in place of events.
bool IsSummary(v1::ExportFormat format) {
  return format == v1::EXPORT_FORMAT_SUMMARY_JSON || format == v1::EXPORT_FORMAT_SUMMARY_TEXT;
}

// Returns the place of the files. An empty request in it prevents later continuation.
ExportPart::Spec PartSpecOf(const v1::ExportRequest& request, const ExportTarget& target) {
  ExportPart::Spec spec{.path = target.path,
                        .is_directory = MakesManyFiles(request),
                        .capture_id = request.capture_id(),
                        .is_restart = target.partial_files == PartialFiles::kRestart};
  // A window relative to now selects other events each time, so the bytes cannot be continued.
  if (target.partial_files != PartialFiles::kIgnore && !request.window_is_before_now()) {
    spec.request = Sha256HexOf(request.SerializeAsString());
  }
  return spec;
}

// Prints why the export failed. An interrupt precedes the errors that it causes, and a local error
// precedes the cancelled call.
void FailTransfer(const Context& context, const v1::ExportRequest& request, const Transferred& got,
                  const std::string& path) {
  if (got.is_interrupted) {
    Fail(absl::CancelledError("interrupted: " + (path == "-" ? "the output" : path) +
                              " is not written"));
  } else if (!got.written.ok()) {
    Fail(got.written);
  } else if (!got.call.ok()) {
    Fail(context, got.call);
  } else {
    Fail(DataLoss("the aggregator ended the export of {} too early", request.capture_id()));
  }
}

}  // namespace

int ExportToFile(Context& context, const v1::ExportRequest& request, const ExportTarget& target) {
  const std::string& path = target.path;
  // Interrupts end the program as long as nothing has to be cleaned up, because opening a pipe may
  // wait for its reader.
  if (target.interrupts != nullptr) target.interrupts->Redirect(EndAtOnce);
  auto destination = OpenDestination(PartSpecOf(request, target));
  if (!destination.ok()) return Fail(destination.status());
  ExportPart* const part = (*destination)->part();
  const bool can_be_left =
      part != nullptr && part->can_be_left() && target.partial_files == PartialFiles::kResume;
  // A place that cannot be left is removed by a second interrupt.
  ExportInterrupt interrupt(target.interrupts, part == nullptr || can_be_left ? "" : part->path());
  const bool draws = context.progress && !IsStandardOutput(path);
  Transferred got = ExportTransfer(context, request, **destination, interrupt, draws).Run();
  // From here on files are completed or removed, and an interrupt would leave them in between.
  interrupt.Hold();
  if (got.is_whole()) {
    got.written = (*destination)->Keep();
    // An interrupt that came after the last byte has no effect.
    got.is_interrupted = false;
  }
  std::string left;
  if (can_be_left && got.can_resume && !got.is_whole() && got.bytes != 0) {
    part->Leave();
    left = fmt::format(
        "  The received part, {}, is kept in {}: {} resumes it,\n"
        "  or starts over with --no-resume.\n",
        FormatBytes(got.bytes), part->path(), target.resumed_by);
  }
  // The destructor removes files that are not kept, while interrupts have no effect.
  destination->reset();
  if (got.is_whole()) {
    Report(context, *got.done, IsSummary(request.format()), path);
    return CodeOf(*got.done);
  }
  FailTransfer(context, request, got, path);
  Print(stderr, "{}", left);
  return kExitFailed;
}

int ExportToDestination(Context& context, const v1::ExportRequest& request,
                        InterruptWatcher* interrupts) {
  ExportInterrupt interrupt(interrupts, "");
  grpc::ClientContext call;
  interrupt.SetCall(&call);
  const auto reader = context.stub().Export(&call, request);
  std::optional<v1::ExportDone> done;
  // The scope removes the progress line before results are printed.
  {
    ProgressLine line(context.progress);
    v1::ExportReply reply;
    while (reader->Read(&reply)) {
      if (reply.has_progress()) DrawExportProgress(line, reply.progress(), 0);
      if (reply.has_done()) done = reply.done();
    }
    line.Clear();
  }
  const grpc::Status status = reader->Finish();
  interrupt.SetCall(nullptr);
  if (!done && interrupt.is_interrupted()) {
    return Fail(absl::CancelledError(fmt::format(
        "interrupted: {} is incomplete and has no manifest.json; run the same command to resume",
        request.destination())));
  }
  if (!status.ok()) return Fail(context, status);
  if (!done || done->written_to().empty()) {
    return Fail(DataLoss("the aggregator did not write {}; it may be older than this command",
                         request.destination()));
  }
  ReportDelivery(context, *done);
  return CodeOf(*done);
}

}  // namespace neurontrace::cli
