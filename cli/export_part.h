// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {

// The place in which the files of an export are collected until they are whole: PATH.part beside
// PATH, and PATH.part.request, which records the request. An interrupted export can be left there,
// and the next one with the same request continues it; remains of other requests are removed. The
// owner of the place holds a lock on PATH.part.request. If that is impossible, because another
// process holds it, the volume has no locks, or either name is taken by a file that no export made,
// the place is PATH.PID.part, and cannot be left. One thread.
class ExportPart {
 public:
  struct Spec {
    std::string path;  // of the file or directory, once it is whole
    bool is_directory = false;
    std::string capture_id;
    std::string request;       // identifies the request; empty: it is never continued
    bool begins_anew = false;  // removes existing files
  };
  // Takes the place. Fails with FAILED_PRECONDITION if nothing can be made there.
  static absl::StatusOr<std::unique_ptr<ExportPart>> Open(const Spec& spec);
  // Removes the files, unless they were left or have their real name.
  ~ExportPart();
  ExportPart(const ExportPart&) = delete;
  ExportPart& operator=(const ExportPart&) = delete;

  const std::string& path() const { return path_; }
  bool can_be_left() const { return note_.valid(); }

  // For a single file: the aggregator's name of it. Stored with left files; empty while there are
  // none.
  const std::string& file_name() const { return file_name_; }
  void NoteFileName(const std::string& name);

  // Removes the files; of a directory the empty one stays.
  absl::Status Clear();
  // Renames the files to their real name after syncing them to the disk.
  absl::Status TakeName();
  // Keeps the files for another export of the same, if that is possible.
  void Leave() { is_left_ = can_be_left(); }

 private:
  explicit ExportPart(const Spec& spec) : spec_(spec) {}
  // Returns false if the place cannot be taken.
  bool TakeNote();
  bool IsOurs() const;
  void ReadNote(const std::string& note);
  void WriteNote();

  const Spec spec_;
  std::string path_;
  std::string file_name_;
  UniqueFd note_;  // PATH.part.request, locked
  bool is_of_same_request_ = false;
  bool is_left_ = false;
  bool is_named_ = false;
};

// Removes a temporary file or directory. Allocates memory, so it is not for signal handlers.
void RemoveTemporary(const std::string& temporary);

}  // namespace neurontrace::cli
