// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "aggregator/store/store.h"
#include "aggregator/view/digest_builder.h"
#include "lib/base/mutex.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Follows the store and makes the digests of its captures, running ones included, with a thread of
// its own that yields to everything else: it runs at a lower priority, and rests after each digest
// twice as long as that took. Works from Begin until End. Public functions may be called from any
// thread.
// thread: digests: makes digests of stored chunks for the page
class DigestService final : private DigestBuilder::Pacer {
 public:
  // Both must outlive this.
  struct Deps {
    Store& store;
    prometheus::Registry& registry;
  };
  explicit DigestService(const Deps& deps);
  // Calls End.
  ~DigestService() override;
  DigestService(const DigestService&) = delete;
  DigestService& operator=(const DigestService&) = delete;

  // Starts the thread.
  void Begin();
  // Ends the thread after the current digest, for good.
  void End();

  // Looks at every capture once and makes what is missing. Called by the thread; tests and
  // benchmarks that do not call Begin call it instead.
  void RunPass();

 private:
  // What is known of a capture since the last pass.
  struct Known {
    uint64_t bytes = 0;  // that were stored
    bool has_ended = false;
    bool is_done = false;                              // nothing can be made before these change
    uint64_t behind = 0;                               // chunks without a digest
    absl::flat_hash_map<uint32_t, uint64_t> retry_at;  // by stream
  };

  void Run();
  bool Continue() override;
  bool IsEnding() const;
  // Fails with errors of the store. Streams that reach a limit are counted and skipped.
  absl::Status BuildCapture(const CaptureRecord& record, Known& known);

  Store& store_;
  DigestBuilder builder_;
  prometheus::Counter& built_;
  prometheus::Counter& written_;
  prometheus::Counter& failed_;
  prometheus::Gauge& bytes_;
  prometheus::Gauge& behind_;
  std::map<CaptureId, Known> known_;  // used by the thread only
  uint64_t step_began_ns_ = 0;        // as above
  bool rests_ = false;                // as above
  mutable Mutex mutex_;
  CondVar ending_;
  bool is_ending_ NT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace neurontrace
