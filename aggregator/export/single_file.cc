// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/single_file.h"

#include <utility>

#include "base/status.h"

namespace neurontrace {
namespace {

class SingleFileExporter : public Exporter {
 public:
  SingleFileExporter(std::unique_ptr<OutputFile> file, std::unique_ptr<Exporter> exporter)
      : file_(std::move(file)), exporter_(std::move(exporter)) {}

  absl::Status Begin(const TimelineHeader& header) override { return exporter_->Begin(header); }
  absl::Status Write(const TimelineBatch& batch) override { return exporter_->Write(batch); }
  absl::Status Finish(ExportSummary& summary) override {
    RETURN_IF_ERROR(exporter_->Finish(summary));
    return file_->Close();
  }
  uint64_t bytes_written() const override { return exporter_->bytes_written(); }

 private:
  const std::unique_ptr<OutputFile> file_;
  const std::unique_ptr<Exporter> exporter_;  // writes to file_
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> MakeSingleFile(
    OutputFiles& files, std::string_view name,
    const std::function<absl::StatusOr<std::unique_ptr<Exporter>>(ByteSink&)>& make) {
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, files.Open(name));
  ASSIGN_OR_RETURN(std::unique_ptr<Exporter> exporter, make(*file));
  return std::make_unique<SingleFileExporter>(std::move(file), std::move(exporter));
}

}  // namespace neurontrace
