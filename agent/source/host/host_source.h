// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/source/host/host_stream.h"
#include "agent/source/source.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// The processors and the memory of this host as a source: a stream of kind kHost in every capture
// that something else on this host takes part in, with samples of the time in which that records,
// until the capture is told to stop. One reading a second serves all captures. It tells its
// listener nothing: it is no worker, and nobody waits for it; what came of it its stream says.
//
// Flight recorders and what is cut out of them, and previews, are of the runtime's events alone. An
// agent that starts again goes on with the stream; one that takes no samples (any more), or that
// finds the stream of an earlier boot, ends it when the capture stops. Where /proc cannot be read
// the log says so once, and it is tried again every second. Lives on the agent's sequence.
class HostSource final : public Source {
 public:
  struct Options {
    std::string agent_id;
    std::string instance_id;
    std::string boot_id;
    std::string proc_root = "/proc";
    bool enabled = true;
  };
  // Whether anything on this host records for that capture now.
  using IsRecording = std::function<bool(const CaptureId&)>;

  // All references outlive the source.
  HostSource(Options options, const Clock& clock, TaskRunner& runner, ChunkSink& sink,
             AgentSourceMetrics& metrics, IsRecording is_recording);
  ~HostSource() override;

  void ApplyOrder(const SourceOrder& order) override;
  // At once: a sample is of a second.
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void Flush() override;

  // What IsRecording says of some capture is another thing now. It is asked soon, and not from
  // here.
  void LookAgain();

 private:
  struct Capture {
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
  // The capture of the order, which is new or gets the order's cursors; null if the source has no
  // part in it.
  Capture* Know(const SourceOrder& order);
  const StreamCursor* OwnCursor(const Capture& capture) const;
  // Whether it is to be sampled for as long as something records.
  bool IsOn(const Capture& capture) const;
  std::optional<HostReading> Read();
  void Sample(const CaptureId& capture_id, Capture& capture, bool is_due,
              const HostReading& reading);
  void EndOrphans(const CaptureId& capture_id, Capture& capture);
  void Work();
  void WakeAt(uint64_t monotonic_ns);

  const Options options_;
  const Clock& clock_;
  TaskRunner& runner_;
  ChunkSink& sink_;
  AgentSourceMetrics& metrics_;
  const IsRecording is_recording_;
  std::map<CaptureId, Capture> captures_;
  uint64_t sample_due_ns_ = 0;  // monotonic
  uint64_t wake_ns_ = 0;        // monotonic, of the task that is to come; 0: none
  std::string problem_;         // why /proc could not be read the last time; empty: it could
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
