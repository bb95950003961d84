// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/single_file.h"

#include <utility>

#include "aggregator/export/gzip_file.h"
#include "aggregator/export/output_files.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Counts what reaches the file itself, whatever compression is put in front of it.
class OneCountedFile : public OutputFiles {
 public:
  explicit OneCountedFile(OutputFiles& files) : files_(files) {}
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) override {
    ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> opened, files_.Open(name));
    auto file = std::make_unique<CountedFile>(std::move(opened));
    file_ = file.get();
    return file;
  }
  const CountedFile* file() const { return file_; }

 private:
  OutputFiles& files_;
  const CountedFile* file_ = nullptr;
};

// Owns a file and the exporter that writes to it. The file is declared first, so that it outlives
// the exporter.
class SingleFileExporter : public Exporter {
 public:
  // Opens the file. `one` may be destroyed before the file, which does not refer to it.
  absl::Status Open(OutputFiles& files, std::string_view name, ExportCompression compression) {
    OneCountedFile one(files);
    ASSIGN_OR_RETURN(file_, OpenCompressed(one, name, compression));
    counted_ = one.file();
    return absl::OkStatus();
  }
  ByteSink& sink() { return *file_; }
  void Use(std::unique_ptr<Exporter> exporter) { exporter_ = std::move(exporter); }

  absl::Status Begin(const TimelineHeader& header) override { return exporter_->Begin(header); }
  bool prepares() const override { return exporter_->prepares(); }
  void Prepare(const TimelineBatch& batch) override { exporter_->Prepare(batch); }
  absl::Status Write(const TimelineBatch& batch) override { return exporter_->Write(batch); }
  // Only a finished export closes its file: an unclosed one is incomplete for its receiver.
  absl::Status Finish(ExportSummary& summary) override {
    RETURN_IF_ERROR(exporter_->Finish(summary));
    return file_->Close();
  }
  uint64_t bytes_written() const override { return counted_->bytes(); }

 private:
  std::unique_ptr<OutputFile> file_;
  const CountedFile* counted_ = nullptr;  // in file_
  std::unique_ptr<Exporter> exporter_;    // writes to file_
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exporter>> MakeSingleFile(
    OutputFiles& files, std::string_view name, ExportCompression compression,
    const std::function<absl::StatusOr<std::unique_ptr<Exporter>>(ByteSink&)>& make) {
  // The file is opened before `make` is called, because exporters take their sink in the
  // constructor.
  auto single = std::make_unique<SingleFileExporter>();
  RETURN_IF_ERROR(single->Open(files, name, compression));
  ASSIGN_OR_RETURN(std::unique_ptr<Exporter> exporter, make(single->sink()));
  single->Use(std::move(exporter));
  return single;
}

}  // namespace neurontrace
