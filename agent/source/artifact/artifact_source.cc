// SPDX-License-Identifier: Apache-2.0
#include "agent/source/artifact/artifact_source.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "lib/base/time_units.h"
#include "lib/trace/artifact_limits.h"

// How it works: one search at a time lists the files, Note compares each with what was known and
// decides whether it rests, and SubmitNext hands over one at a time. After Stop, searches follow
// each other faster until nothing is open after two complete ones; files that take too long are
// given up.
namespace neurontrace {
namespace {

// Returns the clock in ns.
uint64_t NowNs(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

constexpr uint64_t kArtifactPollNs = 1'000'000'000;  // between two looks while a capture runs
constexpr uint64_t kLastPollNs = 250'000'000;        // and once it has stopped
constexpr uint64_t kAwayNs = 1'000'000'000;          // before an aggregator is tried again
// Times of files are coarser than those of processes, and on shared volumes come from the clock of
// another host.
constexpr uint64_t kStartSlackNs = 1'000'000'000;
// Two complete searches after the end are needed: the first may have begun before the last file
// came.
constexpr uint32_t kPollsAtEnd = 2;

// The first 48 bits of a capture id are its time in milliseconds, by the aggregator's clock.
uint64_t BeginningOf(const CaptureId& capture_id) {
  uint64_t ms = 0;
  for (const char byte : capture_id.bytes().substr(0, 6)) {
    ms = ms << 8 | static_cast<unsigned char>(byte);
  }
  return ms * 1'000'000;
}

}  // namespace

uint64_t ProcessStartNs(uint64_t start_time_ticks) {
  static const auto kTicksPerSecond = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  // Ticks count from the boot, suspended time included, so CLOCK_BOOTTIME is the right one.
  const uint64_t booted_ns = NowNs(CLOCK_REALTIME) - NowNs(CLOCK_BOOTTIME);
  return booted_ns + start_time_ticks / kTicksPerSecond * kNsPerSecond +
         start_time_ticks % kTicksPerSecond * kNsPerSecond / kTicksPerSecond;
}

ArtifactSource::ArtifactSource(Options options, const Clock& clock, TaskRunner& runner,
                               ArtifactSink& sink, AgentSourceMetrics& metrics,
                               const CaptureParticipants& participants, StartNs start_ns)
    : options_(std::move(options)),
      clock_(clock),
      runner_(runner),
      sink_(sink),
      metrics_(metrics),
      participants_(participants),
      start_ns_(std::move(start_ns)) {}

ArtifactSource::~ArtifactSource() = default;

bool ArtifactSource::Selects(const CaptureSpec& spec) const {
  if (options_.directories.empty()) return false;
  if (spec.mode != CaptureMode::kStream && spec.mode != CaptureMode::kContinuous) return false;
  const auto& instances = spec.selection.instance_ids;
  return instances.empty() ||
         std::find(instances.begin(), instances.end(), options_.instance_id) != instances.end();
}

void ArtifactSource::ApplyOrder(const SourceOrder& order) {
  switch (order.kind) {
    case SourceOrder::Kind::kArm:
      return Arm(order.capture_id, order.spec);
    case SourceOrder::Kind::kBegin:
      return Begin(order.capture_id);
    case SourceOrder::Kind::kStart:
    case SourceOrder::Kind::kJoin:
    case SourceOrder::Kind::kFinish:
      Arm(order.capture_id, order.spec);
      return Begin(order.capture_id);
    case SourceOrder::Kind::kContinue:
      return;
  }
}

void ArtifactSource::Arm(const CaptureId& capture_id, const CaptureSpec& spec) {
  if (!Selects(spec)) return;
  const auto [it, is_new] = captures_.try_emplace(capture_id);
  // The earlier of both: this host's clock may be behind the aggregator's, and an agent that
  // restarted learns of the capture late.
  const uint64_t armed_ns = std::min(clock_.RealtimeNs(), BeginningOf(capture_id));
  if (is_new) it->second.new_from_ns = armed_ns - std::min(armed_ns, kStartSlackNs);
}

void ArtifactSource::Begin(const CaptureId& capture_id) {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return;
  it->second.begun = true;
  SchedulePoll(0);
}

void ArtifactSource::Stop(const CaptureId& capture_id, uint64_t) {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end() || it->second.stopped) return;
  Capture& capture = it->second;
  capture.stopped = true;
  capture.stopped_ns = clock_.MonotonicNs();
  // A capture that never began has no files to wait for.
  capture.over = !capture.begun;
  SchedulePoll(0);
}

bool ArtifactSource::IsFinished(const CaptureId& capture_id) const {
  const auto it = captures_.find(capture_id);
  return it == captures_.end() || it->second.over;
}

void ArtifactSource::Forget(const CaptureId& capture_id) { captures_.erase(capture_id); }

void ArtifactSource::Poll() {
  const bool any = std::any_of(captures_.begin(), captures_.end(), [](const auto& item) {
    return item.second.begun && !item.second.over;
  });
  if (!any || std::exchange(looking_, true)) return;
  poll_started_ns_ = clock_.MonotonicNs();
  sink_.Find(options_.directories, options_.instance_id,
             weak_tasks_.Wrap([this](const std::vector<FoundArtifact>& found, bool truncated) {
               OnFound(found, truncated);
             }));
}

void ArtifactSource::OnFound(const std::vector<FoundArtifact>& found, bool truncated) {
  looking_ = false;
  if (truncated) AgentSourceMetrics::Add(metrics_.artifact_looks_cut_short);
  bool any_stopped = false;
  for (auto& [capture_id, capture] : captures_) {
    if (!capture.begun || capture.over) continue;
    // Marked as absent first; Note marks what the search has found.
    for (auto& [key, item] : capture.items) item.is_there = false;
    const std::vector<WorkerIdentity> workers = participants_.WorkersOf(capture_id);
    for (const FoundArtifact& artifact : found) Record(capture, artifact, workers);
    // A file that was removed before it was handed over cannot be handed over any more.
    std::erase_if(capture.items, [](const auto& entry) {
      const Item& item = entry.second;
      return !item.is_there && !item.in_flight && !item.settled_for_good && item.forgone.empty();
    });
    if (!capture.stopped) continue;
    ++capture.polls_at_end;
    EndIfDone(capture);
    any_stopped = any_stopped || !capture.over;
  }
  SubmitNext();
  SchedulePoll(any_stopped ? kLastPollNs : kArtifactPollNs);
}

// The directory is named by the process id that the process itself sees. In a container the agent
// may know it by another one; then only files that changed since the capture began are found.
bool ArtifactSource::IsOfWorker(const FoundArtifact& artifact, const WorkerIdentity& worker) const {
  const ArtifactPlace& place = artifact.place;
  if (place.pid == 0 || place.pid != worker.pid || worker.start_time_ticks == 0) return false;
  if (!place.container.empty() && worker.container_id.empty()) return false;
  return artifact.state.modified_ns + kStartSlackNs >= start_ns_(worker.start_time_ticks);
}

void ArtifactSource::Record(Capture& capture, const FoundArtifact& artifact,
                            const std::vector<WorkerIdentity>& workers) {
  const std::string key = artifact.root + "\n" + artifact.place.path();
  const auto known = capture.items.find(key);
  if (known != capture.items.end()) {
    Item& item = known->second;
    item.is_there = true;
    const bool is_same = item.seen.state == artifact.state;
    if (!is_same) item.since_ns = clock_.MonotonicNs();
    // A search takes time: the rest is measured from the end of the first to the beginning of this
    // one.
    item.rests = is_same && poll_started_ns_ >= item.since_ns + limits::kArtifactRestNs;
    if (!is_same && !OutOfPatience(capture)) {
      item.settled_for_good = false;
      item.forgone.clear();
    }
    item.seen.state = artifact.state;
    return;
  }
  // Only the first sight of a file decides whether it belongs to the capture.
  const bool is_new = artifact.state.modified_ns >= capture.new_from_ns;
  const bool is_its =
      std::any_of(workers.begin(), workers.end(),
                  [&](const WorkerIdentity& worker) { return IsOfWorker(artifact, worker); });
  if (!is_new && !is_its) return;
  if (capture.items.size() >= limits::kArtifactsPerAgentMax) {
    AgentSourceMetrics::Add(metrics_.artifact_looks_cut_short);
    return;
  }
  Item& item = capture.items[key];
  item.seen = artifact;
  item.since_ns = clock_.MonotonicNs();
}

bool ArtifactSource::IsDue(const Capture& capture, const Item& item) const {
  if (item.settled_for_good || clock_.MonotonicNs() < item.again_ns) return false;
  return !item.forgone.empty() || (item.rests && !OutOfPatience(capture));
}

// Submits one file at a time, since the sink sends them one after the other anyway, and first the
// file that has rested longest. Tasks are weak and search by id and key, so that they do nothing if
// the capture was forgotten meanwhile.
void ArtifactSource::SubmitNext() {
  if (submitting_) return;
  const CaptureId* id = nullptr;
  std::pair<const std::string, Item>* next = nullptr;
  for (auto& [capture_id, capture] : captures_) {
    for (auto& entry : capture.items) {
      if (!IsDue(capture, entry.second)) continue;
      if (next != nullptr && next->second.since_ns <= entry.second.since_ns) continue;
      id = &capture_id;
      next = &entry;
    }
  }
  if (next == nullptr) return;
  submitting_ = true;
  Item& item = next->second;
  item.in_flight = true;
  auto done =
      weak_tasks_.Wrap([this, capture_id = *id, key = next->first, artifact = item.seen,
                        is_note = !item.forgone.empty()](const ArtifactSink::Outcome& outcome) {
        submitting_ = false;
        const auto capture = captures_.find(capture_id);
        if (capture != captures_.end()) {
          const auto it = capture->second.items.find(key);
          if (it != capture->second.items.end()) {
            it->second.in_flight = false;
            is_note ? OnReported(it->second, outcome) : OnOutcome(it->second, artifact, outcome);
          }
          EndIfDone(capture->second);
        }
        SubmitNext();
      });
  if (item.forgone.empty()) {
    sink_.Submit(*id, item.seen, std::move(done));
  } else {
    sink_.Forgo(*id, item.seen, item.forgone, std::move(done));
  }
}

void ArtifactSource::OnReported(Item& item, const ArtifactSink::Outcome& outcome) {
  if (outcome.fate == ArtifactSink::Fate::kAway) {
    item.again_ns = clock_.MonotonicNs() + kAwayNs;
  } else if (!item.forgone.empty()) {  // else it is another one by now
    item.settled_for_good = true;
  }
}

bool ArtifactSource::OutOfPatience(const Capture& capture) const {
  return capture.stopped &&
         clock_.MonotonicNs() >= capture.stopped_ns + limits::kArtifactPatienceNs;
}

void ArtifactSource::OnOutcome(Item& item, const FoundArtifact& artifact,
                               const ArtifactSink::Outcome& outcome) {
  using Fate = ArtifactSink::Fate;
  switch (outcome.fate) {
    case Fate::kKept:
      AgentSourceMetrics::Add(metrics_.artifacts_kept);
      // Only if the file is still the one that was handed over.
      item.settled_for_good = item.seen.state == artifact.state;
      break;
    case Fate::kChanged:
      AgentSourceMetrics::Add(metrics_.artifacts_changed);
      item.rests = false;
      item.since_ns = clock_.MonotonicNs();
      if (++item.changes < limits::kArtifactReadsMax) break;
      AgentSourceMetrics::Add(metrics_.artifacts_given_up);
      item.forgone = "it changed during every attempt to read it";
      break;
    case Fate::kAway:
      item.again_ns = clock_.MonotonicNs() + kAwayNs;
      break;
    case Fate::kRefused:
      AgentSourceMetrics::Add(metrics_.artifacts_refused);
      item.forgone = outcome.why.empty() ? "refused" : outcome.why;
      break;
  }
}

void ArtifactSource::EndIfDone(Capture& capture) {
  if (!capture.stopped || capture.over) return;
  bool any_open = false;
  for (auto& [key, item] : capture.items) {
    if (item.settled_for_good) continue;
    any_open = true;
    // A transfer that is under way makes progress and is waited for.
    if (!OutOfPatience(capture) || item.in_flight || !item.forgone.empty()) continue;
    AgentSourceMetrics::Add(metrics_.artifacts_given_up);
    item.forgone = "it was not transferred in time";
    item.again_ns = 0;
  }
  // Once true it stays true: files that appear later are not looked for.
  capture.over = !any_open && capture.polls_at_end >= kPollsAtEnd;
}

void ArtifactSource::SchedulePoll(uint64_t delay_ns) {
  auto look = weak_tasks_.Wrap([this] {
    poll_scheduled_ = false;
    Poll();
  });
  if (delay_ns == 0) {
    runner_.PostTask(std::move(look));
  } else if (!std::exchange(poll_scheduled_, true)) {
    runner_.PostDelayedTask(std::move(look), delay_ns);
  }
}

}  // namespace neurontrace
