// SPDX-License-Identifier: Apache-2.0
#include "aggregator/stacks/stack_files.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/trace/artifact.h"
#include "lib/trace/stacks_limits.h"

namespace neurontrace {

StackFiles::StackFiles(ArtifactStore& artifacts, std::string agent_id, TaskRunner& sequence)
    : artifacts_(artifacts),
      agent_id_(std::move(agent_id)),
      sequence_(sequence),
      thread_([this] { loop_.Run(); }) {}

StackFiles::~StackFiles() {
  loop_.PostTask([this] { loop_.Quit(); });
  thread_.join();
}

void StackFiles::Store(const CaptureId& capture, const v1::StacksReport& report, Done done) {
  loop_.PostTask([this, capture, report, done = std::move(done)] {
    sequence_.PostTask([done, status = Write(capture, report)] { done(status); });
  });
}

absl::Status StackFiles::Write(const CaptureId& capture, const v1::StacksReport& report) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto written = google::protobuf::util::MessageToJsonString(report, &text, options);
  if (!written.ok()) return absl::InternalError("merged stacks are not JSON");
  if (text.size() > limits::kStacksReportBytesMax) {
    return absl::ResourceExhaustedError(fmt::format("merged stacks have {} bytes; the limit is {}",
                                                    text.size(), limits::kStacksReportBytesMax));
  }
  Sha256 sha;
  sha.Update(text);
  ArtifactReference reference{.capture_id = capture,
                              .agent_id = agent_id_,
                              .sha256 = sha.Finish(),
                              .bytes = text.size(),
                              .modified_realtime_ns = report.asked_realtime_ns()};
  ASSIGN_OR_RETURN(
      reference.place,
      MakeArtifactPlace("stacks", std::to_string(report.asked_realtime_ns()), "merged.json"));
  if (!artifacts_.files().Has(reference.sha256)) {
    ASSIGN_OR_RETURN(const auto upload, artifacts_.files().Receive(reference.sha256, text.size()));
    RETURN_IF_ERROR(upload->Append(std::string_view(text).substr(
        static_cast<size_t>(std::min<uint64_t>(upload->offset(), text.size())))));
    RETURN_IF_ERROR(upload->Finish());
  }
  ASSIGN_OR_RETURN(const ArtifactStore::Outcome outcome, artifacts_.Refer(reference));
  if (outcome == ArtifactStore::Outcome::kKept) return absl::OkStatus();
  return FailedPrecondition("capture {} {}", capture.ToString(),
                            outcome == ArtifactStore::Outcome::kTooMany
                                ? "has as many artifacts as it may"
                                : "was deleted");
}

absl::StatusOr<std::vector<v1::StacksReport>> StackFiles::Load(const CaptureId& capture) {
  ASSIGN_OR_RETURN(std::vector<ArtifactReference> references, artifacts_.List(capture));
  std::erase_if(references, [](const ArtifactReference& reference) {
    return reference.place.kind != ArtifactKind::kMergedStacks ||
           reference.bytes > limits::kStacksReportBytesMax;
  });
  std::sort(references.begin(), references.end(),
            [](const ArtifactReference& a, const ArtifactReference& b) {
              return a.modified_realtime_ns > b.modified_realtime_ns;
            });
  if (references.size() > limits::kStacksReportsShown) {
    references.resize(limits::kStacksReportsShown);
  }
  std::vector<v1::StacksReport> reports;
  for (const ArtifactReference& reference : references) {
    std::string text;
    while (text.size() < reference.bytes) {
      ASSIGN_OR_RETURN(
          const std::string piece,
          artifacts_.files().Read(reference.sha256, text.size(), limits::kStacksReportBytesMax));
      if (piece.empty()) break;
      text += piece;
    }
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    const bool is_read =
        google::protobuf::util::JsonStringToMessage(text, &reports.emplace_back(), options).ok();
    if (!is_read) return DataLoss("artifact {} cannot be read", reference.place.path());
  }
  return reports;
}

}  // namespace neurontrace
