// SPDX-License-Identifier: Apache-2.0
#include "cli/export_destination.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/status.h"

namespace neurontrace::cli {
namespace {

constexpr size_t kOpenFilesMax = 512;  // at once: below the usual limit of a process
constexpr size_t kFilesMax = 65'536;   // as many as an aggregator sends

absl::Status CannotWrite(const std::string& path) {
  return FailedPrecondition("cannot write {}: {}", path, std::strerror(errno));
}

struct FileCloser {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

absl::Status Put(std::FILE* file, const std::string& data, const std::string& path) {
  if (std::fwrite(data.data(), 1, data.size(), file) == data.size()) return absl::OkStatus();
  return CannotWrite(path);
}

// To the file system, or whoever reads standard output.
absl::Status CloseWhole(File file, const std::string& path) {
  if (std::fflush(file.get()) != 0) return CannotWrite(path);
  std::FILE* const released = file.release();
  if (released != stdout && std::fclose(released) != 0) return CannotWrite(path);
  return absl::OkStatus();
}

class FileDestination : public ExportDestination {
 public:
  FileDestination(std::string path, std::string temporary, File file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}
  ~FileDestination() override {
    file_.reset();
    if (!is_kept_) RemoveTemporary(temporary_);
  }

  absl::Status Begin(const std::string& name) override {
    if (has_begun_) {
      return DataLoss("the aggregator sent a second file, {}, for {}", name, path_);
    }
    has_begun_ = true;
    return absl::OkStatus();
  }
  absl::Status Write(uint32_t number, const std::string& data) override {
    RETURN_IF_ERROR(CheckNumber(number));
    return Put(file_.get(), data, path_);
  }
  absl::Status End(uint32_t number) override {
    RETURN_IF_ERROR(CheckNumber(number));
    has_ended_ = true;
    return absl::OkStatus();
  }
  absl::Status Keep() override {
    if (!has_ended_) return DataLoss("the aggregator did not end {}", path_);
    RETURN_IF_ERROR(CloseWhole(std::move(file_), path_));
    if (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return CannotWrite(path_);
    }
    is_kept_ = true;
    return absl::OkStatus();
  }
  const std::string& temporary() const override { return temporary_; }

 private:
  absl::Status CheckNumber(uint32_t number) const {
    if (has_begun_ && !has_ended_ && number == 0) return absl::OkStatus();
    return DataLoss("the aggregator sent bytes of no file for {}", path_);
  }

  const std::string path_;
  const std::string temporary_;
  File file_;
  bool has_begun_ = false;
  bool has_ended_ = false;
  bool is_kept_ = false;
};

// A name from an aggregator stays below the directory.
bool IsBelow(const std::filesystem::path& name) {
  if (name.empty() || name.is_absolute()) return false;
  for (const auto& part : name) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

class DirectoryDestination : public ExportDestination {
 public:
  DirectoryDestination(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}
  ~DirectoryDestination() override {
    open_.clear();
    if (!is_kept_) RemoveTemporary(temporary_);
  }

  absl::Status Begin(const std::string& name) override {
    if (!IsBelow(name)) return DataLoss("the aggregator sent a file named '{}'", name);
    if (files_ >= kFilesMax || open_.size() >= kOpenFilesMax) {
      return ResourceExhausted("the aggregator sent more than {} files, or {} at once", kFilesMax,
                               kOpenFilesMax);
    }
    const std::filesystem::path path = std::filesystem::path(temporary_) / name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      return FailedPrecondition("cannot make {}: {}", path.parent_path().string(), error.message());
    }
    File file(std::fopen(path.c_str(), "wbx"));
    if (file == nullptr) return CannotWrite(path.string());
    open_.emplace(files_++, OpenFile{path.string(), std::move(file)});
    return absl::OkStatus();
  }
  absl::Status Write(uint32_t number, const std::string& data) override {
    const auto at = open_.find(number);
    if (at == open_.end()) return DataLoss("the aggregator sent bytes of no file for {}", path_);
    return Put(at->second.file.get(), data, at->second.path);
  }
  absl::Status End(uint32_t number) override {
    const auto at = open_.find(number);
    if (at == open_.end()) return DataLoss("the aggregator ended no file for {}", path_);
    RETURN_IF_ERROR(CloseWhole(std::move(at->second.file), at->second.path));
    open_.erase(at);
    return absl::OkStatus();
  }
  absl::Status Keep() override {
    if (!open_.empty()) {
      return DataLoss("the aggregator did not end {}", open_.begin()->second.path);
    }
    // Takes the place of an empty directory, and of no other.
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return CannotWrite(path_);
    is_kept_ = true;
    return absl::OkStatus();
  }
  const std::string& temporary() const override { return temporary_; }

 private:
  struct OpenFile {
    std::string path;
    File file;
  };

  const std::string path_;
  const std::string temporary_;
  std::map<uint32_t, OpenFile> open_;  // by number
  uint32_t files_ = 0;
  bool is_kept_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExportDestination>> OpenFileDestination(const std::string& path) {
  if (path == "-") return std::make_unique<FileDestination>(path, "", File(stdout));
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    return InvalidArgument("{} is a directory: name the file in it", path);
  }
  std::string temporary = fmt::format("{}.{}.part", path, getpid());
  File file(std::fopen(temporary.c_str(), "wb"));
  if (file == nullptr) return CannotWrite(temporary);
  return std::make_unique<FileDestination>(path, std::move(temporary), std::move(file));
}

absl::StatusOr<std::unique_ptr<ExportDestination>> OpenDirectoryDestination(
    const std::string& path) {
  if (path == "-") {
    return InvalidArgument("an export of several files needs a directory: -o DIRECTORY");
  }
  std::string name = path;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  std::error_code error;
  const auto there = std::filesystem::status(name, error);
  const bool is_in_the_way =
      std::filesystem::exists(there) &&
      (!std::filesystem::is_directory(there) || !std::filesystem::is_empty(name, error));
  if (is_in_the_way) {
    return FailedPrecondition("{} is there and not an empty directory: name another with -o", name);
  }
  std::string temporary = fmt::format("{}.{}.part", name, getpid());
  if (!std::filesystem::create_directory(temporary, error)) {
    return FailedPrecondition("cannot make {}: {}", temporary,
                              error ? error.message() : "it is there");
  }
  return std::make_unique<DirectoryDestination>(std::move(name), std::move(temporary));
}

void RemoveTemporary(const std::string& temporary) {
  std::error_code ignored;  // it is a remainder, named as one
  if (!temporary.empty()) std::filesystem::remove_all(temporary, ignored);
}

}  // namespace neurontrace::cli
