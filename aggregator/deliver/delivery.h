// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/deliver/claim.h"
#include "aggregator/deliver/volume.h"
#include "aggregator/export/output_files.h"
#include "lib/base/clock.h"
#include "lib/base/sha256.h"
#include "lib/trace/ids.h"
#include "lib/trace/limits.h"
#include "neurontrace/v1/delivery.pb.h"

namespace neurontrace {

// One export of one capture into a volume, step by step, by docs/formats/shared_volume.md. What
// stands under its name is whole; manifest.json is there only while everything is; what an
// interrupted delivery had finished is not written again. One thread at a time; the files of
// BeginStep do not outlive their step.
class Delivery {
 public:
  struct Spec {
    CaptureId capture;
    ClaimOwner owner;
    std::string producer;  // program and version
    size_t manifest_bytes_max = limits::kManifestBytesMax;
  };
  // What a step was asked for, and what is said of what it wrote.
  struct StepEnd {
    std::string verdict;
    bool capture_incomplete = false;
  };

  // Claims the capture's directory. `volume` and `clock` outlive it. UNAVAILABLE where another one
  // writes it.
  static absl::StatusOr<std::unique_ptr<Delivery>> Begin(Volume& volume, const Spec& spec,
                                                         const Clock& clock);
  ~Delivery();
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // The step is there, whole, as `request` would make it: its end, else null. Looks at each of its
  // files.
  absl::StatusOr<const v1::DeliveredStep*> FindDone(const std::string& step,
                                                    const std::string& request,
                                                    const MayGoOn& may_go_on);
  // Files that steps to come will open, so that the manifest is not written for each of their
  // directories.
  void Expect(const std::vector<std::string>& names);
  // Begins a step, whose files come below `directory`; what it wrote another time goes when it
  // ends. The result is usable until EndStep or the next BeginStep. RESOURCE_EXHAUSTED of this and
  // what follows: more than a manifest may report.
  absl::StatusOr<OutputFiles*> BeginStep(const std::string& step, const std::string& request,
                                         const std::string& directory);
  absl::Status EndStep(const StepEnd& end);
  // To be called often, also while nothing is written: ABORTED when another one has taken over.
  absl::Status Keep() { return claim_->Keep(); }
  // Everything is there.
  absl::Status Finish();

  // neurontrace_<capture id>: where what is of the whole capture goes.
  const std::string& capture_directory() const { return directory_; }
  std::string manifest_path() const;
  const v1::DeliveryManifest& manifest() const { return manifest_; }
  uint64_t files_written() const { return files_written_; }
  uint64_t files_there() const { return files_there_; }
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  class Step;
  class StepFile;

  Delivery(Volume& volume, const Spec& spec, const Clock& clock);
  absl::Status TakeUp();
  absl::Status Save();
  absl::Status WriteManifest(std::string_view name);
  absl::Status Write(std::string_view name, const std::string& text);
  absl::Status Remove(const std::string& name);
  absl::Status Open();  // what is whole no more says so
  void AddDirectoryOf(const std::string& name);
  v1::DeliveredStep* Find(const std::string& step);
  absl::Status Remember(const std::string& name, const std::string& token);

  Volume& volume_;
  const Spec spec_;
  const Clock& clock_;
  const std::string directory_;
  std::unique_ptr<Claim> claim_;
  v1::DeliveryManifest manifest_;
  bool is_open_ = false;                                        // manifest.partial.json is there
  bool is_manifest_gone_ = false;                               // manifest.json is not
  absl::flat_hash_map<std::string, v1::DeliveredStep*> steps_;  // of manifest_, by their names
  size_t files_ = 0;                                            // of all of them
  absl::flat_hash_set<std::string> directories_;
  bool are_directories_saved_ = true;
  absl::flat_hash_map<std::string, std::string> tokens_;  // of unfinished files
  std::unique_ptr<Step> step_;
  uint64_t files_written_ = 0;
  uint64_t files_there_ = 0;
  uint64_t bytes_written_ = 0;
  uint64_t saved_bytes_ = 0;  // when the manifest was written last
  uint64_t saved_monotonic_ns_ = 0;
};

}  // namespace neurontrace
