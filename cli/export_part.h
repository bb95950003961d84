// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {

// The place in which the files of an export are collected until they are whole: PATH.part beside
// PATH, so that a rename suffices. PATH.part.request, the note, records the request. An interrupted
// export can be left there, and the next one with the same request continues it; remains of other
// requests are removed.
//
// The owner of the place holds a lock (flock(2)) on the note. If that is impossible, the place is
// PATH.PID.part and cannot be left. Reasons are another process with the lock, a volume without
// locks, and a file that no export made under either name. One thread.
class ExportPart {
 public:
  struct Spec {
    std::string path;  // of the file or directory, once it is whole
    bool is_directory = false;
    std::string capture_id;
    std::string request;      // identifies the request; empty: it is never continued
    bool is_restart = false;  // removes existing files
  };
  // Takes the place. Fails with FAILED_PRECONDITION if nothing can be made there.
  static absl::StatusOr<std::unique_ptr<ExportPart>> Open(const Spec& spec);
  // Removes the files, unless they were left or have their real name.
  ~ExportPart();
  ExportPart(const ExportPart&) = delete;
  ExportPart& operator=(const ExportPart&) = delete;

  // Returns the path of the temporary file or directory.
  const std::string& path() const { return path_; }
  // Returns whether Leave has an effect.
  bool can_be_left() const { return note_.valid(); }

  // Returns the aggregator's name of a single file. Stored with left files; empty while there are
  // none.
  const std::string& file_name() const { return file_name_; }
  void RecordFileName(const std::string& name);

  // Removes the files; for a directory creates it again, empty. Fails with FAILED_PRECONDITION if
  // it cannot be created.
  absl::Status Clear();
  // Renames the files to their real name after syncing them to the disk. Fails with
  // FAILED_PRECONDITION; the files still have their temporary name then, unless only the last sync
  // of the directory failed.
  absl::Status TakeName();
  // Keeps the files for another export of the same, if that is possible.
  void Leave() { is_left_ = can_be_left(); }

 private:
  explicit ExportPart(const Spec& spec) : spec_(spec) {}
  // Takes the note and its lock. Returns false if the place cannot be taken.
  bool AdoptResumeNote();
  bool IsOwned() const;
  // Parses an existing note; one of another request counts as none.
  void ReadResumeNote(const std::string& note);
  // Replaces the note by the current state. Errors are ignored.
  void WriteResumeNote();

  const Spec spec_;
  std::string path_;
  std::string file_name_;
  UniqueFd note_;  // PATH.part.request, locked
  // The existing files belong to the same request and may be continued.
  bool is_of_same_request_ = false;
  // The destructor keeps the files, as a part or under their real name.
  bool is_left_ = false;
  bool is_named_ = false;
};

// Removes a temporary file or directory. Allocates memory, so it is not for signal handlers.
void RemoveTemporary(const std::string& temporary);

}  // namespace neurontrace::cli
