// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/single_file.h"

#include <utility>

#include "aggregator/export/gzip_file.h"
#include "base/status.h"

namespace neurontrace {
namespace {

// Counts what reaches the files behind it.
class CountedFiles : public OutputFiles {
 public:
  CountedFiles(OutputFiles& files, uint64_t& bytes) : files_(files), bytes_(bytes) {}
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) override {
    ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, files_.Open(name));
    return std::make_unique<File>(std::move(file), bytes_);
  }

 private:
  class File : public OutputFile {
   public:
    File(std::unique_ptr<OutputFile> file, uint64_t& bytes)
        : file_(std::move(file)), bytes_(bytes) {}
    absl::Status Write(std::string_view bytes) override {
      bytes_ += bytes.size();
      return file_->Write(bytes);
    }
    absl::Status Close() override { return file_->Close(); }

   private:
    const std::unique_ptr<OutputFile> file_;
    uint64_t& bytes_;
  };

  OutputFiles& files_;
  uint64_t& bytes_;
};

class SingleFileExporter : public Exporter {
 public:
  absl::Status Open(OutputFiles& files, std::string_view name, ExportCompression compression) {
    CountedFiles counted(files, bytes_);
    ASSIGN_OR_RETURN(file_, OpenCompressed(counted, name, compression));
    return absl::OkStatus();
  }
  ByteSink& sink() { return *file_; }
  void Use(std::unique_ptr<Exporter> exporter) { exporter_ = std::move(exporter); }

  absl::Status Begin(const TimelineHeader& header) override { return exporter_->Begin(header); }
  absl::Status Write(const TimelineBatch& batch) override { return exporter_->Write(batch); }
  absl::Status Finish(ExportSummary& summary) override {
    RETURN_IF_ERROR(exporter_->Finish(summary));
    return file_->Close();
  }
  uint64_t bytes_written() const override { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  std::unique_ptr<OutputFile> file_;    // counts in bytes_
  std::unique_ptr<Exporter> exporter_;  // writes to file_
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> MakeSingleFile(
    OutputFiles& files, std::string_view name, ExportCompression compression,
    const std::function<absl::StatusOr<std::unique_ptr<Exporter>>(ByteSink&)>& make) {
  auto single = std::make_unique<SingleFileExporter>();
  RETURN_IF_ERROR(single->Open(files, name, compression));
  ASSIGN_OR_RETURN(std::unique_ptr<Exporter> exporter, make(single->sink()));
  single->Use(std::move(exporter));
  return single;
}

}  // namespace neurontrace
