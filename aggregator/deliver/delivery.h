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

// One export of one capture into a volume, step by step, as docs/formats/shared_volume.md defines
// it. A file under its name is whole (where the volume can rename); manifest.json exists only while
// everything that it names does; what an interrupted delivery had finished is not written again.
// Used by one thread at a time. The files of BeginStep must not outlive their step.
class Delivery {
 public:
  struct Spec {
    CaptureId capture;
    ClaimOwner owner;
    // Program and version.
    std::string producer;
    // Of each manifest; beyond, steps fail with RESOURCE_EXHAUSTED. Smaller only in tests.
    size_t manifest_bytes_max = limits::kManifestBytesMax;
  };
  // The judgement of what a step wrote; FindDone returns it to later deliveries.
  struct StepEnd {
    std::string verdict;
    bool capture_incomplete = false;
  };

  // Claims the capture's directory, reads what earlier deliveries left, and sweeps up their
  // temporary files. `volume` and `clock` must outlive the delivery. Fails with UNAVAILABLE if
  // another writer has the directory, and with the volume's errors.
  static absl::StatusOr<std::unique_ptr<Delivery>> Begin(Volume& volume, const Spec& spec,
                                                         const Clock& clock);
  ~Delivery();
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // Returns the step if it is there, whole, and was made for the same `request`; else null. Checks
  // the size of each of its files and calls `check_continuation` before each check.
  absl::StatusOr<const v1::DeliveredStep*> FindDone(const std::string& step,
                                                    const std::string& request,
                                                    const ContinuationCheck& check_continuation);
  // Announces files that later steps will open, so that the manifest is not saved again for each of
  // their directories.
  void Expect(const std::vector<std::string>& names);
  // Begins a step whose files are put below `directory`. Files that the step wrote at another time
  // and does not write again are removed when it ends. The result is usable until EndStep or the
  // next BeginStep. This and the following operations fail with RESOURCE_EXHAUSTED if a manifest
  // cannot list all that is written.
  absl::StatusOr<OutputFiles*> BeginStep(const std::string& step, const std::string& request,
                                         const std::string& directory);
  // Requires that all files of the step are closed and destroyed. The step counts as done from here
  // on.
  absl::Status EndStep(const StepEnd& end);
  // Renews the claim; called often, even while nothing is written. Fails with ABORTED if another
  // writer has taken over: then nothing may be written any more.
  absl::Status Keep() { return claim_->Keep(); }
  // Removes steps that were begun and never ended, then writes the checksums and the manifest.
  // Nothing is written if everything was there already.
  absl::Status Finish();

  // neurontrace_<capture id>, the directory for everything that concerns the whole capture.
  const std::string& capture_directory() const { return directory_; }
  std::string manifest_path() const;
  const v1::DeliveryManifest& manifest() const { return manifest_; }
  // Files and bytes that this delivery wrote, and files of steps that FindDone found.
  uint64_t files_written() const { return files_written_; }
  uint64_t files_there() const { return files_there_; }
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  class Step;
  class StepFile;

  Delivery(Volume& volume, const Spec& spec, const Clock& clock);
  // Reads the manifest of an earlier delivery and sweeps up after it.
  absl::Status Resume();
  // Writes the partial manifest, by which a successor knows what is there.
  absl::Status Save();
  absl::Status WriteManifest(std::string_view name);
  absl::Status Write(std::string_view name, const std::string& text);
  absl::Status Remove(const std::string& name);
  // Declares that the delivery is no longer whole: a partial manifest takes the place of the
  // manifest.
  absl::Status Open();
  void AddDirectoryOf(const std::string& name);
  v1::DeliveredStep* Find(const std::string& step);
  absl::Status Remember(const std::string& name, const std::string& token);

  Volume& volume_;
  const Spec spec_;
  const Clock& clock_;
  const std::string directory_;
  std::unique_ptr<Claim> claim_;
  v1::DeliveryManifest manifest_;
  // manifest.partial.json exists.
  bool is_open_ = false;
  // manifest.json certainly does not exist.
  bool is_manifest_gone_ = false;
  // Steps of manifest_ by name. Protobuf keeps elements of a repeated field in place while it
  // grows.
  absl::flat_hash_map<std::string, v1::DeliveredStep*> steps_;
  // Files of all these steps.
  size_t files_ = 0;
  absl::flat_hash_set<std::string> directories_;
  bool are_directories_saved_ = true;
  // Of unfinished files, see Volume::Resumption.
  absl::flat_hash_map<std::string, std::string> tokens_;
  std::unique_ptr<Step> step_;
  uint64_t files_written_ = 0;
  uint64_t files_there_ = 0;
  uint64_t bytes_written_ = 0;
  // bytes_written_ when the manifest was written last.
  uint64_t saved_bytes_ = 0;
  uint64_t saved_monotonic_ns_ = 0;
};

}  // namespace neurontrace
