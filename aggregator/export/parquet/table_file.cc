// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/table_file.h"

#include "base/status.h"

namespace neurontrace {

absl::Status TableFile::Open(const std::string& name) {
  ASSIGN_OR_RETURN(file_, files_.Open(name));
  bytes_written_ += head_.size();
  const absl::Status status = file_->Write(head_);
  head_ = {};
  return status;
}

arrow::Status TableFile::Write(const void* data, int64_t bytes) {
  const std::string_view text(static_cast<const char*>(data), static_cast<size_t>(bytes));
  if (written_.ok() && file_ == nullptr && head_.size() + text.size() > head_bytes_max_) {
    written_ = Open(name_if_long_);
  }
  if (written_.ok() && file_ == nullptr) {
    head_ += text;
  } else if (written_.ok()) {
    bytes_written_ += text.size();
    written_ = file_->Write(text);
  }
  if (!written_.ok()) return arrow::Status::IOError("the receiver of the file is gone");
  position_ += bytes;
  return arrow::Status::OK();
}

arrow::Status TableFile::Close() {
  is_closed_ = true;
  return arrow::Status::OK();
}

absl::Status TableFile::Finish(const std::string& name) {
  RETURN_IF_ERROR(written_);
  if (file_ == nullptr) RETURN_IF_ERROR(Open(name));
  return file_->Close();
}

}  // namespace neurontrace
