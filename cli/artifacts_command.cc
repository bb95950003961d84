// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cli/capture_view.h"
#include "cli/command.h"
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

// Writes the bytes of one artifact to an open file. Fails as the call does, or if the disk does.
absl::Status Download(Context& context, const v1::GetArtifactRequest& request, std::FILE* file,
                      grpc::Status& status) {
  grpc::ClientContext call;
  const auto reader = context.stub().GetArtifact(&call, request);
  absl::Status written = absl::OkStatus();
  v1::GetArtifactReply reply;
  while (written.ok() && reader->Read(&reply)) {
    if (std::fwrite(reply.data().data(), 1, reply.data().size(), file) != reply.data().size()) {
      written = absl::UnavailableError(fmt::format("cannot write: {}", std::strerror(errno)));
      call.TryCancel();
    }
  }
  status = reader->Finish();
  return written;
}

// Writes the artifact beside its place, and renames it once it is whole.
int Save(Context& context, const v1::GetArtifactRequest& request, const std::string& path) {
  const bool is_standard_output = IsStandardOutput(path);
  const std::string part = path + ".part";
  std::FILE* const file = is_standard_output ? stdout : std::fopen(part.c_str(), "wbx");
  if (file == nullptr) {
    return Fail(FailedPrecondition("{}: {}", part, std::strerror(errno)));
  }
  grpc::Status status;
  absl::Status written = Download(context, request, file, status);
  if (is_standard_output) {
    if (std::fflush(stdout) != 0) written = FailedPrecondition("{}", std::strerror(errno));
  } else {
    const bool is_closed = std::fclose(file) == 0;
    const bool is_whole = written.ok() && status.ok() && is_closed;
    if (!is_whole || std::rename(part.c_str(), path.c_str()) != 0) {
      if (is_whole || !is_closed)
        written = FailedPrecondition("{}: {}", path, std::strerror(errno));
      std::remove(part.c_str());
    }
  }
  if (!status.ok()) return Fail(context, status);
  if (!written.ok()) return Fail(written);
  if (!is_standard_output) Print("{}\n", path);
  return kExitDone;
}

int RunArtifacts(Context& context, const ArtifactOptions& options) {
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
  return Save(context, request, options.output.empty() ? name : options.output);
}

}  // namespace

void AddArtifactsCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<ArtifactOptions>();
  CLI::App* command = app.add_subcommand(
      "artifacts", "List the files of a capture that are no events, or get one of them");
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
