// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/source/artifact/artifact_sink.h"
#include "agent/source/source.h"
#include "agent/source/source_metrics.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// CLOCK_REALTIME, ns, of the start of a process by field 22 of its /proc/PID/stat, in clock ticks
// since boot (CLOCK_BOOTTIME of the reader's time namespace). As exact as a tick, and by what
// CLOCK_REALTIME shows now.
uint64_t ProcessStartNs(uint64_t start_time_ticks);

// The files that the vendor's profiler leaves under inspect directories, as a source: while a
// capture runs it looks there once a second, and hands over what is this instance's and either
// changed since the capture began or is in the directory of one of its workers and changed since
// that one's process started: process ids come again, and other namespaces have the same. A file is
// taken once it rests: looks have found it the same for limits::kArtifactRestNs, however soon after
// a capture's end they come. One that changes later is taken again, and takes the
// place of the one before. They are handed over one at a time. It makes no stream, and tells its
// listener nothing. A capture's end is waited with until its files are handed over, for
// limits::kArtifactPatienceNs at the most and as long as one is on its way then. What is not handed
// over by then, or refused, is told to the aggregator, which the capture's end waits for.
//
// Flight recorders and what is cut out of them, and previews, take none. Lives on the agent's
// sequence.
class ArtifactSource final : public Source {
 public:
  struct Options {
    std::vector<std::string> directories;  // none: it takes no part in anything
    std::string instance_id;
  };
  // Workers that have a part in that capture on this node, or had.
  using WorkersOf = std::function<std::vector<WorkerIdentity>(const CaptureId&)>;
  // CLOCK_REALTIME, ns, of a process's start (clock ticks since boot).
  using StartNs = std::function<uint64_t(uint64_t start_time_ticks)>;

  // All references outlive the source.
  ArtifactSource(Options options, const Clock& clock, TaskRunner& runner, ArtifactSink& sink,
                 AgentSourceMetrics& metrics, WorkersOf workers_of, StartNs start_ns);
  ~ArtifactSource() override;

  // A capture that is to finish begins here: its files are found by when they changed. Without the
  // aggregator nothing is continued, as files can be read later.
  void ApplyOrder(const SourceOrder& order) override;
  void Stop(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  bool IsFinished(const CaptureId& capture_id) const override;
  void Forget(const CaptureId& capture_id) override;
  void Flush() override {}

 private:
  struct Item {
    FoundArtifact seen;
    bool is_there = true;   // when it was looked last
    uint64_t since_ns = 0;  // monotonic: it has been seen like this since then
    bool rests = false;
    bool on_its_way = false;
    bool settled_for_good = false;  // this state of it is kept, or is told not to be
    std::string forgone;            // why it will not be kept, to be told; empty: it may be
    uint32_t changes = 0;           // while it was read
    uint64_t again_ns = 0;          // monotonic: not before
  };
  struct Capture {
    bool begun = false;
    bool stopped = false;
    bool over = false;
    uint64_t stopped_ns = 0;            // monotonic
    uint64_t new_from_ns = 0;           // realtime: what changed later is of this capture
    uint32_t looks_at_end = 0;          // since it was stopped
    std::map<std::string, Item> items;  // by root and path
  };

  bool Selects(const CaptureSpec& spec) const;
  void Arm(const CaptureId& capture_id, const CaptureSpec& spec);
  void Begin(const CaptureId& capture_id);
  void Look();
  void OnFound(const std::vector<FoundArtifact>& found, bool truncated);
  void Note(Capture& capture, const FoundArtifact& artifact,
            const std::vector<WorkerIdentity>& workers);
  bool IsOfWorker(const FoundArtifact& artifact, const WorkerIdentity& worker) const;
  bool IsDue(const Capture& capture, const Item& item) const;
  void SubmitNext();
  bool OutOfPatience(const Capture& capture) const;
  void OnOutcome(Item& item, const FoundArtifact& artifact, const ArtifactSink::Outcome& outcome);
  void OnTold(Item& item, const ArtifactSink::Outcome& outcome);
  void EndIfDone(Capture& capture);
  void LookIn(uint64_t delay_ns);

  const Options options_;
  const Clock& clock_;
  TaskRunner& runner_;
  ArtifactSink& sink_;
  AgentSourceMetrics& metrics_;
  const WorkersOf workers_of_;
  const StartNs start_ns_;
  std::map<CaptureId, Capture> captures_;
  bool look_scheduled_ = false;
  bool looking_ = false;
  bool submitting_ = false;
  uint64_t look_began_ns_ = 0;  // monotonic, of the last one
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
