// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/grpc_output_files.h"

#include <algorithm>

#include "aggregator/export/output_files.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/export_limits.h"
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

bool ResumePrefix::Skip(std::string_view& bytes) {
  if (left_ == 0) return true;
  const std::string_view held = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
  hash_.Update(held);
  left_ -= held.size();
  bytes.remove_prefix(held.size());
  // The hash is that of the first `bytes_` bytes, whatever pieces they come in, so only the whole
  // prefix can be compared. Nothing was sent before that, so nothing needs taking back.
  return left_ != 0 || hash_.Finish() == sha256_;
}

absl::StatusOr<ResumeState> ResumeState::Of(const v1::ExportRequest& request) {
  if (static_cast<size_t>(request.held_size()) > limits::kExportHeldFilesMax) {
    return ResourceExhausted("held: {} files exceed the limit of {}; restart with --no-resume",
                             request.held_size(), limits::kExportHeldFilesMax);
  }
  ResumeState held;
  for (const v1::HeldFile& file : request.held()) {
    if (!IsOutputName(file.name()) || file.bytes() == 0 || file.sha256().size() != kSha256Bytes) {
      return InvalidArgument(
          "held: '{}' of {} bytes with a hash of {} bytes is not a valid partial file", file.name(),
          file.bytes(), file.sha256().size());
    }
    const auto [at, is_new] =
        held.files_.try_emplace(file.name(), ResumePrefix(file.bytes(), file.sha256()));
    if (!is_new) return InvalidArgument("held: {} twice", file.name());
    held.bytes_ = AddSaturating(held.bytes_, file.bytes());
  }
  return held;
}

ResumePrefix ResumeState::Take(std::string_view name) {
  const auto found = files_.find(std::string(name));
  if (found == files_.end()) return {};
  ResumePrefix prefix = std::move(found->second);
  files_.erase(found);
  return prefix;
}

std::string ResumeState::Untaken() const {
  std::string first;
  for (const auto& [name, prefix] : files_) {
    // The smallest name, so that the error does not depend on the order in a hash table.
    if (first.empty() || name < first) first = name;
  }
  return first;
}

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
