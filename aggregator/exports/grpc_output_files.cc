// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/grpc_output_files.h"

#include <algorithm>

#include "aggregator/export/output_files.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Fails with CANCELLED if the client no longer reads.
absl::Status Send(const ExportWriter& write, const v1::ExportReply& reply) {
  if (write(reply)) return absl::OkStatus();
  return {absl::StatusCode::kCancelled, "the client stopped reading the export"};
}

// Reports to the client which file differs, then returns ABORTED. The caller must discard what it
// has: mixing two versions of a file would corrupt it silently.
absl::Status Differs(const ExportWriter& write, const std::string& name) {
  v1::ExportReply reply;
  reply.set_held_differs(name);
  RETURN_IF_ERROR(Send(write, reply));
  return MakeStatus(absl::StatusCode::kAborted,
                    "{}: the export changed since the partial download; restart with --no-resume",
                    name);
}

// Sends one file. Replies carry its number, so that several files can be open at the same time.
// `bytes_sent` is the sum of all files.
class ReplyFile : public OutputFile {
 public:
  ReplyFile(const ExportWriter& write, std::string name, uint32_t number, ResumePrefix held,
            uint64_t& bytes_sent)
      : write_(write),
        name_(std::move(name)),
        number_(number),
        held_(std::move(held)),
        bytes_sent_(bytes_sent) {}

  absl::Status Write(std::string_view bytes) override {
    // Including what is skipped: progress is about the whole file.
    bytes_sent_ += bytes.size();
    if (!held_.Skip(bytes)) return Differs(write_, name_);
    // gRPC refuses messages above a limit of the receiver, hence the pieces.
    while (!bytes.empty()) {
      const size_t size = std::min(bytes.size(), limits::kExportMessageBytes);
      v1::ExportReply reply;
      reply.set_file_number(number_);
      reply.set_data(std::string(bytes.substr(0, size)));
      RETURN_IF_ERROR(Send(write_, reply));
      bytes.remove_prefix(size);
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    // The file became shorter than what the caller has.
    if (!held_.is_through()) return Differs(write_, name_);
    v1::ExportReply reply;
    reply.set_file_number(number_);
    reply.set_file_end(true);
    return Send(write_, reply);
  }

 private:
  const ExportWriter& write_;
  const std::string name_;
  const uint32_t number_;
  ResumePrefix held_;
  uint64_t& bytes_sent_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> GrpcOutputFiles::Open(std::string_view name) {
  if (!IsOutputName(name)) return InvalidArgument("export: '{}' is not a valid file name", name);
  if (names_.size() >= limits::kExportFilesMax) {
    return ResourceExhausted("export: more than {} files", limits::kExportFilesMax);
  }
  // Replies name their file by this number, in the order of opening.
  const auto number = static_cast<uint32_t>(names_.size());
  if (!names_.emplace(name).second) return InvalidArgument("export: two files are named {}", name);
  ResumePrefix held = held_.Take(name);
  v1::ExportReply reply;
  reply.set_file(std::string(name));
  reply.set_file_number(number);
  reply.set_held_bytes(held.bytes());
  RETURN_IF_ERROR(Send(write_, reply));
  return std::make_unique<ReplyFile>(write_, std::string(name), number, std::move(held),
                                     bytes_sent_);
}

absl::Status GrpcOutputFiles::CheckHeld() const {
  const std::string name = held_.Untaken();
  return name.empty() ? absl::OkStatus() : Differs(write_, name);
}

}  // namespace neurontrace
