// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/source/artifact/artifact_sink.h"
#include "agent/source/capture_participants.h"
#include "agent/source/source.h"
#include "agent/source/source_metrics.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// Returns the CLOCK_REALTIME, in ns, of the start of a process, given field 22 of its
// /proc/PID/stat in clock ticks since boot (CLOCK_BOOTTIME of the reader's time namespace). As
// exact as a tick, and according to the current setting of CLOCK_REALTIME. Any thread.
uint64_t ProcessStartNs(uint64_t start_time_ticks);

// The files that the vendor's profiler writes to inspect directories, as a source. While a capture
// runs it searches once a second. It hands over the files of this instance that changed since the
// capture began, and those in the directory of one of the capture's workers that changed since that
// process started: process ids are reused, and other namespaces have the same ones.
//
// A file is taken once searches have found it unchanged for limits::kArtifactRestNs. One that
// changes later is taken again, in place of the earlier version. Files are handed over one at a
// time. This source makes no stream and reports nothing to a listener.
//
// The end of a capture waits until its files are handed over, for at most
// limits::kArtifactPatienceNs, but not less than a transfer that is under way. What is not handed
// over by then, or is refused, is reported to the aggregator, and the end waits for that report.
//
// Flight recorders, snapshots cut from them, and previews have no artifacts. Lives on the agent's
// sequence.
class ArtifactSource final : public Source {
 public:
  struct Options {
    std::vector<std::string> directories;  // none: it takes no part in anything
    std::string instance_id;
  };
  // Returns the start of a process as ProcessStartNs does.
  using StartNs = std::function<uint64_t(uint64_t start_time_ticks)>;

  // All references, and what `start_ns` refers to, outlive the source.
  ArtifactSource(Options options, const Clock& clock, TaskRunner& runner, ArtifactSink& sink,
                 AgentSourceMetrics& metrics, const CaptureParticipants& participants,
                 StartNs start_ns);
  ~ArtifactSource() override;

  // kFinish begins here as kStart does, since files are found by when they changed. kContinue does
  // nothing, as files can be read later.
  void ApplyOrder(const SourceOrder& order) override;
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void Flush() override {}

 private:
  // One file of a capture. An item rests, is on its way, and is settled. A change of the file
  // starts that again.
  struct Item {
    FoundArtifact seen;
    bool is_there = true;   // when it was looked last
    uint64_t since_ns = 0;  // monotonic: it has been seen like this since then
    bool rests = false;
    bool in_flight = false;
    bool settled_for_good = false;  // this state of it is kept, or reported as omitted
    std::string forgone;            // why it will not be kept, to be reported; empty: it may be
    uint32_t changes = 0;           // while it was read
    uint64_t again_ns = 0;          // monotonic: not before
  };
  struct Capture {
    bool begun = false;
    bool stopped = false;
    bool over = false;
    uint64_t stopped_ns = 0;            // monotonic
    uint64_t new_from_ns = 0;           // realtime: what changed later is of this capture
    uint32_t polls_at_end = 0;          // since it was stopped
    std::map<std::string, Item> items;  // by root and path
  };

  // Returns true for captures with artifacts that select this instance.
  bool Selects(const CaptureSpec& spec) const;
  void Arm(const CaptureId& capture_id, const CaptureSpec& spec);
  void Begin(const CaptureId& capture_id);
  // Starts a search unless one is running or no capture needs it; OnFound takes the result.
  void Poll();
  void OnFound(const std::vector<FoundArtifact>& found, bool truncated);
  void Record(Capture& capture, const FoundArtifact& artifact,
              const std::vector<WorkerIdentity>& workers);
  // Returns whether the file is in the directory of this worker and was changed during its life.
  bool IsOfWorker(const FoundArtifact& artifact, const WorkerIdentity& worker) const;
  // Returns whether the file, or the report that it will not be kept, is to be sent now.
  bool IsDue(const Capture& capture, const Item& item) const;
  // Hands over the item that is due and has rested longest, unless one is under way.
  void SubmitNext();
  // Returns whether the capture has ended too long ago to wait for more files.
  bool OutOfPatience(const Capture& capture) const;
  void OnOutcome(Item& item, const FoundArtifact& artifact, const ArtifactSink::Outcome& outcome);
  // Takes the answer to the report that a file will not be kept.
  void OnReported(Item& item, const ArtifactSink::Outcome& outcome);
  // Ends the capture once nothing is open; gives up on files that have come too late.
  void EndIfDone(Capture& capture);
  // Schedules a search.
  void SchedulePoll(uint64_t delay_ns);

  const Options options_;
  const Clock& clock_;
  TaskRunner& runner_;
  ArtifactSink& sink_;
  AgentSourceMetrics& metrics_;
  const CaptureParticipants& participants_;
  const StartNs start_ns_;
  std::map<CaptureId, Capture> captures_;
  bool poll_scheduled_ = false;
  // A search, and a transfer, are under way.
  bool looking_ = false;
  bool submitting_ = false;
  uint64_t poll_started_ns_ = 0;  // monotonic, of the last one
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
