// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/source/capture_participants.h"
#include "agent/source/host/host_stream.h"
#include "agent/source/source.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// The processors and the memory of this host as a source: a stream of kind kHost in every capture
// that something else on this host takes part in, sampled while that records, until the capture is
// told to stop. One reading a second serves all captures (docs/operator/host_samples.md). It
// reports nothing to a listener: it is no worker, and nobody waits for it. Its stream contains what
// happened to it.
//
// Flight recorders, snapshots cut from them, and previews have the runtime's events only. An agent
// that restarts continues the stream. One that takes no samples (any more), or that finds the
// stream of an earlier boot, ends that stream when the capture stops. If /proc cannot be read, the
// log reports it once and it is tried again every second. Lives on the agent's sequence.
class HostSource final : public Source {
 public:
  struct Options {
    std::string agent_id;
    std::string instance_id;
    std::string boot_id;
    std::string proc_root = "/proc";
    bool enabled = true;
  };

  // All references outlive the source. `participants` is asked from a task, never from within a
  // call of this class's functions.
  HostSource(Options options, const Clock& clock, TaskRunner& runner, ChunkSink& sink,
             AgentSourceMetrics& metrics, const CaptureParticipants& participants);
  ~HostSource() override;

  void ApplyOrder(const SourceOrder& order) override;
  // Stops at once, whatever `host_raw_ns`: a sample is of a whole second.
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void Flush() override;

  // Called when the result of CaptureParticipants::Records has changed for some capture; it is
  // asked soon, by a task.
  void PollAgain();

 private:
  // One capture that this source has a part in.
  struct Capture {
    // By the capture's specification; false if only old streams have to be ended.
    bool selected = false;
    bool begun = false;
    bool stopped = false;
    bool confirmed = false;                              // the aggregator has said that it runs
    bool records = false;                                // something here, when last looked
    std::map<std::string, StreamCursor> cursors;         // of agents before this one, by boot
    std::unique_ptr<HostStream> stream;                  // once it is sampled for
    std::vector<std::unique_ptr<StreamWriter>> orphans;  // that are ended, and no more

    bool samples() const { return stream != nullptr && !stream->paused(); }
  };

  bool Selects(const CaptureSpec& spec) const;
  // Returns the capture of the order, which is created or gets the order's cursors; null if the
  // source has no part in it.
  Capture* Know(const SourceOrder& order);
  // Returns the cursor of the stream that an earlier run of this agent began on this boot; null if
  // none.
  const StreamCursor* OwnCursor(const Capture& capture) const;
  // Returns whether the capture is to be sampled for as long as something records.
  bool IsOn(const Capture& capture) const;
  // Reads /proc; nothing if that fails.
  std::optional<HostReading> Read();
  void Sample(const CaptureId& capture_id, Capture& capture, bool is_due,
              const HostReading& reading);
  // Ends the streams of earlier runs that this one does not continue.
  void EndOrphans(const CaptureId& capture_id, Capture& capture);
  // Asks what records, takes the samples that are due, and schedules itself.
  void Work();
  // Posts Work for that time unless an earlier wakeup is pending.
  void WakeAt(uint64_t monotonic_ns);

  const Options options_;
  const Clock& clock_;
  TaskRunner& runner_;
  ChunkSink& sink_;
  AgentSourceMetrics& metrics_;
  const CaptureParticipants& participants_;
  std::map<CaptureId, Capture> captures_;
  uint64_t sample_due_ns_ = 0;  // monotonic
  uint64_t wake_ns_ = 0;        // monotonic, of the task that is to come; 0: none
  std::string problem_;         // why /proc could not be read the last time; empty: it could
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
