// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/export_destination.h"
#include "cli/export_interrupt.h"
#include "cli/export_part.h"
#include "cli/interrupt_watcher.h"
#include "cli/output_place.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "lib/base/clean_text.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

constexpr size_t kPlaceBytesMax = 1'024;

struct ArtifactOptions {
  std::string id;
  std::string path;    // of the artifact; empty: list
  std::string output;  // empty: the last part of the path, in the working directory
};

// Returns one line for each file, then those that are missing, and what is not listed.
std::string FormatArtifacts(const v1::ListArtifactsReply& reply) {
  std::string text;
  std::vector<std::vector<std::string>> rows;
  for (const v1::Artifact& artifact : reply.artifacts()) {
    rows.push_back({artifact.path(), artifact.kind(), FormatBytes(artifact.bytes()),
                    FormatTime(artifact.modified_realtime_ns())});
  }
  if (rows.empty()) {
    text += "No artifacts.\n";
  } else {
    text += FormatTable({"PATH", "KIND", "SIZE", "CHANGED"}, rows);
  }
  for (const v1::MissingArtifact& missing : reply.missing()) {
    text += fmt::format("missing: {}: {}\n", CleanText(missing.path(), kPlaceBytesMax),
                        CleanText(missing.reason(), kPlaceBytesMax));
  }
  if (reply.not_listed() != 0) text += fmt::format("{} more are not listed\n", reply.not_listed());
  if (reply.hidden() != 0) {
    text += fmt::format("{} are not shown: they may be of others' workers\n", reply.hidden());
  }
  return text;
}

// Receives the artifact into an open destination. Fails as the call does, or if the disk does.
absl::Status Receive(Context& context, const v1::GetArtifactRequest& request,
                     ExportDestination& destination, ExportInterrupt& interrupt,
                     grpc::Status& status) {
  grpc::ClientContext call;
  interrupt.SetCall(&call);
  const auto reader = context.stub().GetArtifact(&call, request);
  absl::Status written = destination.Begin(request.capture_id(), 0);
  v1::GetArtifactReply reply;
  while (written.ok() && reader->Read(&reply)) written = destination.Write(0, reply.data());
  if (!written.ok()) call.TryCancel();
  status = reader->Finish();
  interrupt.SetCall(nullptr);
  return written.ok() && status.ok() ? destination.End(0) : written;
}

// Writes the artifact where `path` leads, and gives it its name once it is whole. What is not whole
// is removed: an interrupted transfer is not continued.
int Save(Context& context, const v1::GetArtifactRequest& request, const std::string& path,
         InterruptWatcher& interrupts) {
  auto destination = OpenDestination({.path = path, .capture_id = request.capture_id()});
  if (!destination.ok()) return Fail(destination.status());
  ExportPart* const part = (*destination)->part();
  ExportInterrupt interrupt(&interrupts, part == nullptr ? "" : part->path());
  grpc::Status status;
  absl::Status written = Receive(context, request, **destination, interrupt, status);
  // From here on the file is completed or removed, and an interrupt would leave it in between.
  interrupt.Hold();
  if (written.ok() && status.ok()) written = (*destination)->Keep();
  destination->reset();
  if (!written.ok()) return Fail(written);
  if (!status.ok()) return Fail(context, status);
  if (!IsStandardOutput(path)) Print("{}\n", path);
  return kExitDone;
}

int RunArtifacts(Context& context, const ArtifactOptions& options) {
  // Before any thread starts.
  InterruptWatcher interrupts(EndAtOnce);
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::CaptureReference reference;
  reference.set_capture_id(options.id);
  v1::ListArtifactsReply reply;
  if (const auto status = context.stub().ListArtifacts(&call, reference, &reply); !status.ok()) {
    return Fail(context, status);
  }
  if (options.path.empty()) {
    Print("{}", context.json ? FormatJson(reply) : FormatArtifacts(reply));
    return kExitDone;
  }
  const auto found =
      std::find_if(reply.artifacts().begin(), reply.artifacts().end(),
                   [&](const v1::Artifact& artifact) { return artifact.path() == options.path; });
  if (found == reply.artifacts().end()) {
    return Fail(NotFound("the capture has no artifact {}; neurontrace artifacts {} lists them",
                         options.path, options.id));
  }
  v1::GetArtifactRequest request;
  request.set_capture_id(options.id);
  request.set_sha256(found->sha256());
  const std::string name = options.path.substr(options.path.rfind('/') + 1);
  return Save(context, request, options.output.empty() ? name : options.output, interrupts);
}

}  // namespace

void AddArtifactsCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<ArtifactOptions>();
  CLI::App* command = app.add_subcommand(
      "artifacts",
      "List the files that belong to a capture besides its events, or get one of them");
  command->add_option("ID", options->id, "Capture id, or a unique prefix of one")->required();
  command->add_option("PATH", options->path, "Get this file, a PATH of the list");
  command
      ->add_option("-o,--out", options->output,
                   "Where to write it (default: its name, in this directory); - is stdout")
      ->check(NotEmpty("omit it for the file's own name"));
  command->footer(
      "Files are those of the vendor's profiler, stacks.json of each worker, and merged.json.\n"
      "Examples:\n"
      "  neurontrace artifacts 01JD\n"
      "  neurontrace artifacts 01JD stacks/1795852800000000000/merged.json -o -");
  command->callback([&context, &run, options] {
    run = [&context, options] { return RunArtifacts(context, *options); };
  });
}

}  // namespace neurontrace::cli
