// SPDX-License-Identifier: Apache-2.0
#include "aggregator/reply_files.h"

#include <algorithm>
#include <cstdint>

#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

absl::Status Send(const ExportWriter& write, const v1::ExportReply& reply) {
  if (write(reply)) return absl::OkStatus();
  return {absl::StatusCode::kCancelled, "nobody listens to the export"};
}

class ReplyFile : public OutputFile {
 public:
  ReplyFile(const ExportWriter& write, uint32_t number, uint64_t& bytes_sent)
      : write_(write), number_(number), bytes_sent_(bytes_sent) {}

  absl::Status Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t size = std::min(bytes.size(), limits::kExportMessageBytes);
      v1::ExportReply reply;
      reply.set_file_number(number_);
      reply.set_data(std::string(bytes.substr(0, size)));
      RETURN_IF_ERROR(Send(write_, reply));
      bytes_sent_ += size;
      bytes.remove_prefix(size);
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    v1::ExportReply reply;
    reply.set_file_number(number_);
    reply.set_file_end(true);
    return Send(write_, reply);
  }

 private:
  const ExportWriter& write_;
  const uint32_t number_;
  uint64_t& bytes_sent_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> ReplyFiles::Open(std::string_view name) {
  if (!IsOutputName(name)) return InvalidArgument("export: '{}' is no name of a file", name);
  if (names_.size() >= limits::kExportFilesMax) {
    return ResourceExhausted("export: more than {} files", limits::kExportFilesMax);
  }
  const auto number = static_cast<uint32_t>(names_.size());
  if (!names_.emplace(name).second) return InvalidArgument("export: two files named {}", name);
  v1::ExportReply reply;
  reply.set_file(std::string(name));
  RETURN_IF_ERROR(Send(write_, reply));
  return std::make_unique<ReplyFile>(write_, number, bytes_sent_);
}

}  // namespace neurontrace
