// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {

// The place in which the files of an export gather until they are whole: PATH.part beside PATH, and
// PATH.part.request, which says what was asked for. An export that broke off can be left there, and
// the next one that asks for the same continues with it; what another request left is removed. Who
// has the place has a lock on PATH.part.request. Where that is not to be had, because another
// process has it, because the volume has no locks, or because either name is taken by something
// that no export made, the place is PATH.PID.part, and is not left. One thread.
class ExportPart {
 public:
  struct Spec {
    std::string path;  // of the file or directory, once it is whole
    bool is_directory = false;
    std::string capture_id;
    std::string request;       // what tells it from any other; empty: it is never gone on with
    bool begins_anew = false;  // removes what is there
  };
  static absl::StatusOr<std::unique_ptr<ExportPart>> Open(const Spec& spec);
  // Removes what is there, unless it was left or took its name.
  ~ExportPart();
  ExportPart(const ExportPart&) = delete;
  ExportPart& operator=(const ExportPart&) = delete;

  const std::string& path() const { return path_; }
  bool can_be_left() const { return note_.valid(); }

  // Of one file: what the aggregator calls it. Kept with what is left; empty while nothing is
  // there.
  const std::string& file_name() const { return file_name_; }
  void NoteFileName(const std::string& name);

  // Removes what is there; of a directory an empty one stays.
  absl::Status Clear();
  // With everything on the disk.
  absl::Status TakeName();
  // What is there stays for an export of the same.
  void Leave() { is_left_ = can_be_left(); }

 private:
  explicit ExportPart(const Spec& spec) : spec_(spec) {}
  bool TakeNote();  // false: the place is not to be had
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

// Removes a temporary file or directory. Allocates: not for signal handlers.
void RemoveTemporary(const std::string& temporary);

}  // namespace neurontrace::cli
