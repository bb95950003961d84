// SPDX-License-Identifier: Apache-2.0
#include "cli/export_file.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/sha256.h"
#include "base/standard_streams.h"
#include "base/status.h"
#include "cli/capture_view.h"
#include "cli/export_destination.h"
#include "cli/export_transfer.h"
#include "cli/output_place.h"
#include "cli/progress_line.h"
#include "cli/text.h"
#include "wire/export_options.h"

namespace neurontrace::cli {
namespace {

void DrawProgress(ProgressLine& line, const v1::ExportProgress& progress) {
  const double fraction = progress.chunks_total() == 0
                              ? -1
                              : static_cast<double>(progress.chunks_read()) /
                                    static_cast<double>(progress.chunks_total());
  line.Draw(fraction, fmt::format("exporting{}{}: {} spans, {}", progress.step().empty() ? "" : " ",
                                  progress.step(), FormatCount(progress.spans()),
                                  FormatBytes(progress.bytes_written())));
}

void Report(const Context& context, const v1::ExportDone& done, bool is_summary,
            const std::string& path) {
  FILE* out = IsStandardOutput(path) ? stderr : context.results;
  if (context.json) {
    Print(out, "{}", FormatJson(done));
    return;
  }
  const std::string size = FormatBytes(done.total().bytes_written());
  if (is_summary) {
    Print(out, "wrote {}: {}\n", path, size);
  } else if (done.events() != 0) {
    Print(out, "wrote {}: {} events, {}\n", path, FormatCount(done.events()), size);
  } else {
    Print(out, "wrote {}: {} spans, {} instants, {}\n", path, FormatCount(done.total().spans()),
          FormatCount(done.instants()), size);
  }
  if (done.open_spans() + done.start_lost_spans() != 0) {
    Print(out, "  of them {} still open at the end and {} whose start is not there\n",
          FormatCount(done.open_spans()), FormatCount(done.start_lost_spans()));
  }
  for (const std::string& warning : done.warnings()) Print(out, "warning: {}\n", warning);
  for (const std::string& note : done.notes()) Print(out, "note: {}\n", note);
  if (done.capture_incomplete()) Print(out, "capture {}\n", done.verdict());
}

void ReportDelivery(const Context& context, const v1::ExportDone& done) {
  if (context.json) {
    Print(context.results, "{}", FormatJson(done));
    return;
  }
  Print(context.results, "the aggregator wrote {}: {} files, {}", done.written_to(),
        FormatCount(done.files_written()), FormatBytes(done.total().bytes_written()));
  if (done.files_there() != 0) {
    Print(context.results, "; {} were there", FormatCount(done.files_there()));
  }
  Print(context.results, "\n");
  for (const std::string& warning : done.warnings()) {
    Print(context.results, "warning: {}\n", warning);
  }
  for (const std::string& note : done.notes()) Print(context.results, "note: {}\n", note);
  if (done.capture_incomplete()) Print(context.results, "capture {}\n", done.verdict());
}

bool IsSummary(v1::ExportFormat format) {
  return format == v1::EXPORT_FORMAT_SUMMARY_JSON || format == v1::EXPORT_FORMAT_SUMMARY_TEXT;
}

ExportPart::Spec PartSpecOf(const v1::ExportRequest& request, const ExportTarget& target) {
  ExportPart::Spec spec{.path = target.path,
                        .is_directory = MakesManyFiles(request),
                        .capture_id = request.capture_id(),
                        .begins_anew = target.leaving == Leaving::kBeginAnew};
  // A window that counts from now is another one each time.
  if (target.leaving != Leaving::kOfNoMeaning && !request.window_is_before_now()) {
    spec.request = Sha256HexOf(request.SerializeAsString());
  }
  return spec;
}

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
  // Until there is anything to put in order: a pipe may wait for its reader.
  if (target.interrupts != nullptr) target.interrupts->Redirect(EndAtOnce);
  auto destination = OpenDestination(PartSpecOf(request, target));
  if (!destination.ok()) return Fail(destination.status());
  ExportPart* const part = (*destination)->part();
  const bool can_be_left =
      part != nullptr && part->can_be_left() && target.leaving == Leaving::kLeave;
  ExportInterrupt interrupt(target.interrupts, part == nullptr || can_be_left ? "" : part->path());
  const bool draws = context.progress && !IsStandardOutput(path);
  Transferred got = ExportTransfer(context, request, **destination, interrupt, draws).Run();
  interrupt.Hold();
  if (got.is_whole()) {
    got.written = (*destination)->Keep();
    got.is_interrupted = false;
  }
  std::string left;
  if (can_be_left && got.can_go_on && !got.is_whole() && got.bytes != 0) {
    part->Leave();
    left = fmt::format(
        "  What was received, {}, stays in {}: {} goes on with it,\n"
        "  or begins anew with --no-resume.\n",
        FormatBytes(got.bytes), part->path(), target.who_goes_on);
  }
  destination->reset();  // what is not kept goes while interrupts wait
  if (got.is_whole()) {
    Report(context, *got.done, IsSummary(request.format()), path);
    return got.done->capture_incomplete() ? kExitIncomplete : kExitDone;
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
  interrupt.SetCall(nullptr);
  if (!done && interrupt.is_interrupted()) {
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
