// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool.h"

#include <spdlog/spdlog.h>

#include <cassert>
#include <utility>

#include "lib/base/status.h"

// How it works: calls change only the books and what waits. Kick collects all that is due into one
// SpoolJob and posts it to the disk's sequence; OnDone takes the result and kicks again. There is
// at most one job at a time, so what comes meanwhile forms the next batch with a single sync.
namespace neurontrace {
namespace {

constexpr uint64_t kTidyNs = 200'000'000;  // between cursors that nothing waits for
// A disk that failed is tried again after these delays, which double.
constexpr uint64_t kRetryFirstNs = 500'000'000;
constexpr uint64_t kRetryLongestNs = 30'000'000'000;

// Segments are the unit of dropping, so a quota must consist of several. Returns the size at which
// a segment is closed, in bytes.
uint64_t SegmentBytes(const Spool::Options& options) {
  const uint64_t quota = std::min(options.bytes_max, options.capture_bytes_max);
  return std::clamp(quota / limits::kSpoolSegmentsPerQuota, limits::kSpoolSegmentBytesMin,
                    limits::kSpoolSegmentBytesMax);
}

}  // namespace

Spool::Spool(const Options& options, FileSystem& files, TaskRunner& io, TaskRunner& runner,
             const Clock& clock, Random& random)
    : options_(options),
      segment_bytes_max_(SegmentBytes(options)),
      io_(io),
      runner_(runner),
      files_(files),
      clock_(clock),
      random_(random),
      backoff_(random, kRetryFirstNs, kRetryLongestNs),
      disk_(std::make_shared<SpoolDisk>(files, options.directory)) {}

Spool::~Spool() = default;

std::string Spool::DirectoryOf(const CaptureId& capture_id) const {
  return options_.directory + "/" + capture_id.ToString();
}

absl::Status Spool::Recover(const SpoolRecovery::Visitor& visitor) {
  assert(runner_.RunsTasksOnCurrentThread());
  // Until it is read there is none.
  health_ = Read(visitor);
  if (health_.ok()) KickLater(0);
  return health_;
}

bool Spool::CanHoldChunks() {
  return !absl::IsNotFound(files_.List(options_.directory, 1).status());
}

absl::Status Spool::Read(const SpoolRecovery::Visitor& visitor) {
  segments_.clear();
  captures_.clear();
  bytes_ = chunks_ = 0;
  RETURN_IF_ERROR(files_.MakeDirectory(options_.directory));
  // A new directory's own name has to survive a crash too, and so do those of its parents.
  for (std::string path = options_.directory; path.size() > 1 && path.find('/') != path.npos;) {
    const size_t slash = path.rfind('/');
    path.resize(std::max<size_t>(slash, 1));
    (void)files_.SyncDirectory(path);  // not ours to write, maybe
  }
  // A second agent on the same directory would append to the same segments.
  if (lock_ == nullptr) {
    ASSIGN_OR_RETURN(lock_, files_.TakeLock(options_.directory + "/lock"));
  }
  // A node must not wait for ever for a file that its disk no longer returns.
  const bool gives_up = ++reading_tries_ >= limits::kSpoolReadTriesMax;
  SpoolRecovery recovery(files_, options_.directory, options_.agent_id, options_.boot_id, gives_up);
  // What the visitor does with a chunk may release it at once: the books come first.
  SpoolRecovery::Summary summary;
  const auto book = [&](const ChunkHeader& header, const SpoolPlace& place) {
    Segment& segment = segments_[place.segment];
    segment.capture_id = header.capture_id;
    ++segment.chunks;
    ++chunks_;
    visitor.on_chunk(header, place);
  };
  RETURN_IF_ERROR(recovery.Run({visitor.on_capture, book}, summary));
  // The visitor has counted chunks; sizes and empty segments are only known from the summary.
  for (const auto& [number, found] : summary.segments) {
    Segment& segment = segments_[number];
    segment.capture_id = found.capture_id;
    segment.bytes = found.bytes;
    Capture& capture = captures_[found.capture_id];
    capture.segments.insert(number);
    capture.bytes += found.bytes;
    bytes_ += found.bytes;
  }
  // Numbers are never reused, not even of segments that were left alone.
  next_segment_ = summary.last_segment + 1;
  aside_bytes_ = summary.quarantine_bytes;
  aside_files_ = summary.quarantine_files;
  recovered_ = std::move(summary);
  running_ = recovered_.running;
  aggregator_id_ = recovered_.aggregator_id;
  recorded_.clear();
  // Removes what no longer holds, and writes the rest again, before anything is sent: afterwards
  // the cursors would be wrong (docs/decisions/0012).
  if (recovered_.running_stale) RETURN_IF_ERROR(disk_->DropRunning());
  for (const auto& [capture_id, spec] : running_) {
    if (!recovered_.running_stale) recorded_.insert(capture_id);
  }
  // From here on jobs may be made: the books describe the disk.
  readable_ = true;
  std::vector<uint64_t> idle;
  for (const auto& [number, segment] : segments_) {
    if (segment.chunks == 0) idle.push_back(number);
  }
  // After the loop, as Retire changes segments_.
  for (const uint64_t number : idle) Retire(number, false);
  // Before the first chunk is written, which would have to be dropped again.
  if (const auto capacity = files_.CapacityOf(options_.directory); capacity.ok()) {
    HandleCapacity(*capacity);
  }
  return absl::OkStatus();
}

void Spool::Append(const CaptureId& capture_id, const SpoolTicket& ticket,
                   const std::shared_ptr<const v1::ChunkEnvelope>& chunk) {
  assert(chunk != nullptr && runner_.RunsTasksOnCurrentThread());
  if (!readable_) return;
  pending_[capture_id].push_back({capture_id, ticket, chunk, false});
  KickLater(0);
}

void Spool::AppendFirst(const CaptureId& capture_id, const SpoolTicket& ticket,
                        const std::shared_ptr<const v1::ChunkEnvelope>& chunk) {
  assert(chunk != nullptr && runner_.RunsTasksOnCurrentThread());
  if (!readable_) return;
  pending_[capture_id].push_front({capture_id, ticket, chunk, true});
  KickLater(0);
}

void Spool::Release(const SpoolPlace& place) {
  assert(runner_.RunsTasksOnCurrentThread());
  const auto it = segments_.find(place.segment);
  if (it == segments_.end()) return;  // gone with its capture, or to make room
  Segment& segment = it->second;
  assert(segment.chunks > 0 && chunks_ > 0);
  --segment.chunks;
  --chunks_;
  const auto capture = captures_.find(segment.capture_id);
  if (capture == captures_.end()) return;  // while the spool is read
  capture->second.cursor_dirty = true;
  if (segment.chunks == 0 && capture->second.active != place.segment) Retire(place.segment, false);
  KickLater(full() ? 0 : kTidyNs);
}

void Spool::RecordCursor(const CaptureId& capture_id) {
  const auto it = captures_.find(capture_id);
  if (it != captures_.end()) it->second.cursor_dirty = true;
}

void Spool::Forget(const CaptureId& capture_id) {
  assert(runner_.RunsTasksOnCurrentThread());
  pending_.erase(capture_id);
  running_.erase(capture_id);
  const auto it = captures_.find(capture_id);
  if (it != captures_.end()) {
    for (const uint64_t number : it->second.segments) {
      const auto segment = segments_.find(number);
      assert(segment != segments_.end() && chunks_ >= segment->second.chunks);
      chunks_ -= segment->second.chunks;
      segments_.erase(segment);
    }
    assert(bytes_ >= it->second.bytes);
    bytes_ -= it->second.bytes;
    captures_.erase(it);
  }
  // Files of a later version or another agent stay, and so does the directory.
  const auto keep = recovered_.left_alone.find(capture_id);
  directories_.push_back({DirectoryOf(capture_id), keep == recovered_.left_alone.end()
                                                       ? std::set<std::string>()
                                                       : keep->second});
  KickLater(0);
}

void Spool::Load(const CaptureId& capture_id, std::vector<SpoolPlace> places, Loaded done) {
  assert(!places.empty() && runner_.RunsTasksOnCurrentThread());
  // The disk object is shared with the task, which may run after this was destroyed.
  io_.PostTask([disk = disk_, directory = DirectoryOf(capture_id), places = std::move(places),
                done = weak_tasks_.Wrap(std::move(done)), &runner = runner_] {
    runner.PostTask(
        [loaded = disk->Load(directory, places), done]() mutable { done(std::move(loaded)); });
  });
}

void Spool::SetAside(const CaptureId& capture_id, uint64_t sequence,
                     std::shared_ptr<const v1::ChunkEnvelope> chunk) {
  const uint64_t bytes = chunk->ByteSizeLong();
  if (aside_bytes_ + bytes > limits::kSpoolQuarantineBytesMax ||
      aside_files_ >= limits::kSpoolQuarantineFilesMax) {
    ++counters_.chunks_not_set_aside;
    return;
  }
  ++counters_.chunks_set_aside;
  aside_bytes_ += bytes;
  ++aside_files_;
  quarantined_.push_back({fmt::format("{}-{}-{:08x}.chunk", capture_id.ToString(), sequence,
                                      static_cast<uint32_t>(random_.Next64())),
                          std::move(chunk)});
  KickLater(0);
}

void Spool::Finish(std::function<void()> done) {
  assert(done != nullptr && runner_.RunsTasksOnCurrentThread());
  for (auto& [capture_id, capture] : captures_) capture.cursor_dirty = true;
  finishing_.push_back(std::move(done));
  next_tidy_ns_ = next_try_ns_ = 0;
  Kick();
}

// --- Jobs ----------------------------------------------------------------------------------------

void Spool::KickLater(uint64_t delay_ns) {
  bool Spool::*const posted = delay_ns == 0 ? &Spool::kick_posted_ : &Spool::later_kick_posted_;
  if (std::exchange(this->*posted, true)) return;
  runner_.PostDelayedTask(weak_tasks_.Wrap([this, posted] {
    this->*posted = false;
    Kick();
  }),
                          delay_ns);
}

void Spool::Kick() {
  assert(runner_.RunsTasksOnCurrentThread());
  // One job at a time: what comes meanwhile is collected for the next, which is the batching.
  if (job_running_ || listener_ == nullptr) return;
  const bool can_try = readable_ && clock_.MonotonicNs() >= next_try_ns_;
  SpoolJob job;
  if (can_try) job = MakeJob();
  if (can_try && job.empty() && (full() || bytes_wanted_ > 0) && IsShortOfDisk()) {
    job.look = clock_.MonotonicNs() >= next_poll_ns_;
    if (job.look) next_poll_ns_ = clock_.MonotonicNs() + kTidyNs;
    KickLater(kTidyNs);
  }
  if (job.empty()) {
    if (WaitsToBeRecorded()) KickLater(kTidyNs);
    for (const auto& done : std::exchange(finishing_, {})) done();
    return;
  }
  // The task holds the disk object and the job, so it may run after this was destroyed.
  job_running_ = true;
  io_.PostTask([disk = disk_, job = std::make_shared<const SpoolJob>(std::move(job)),
                done = weak_tasks_.Wrap([this](const SpoolJobResult& result) { OnDone(result); }),
                &runner = runner_] {
    runner.PostTask([result = disk->Run(*job), done]() mutable { done(result); });
  });
}

SpoolJob Spool::MakeJob() {
  assert(!job_running_ && in_job_.empty() && touched_.empty());
  SpoolJob job;
  PutRunningLeft(job);
  job.directories = std::exchange(directories_, {});
  job.aside = std::exchange(quarantined_, {});
  TakePending(job);
  const bool makes_room = IsShortOfDisk() && !removals_.empty();
  // What is urgent overrides the pause: a full spool needs removals, and Finish needs cursors.
  const bool tidy =
      clock_.MonotonicNs() >= next_tidy_ns_ || full() || makes_room || !finishing_.empty();
  // A dropped segment must not go before the record of its loss is durable.
  if (tidy && !HasPendingReplacement()) TidyInto(job);
  if (std::exchange(aggregator_dirty_, false)) {
    job.aggregator = EncodeSpoolAggregator(aggregator_id_);
  }
  // Otherwise a disk without anything to write would stay unhealthy for ever.
  job.probe = !health_.ok() && job.appends.empty();
  return job;
}

void Spool::TidyInto(SpoolJob& job) {
  // Cursors are written a few times a second at most, since each costs a sync.
  next_tidy_ns_ = clock_.MonotonicNs() + kTidyNs;
  job.removals = std::exchange(removals_, {});
  for (auto& [capture_id, capture] : captures_) {
    if (std::exchange(capture.cursor_dirty, false)) PutCursor(capture_id, false, job);
  }
  PutRunning(job);
}

void Spool::PutCursor(const CaptureId& capture_id, bool create, SpoolJob& job) {
  assert(listener_ != nullptr);
  SpoolCursor cursor;
  cursor.streams = listener_->StreamsOf(capture_id);
  const auto capture = captures_.find(capture_id);
  // Behind what is being written now nothing is known yet.
  if (capture != captures_.end() && capture->second.active != 0 && !capture->second.in_job) {
    assert(segments_.contains(capture->second.active));
    cursor.synced_segment = capture->second.active;
    cursor.synced_bytes = segments_[capture->second.active].bytes;
  }
  job.cursors.push_back({DirectoryOf(capture_id), EncodeSpoolCursor(cursor), create});
}

void Spool::OnDone(const SpoolJobResult& result) {
  assert(job_running_ && runner_.RunsTasksOnCurrentThread());
  if (listener_ == nullptr) return;  // its user is gone, and so is the agent
  const bool wrote = !in_job_.empty();
  // What failed is part of the next job again.
  for (const SpoolJob::Removal& removal : result.not_removed) removals_.push_back(removal);
  for (const SpoolJob::Directory& directory : result.not_emptied) directories_.push_back(directory);
  stuck_bytes_ = 0;
  for (const SpoolJob::Removal& removal : removals_) {
    if (removal.failed_before) stuck_bytes_ += removal.bytes;
  }
  HandleAppended(result.appended.ok());
  if (result.capacity) HandleCapacity(*result.capacity);
  HandleRunning(result);
  job_running_ = false;
  if (wrote && result.appended.ok()) ++counters_.batches;
  absl::Status status = result.appended.ok() ? result.tidied : result.appended;
  if (bytes_max() >= bytes_wanted_) bytes_wanted_ = 0;
  if (status.ok() && bytes_wanted_ > 0) {
    status = absl::ResourceExhaustedError(
        fmt::format("{}% of the disk must stay free, which leaves {} bytes for the spool: a chunk "
                    "needs {}",
                    options_.free_percent_min, bytes_max(), bytes_wanted_));
  }
  if (status.ok()) {
    backoff_.Reset();
  } else {
    ++counters_.failures;
    for (auto& [capture_id, pending] : pending_) {
      std::erase_if(pending, [](const Pending& one) { return one.chunk.expired(); });
    }
    const uint64_t delay_ns = backoff_.NextDelayNs();
    next_try_ns_ = clock_.MonotonicNs() + delay_ns;
    // It is not known which cursors were written.
    for (auto& [capture_id, capture] : captures_) capture.cursor_dirty = true;
    runner_.PostDelayedTask(weak_tasks_.Wrap([this] { Kick(); }), delay_ns);
  }
  // Before the next job, so that the listener sends from memory while the disk fails.
  SetHealth(status);
  Kick();
  const bool work_later = !removals_.empty() || WaitsToBeRecorded() ||
                          std::any_of(captures_.begin(), captures_.end(),
                                      [](const auto& item) { return item.second.cursor_dirty; });
  if (work_later) KickLater(kTidyNs);
}

void Spool::HandleAppended(bool well) {
  for (const uint64_t number : std::exchange(touched_, {})) {
    const auto segment = segments_.find(number);
    if (segment == segments_.end()) continue;
    Capture& capture = captures_[segment->second.capture_id];
    assert(capture.in_job);
    capture.in_job = false;
    // The end of the file is unknown after a failed write.
    if (!well && capture.active == number) capture.active = 0;  // nothing more goes there
  }
  std::vector<Written> written = std::exchange(in_job_, {});
  if (well) {
    for (const Written& one : written) {
      ++counters_.chunks_kept;
      counters_.bytes_kept += one.place.record_bytes();
      listener_->OnKept(one.pending.ticket, one.place);
    }
    return;
  }
  // Back to the front of the queue in their order, to be written to another segment.
  for (auto one = written.rbegin(); one != written.rend(); ++one) {
    const bool forgotten = !segments_.contains(one->place.segment);
    Release(one->place);
    if (!forgotten) pending_[one->pending.capture_id].push_front(one->pending);
  }
}

void Spool::SetHealth(absl::Status health) {
  if (health.code() == health_.code() && health.message() == health_.message()) return;
  const bool changed = health.ok() != health_.ok();
  health_ = std::move(health);
  if (changed && health_.ok()) spdlog::info("spool: the disk works again");
  if (changed && !health_.ok()) {
    spdlog::error("spool: the disk fails, and chunks stay in memory: {}", health_.ToString());
  }
  listener_->OnHealth(health_);
}

// --- The next write ------------------------------------------------------------------------------

// Captures take turns, so that none waits behind the chunks of another.
void Spool::TakePending(SpoolJob& job) {
  blocked_ = false;
  waiting_.clear();
  batch_bytes_ = 0;
  std::set<CaptureId> no_more;
  for (bool some = true; some;) {
    some = false;
    for (auto& [capture_id, pending] : pending_) {
      if (pending.empty() || no_more.contains(capture_id)) continue;
      const Taken taken = TakeOne(capture_id, pending, job);
      if (taken == Taken::kNoMore) return;
      if (taken == Taken::kNoMoreOfCapture) no_more.insert(capture_id);
      some = true;
    }
  }
  std::erase_if(pending_, [](const auto& item) { return item.second.empty(); });
}

Spool::Taken Spool::TakeOne(const CaptureId& capture_id, std::deque<Pending>& pending,
                            SpoolJob& job) {
  assert(!pending.empty());
  const Pending next = pending.front();
  const auto chunk = next.chunk.lock();
  if (chunk == nullptr) {  // nobody waits for it any more
    pending.pop_front();
    return Taken::kOne;
  }
  // The size of the record in the segment.
  const uint64_t bytes = kRecordHeadBytes + chunk->header().size() + chunk->columns().size();
  // A chunk larger than a batch forms one alone.
  if (batch_bytes_ > 0 && batch_bytes_ + bytes > limits::kSpoolBatchBytesMax) return Taken::kNoMore;
  if (!next.first) {
    const uint64_t dropped = counters_.segments_dropped;
    const Room room = MakeRoom(capture_id, bytes);
    // The records that replace the dropped chunks go first.
    if (dropped != counters_.segments_dropped && HasPendingReplacement()) return Taken::kOne;
    if (room == Room::kNone) {
      // Waiting would never end: nothing is held that could be delivered or dropped.
      if (chunks_ == 0 && IsShortOfDisk()) bytes_wanted_ = bytes;
      blocked_ = bytes_wanted_ == 0;
      return Taken::kNoMore;
    }
    if (room == Room::kNoneForCapture) {
      waiting_.insert(capture_id);
      return Taken::kNoMoreOfCapture;
    }
  }
  if (!Put(next, chunk, job)) return Taken::kNoMoreOfCapture;
  pending.pop_front();
  batch_bytes_ += bytes;
  return Taken::kOne;
}

bool Spool::HasPendingReplacement() const {
  return std::any_of(pending_.begin(), pending_.end(), [](const auto& item) {
    return !item.second.empty() && item.second.front().first;
  });
}

// Returns false if the chunk has to wait for the next job: a capture has at most one segment in
// each, so that a segment is started only when the one before it is synced. Recovery relies on
// this.
bool Spool::Put(const Pending& pending, const std::shared_ptr<const v1::ChunkEnvelope>& chunk,
                SpoolJob& job) {
  Capture& capture = captures_[pending.capture_id];
  const uint64_t bytes = kRecordHeadBytes + chunk->header().size() + chunk->columns().size();
  const bool fits =
      capture.active != 0 && segments_[capture.active].bytes + bytes <= segment_bytes_max_;
  if (!fits && capture.in_job) return false;
  SpoolJob::Append* append = nullptr;
  if (!capture.in_job) {
    if (!fits && capture.active != 0) {
      const uint64_t closed = std::exchange(capture.active, 0);
      assert(segments_.contains(closed));
      if (segments_[closed].chunks == 0) Retire(closed, false);
    }
    append = &job.appends.emplace_back();
    append->directory = DirectoryOf(pending.capture_id);
    append->segment.capture_id = pending.capture_id;
    append->segment.agent_id = options_.agent_id;
    if (capture.active == 0) {
      capture.active = next_segment_++;
      capture.segments.insert(capture.active);
      append->create = true;
      append->segment.segment = capture.active;
      append->segment.salt = random_.Next64();
      const uint64_t header_bytes = EncodeSegmentHeader(append->segment).size();
      segments_[capture.active] = {pending.capture_id, header_bytes, append->segment.salt, 0};
      capture.bytes += header_bytes;
      bytes_ += header_bytes;
    }
    append->segment.segment = capture.active;
    append->segment.salt = segments_[capture.active].salt;
    append->offset = static_cast<uint32_t>(segments_[capture.active].bytes);
    capture.in_job = true;
    touched_.push_back(capture.active);
  } else {
    const auto at = std::find_if(job.appends.begin(), job.appends.end(), [&](const auto& known) {
      return known.segment.segment == capture.active;
    });
    assert(at != job.appends.end());
    append = &*at;
  }
  Segment& segment = segments_[capture.active];
  assert(segment.capture_id == pending.capture_id && segment.bytes <= UINT32_MAX);
  const SpoolPlace place{capture.active, static_cast<uint32_t>(segment.bytes),
                         static_cast<uint32_t>(chunk->header().size()),
                         static_cast<uint32_t>(chunk->columns().size())};
  append->chunks.push_back(chunk);
  in_job_.push_back({pending, place});
  segment.bytes += bytes;
  ++segment.chunks;
  ++chunks_;
  capture.bytes += bytes;
  bytes_ += bytes;
  return true;
}

// --- Room: the budget, and the shares of captures ------------------------------------------------

Spool::Room Spool::MakeRoom(const CaptureId& capture_id, uint64_t bytes) {
  for (;;) {
    const auto it = captures_.find(capture_id);
    // Each round removes a segment or returns, so the loop ends.
    const bool over_share =
        it != captures_.end() && it->second.bytes + bytes > options_.capture_bytes_max;
    const bool over_all = bytes_ + stuck_bytes_ + bytes > bytes_max() ||
                          chunks_ >= limits::kSpoolChunksMax ||
                          (it == captures_.end() && captures_.size() >= limits::kSpoolCapturesMax);
    if (!over_share && !over_all) return Room::kEnough;
    const Room none = over_share ? Room::kNoneForCapture : Room::kNone;
    if (RemoveIdle(capture_id, !over_share)) continue;
    if (options_.when_full == WhenFull::kRefuseNewest) return none;
    Capture* const victim = Victim(capture_id, over_share);
    if (victim == nullptr || victim->segments.empty()) return none;
    // Numbers ascend, so the lowest is the oldest.
    const uint64_t oldest = *victim->segments.begin();
    if (victim->in_job && victim->active == oldest) return none;  // being written
    DropSegment(oldest);
  }
}

// Removes segments that are still written to although all their chunks are released.
bool Spool::RemoveIdle(const CaptureId& capture_id, bool any_capture) {
  bool some = false;
  for (auto& [id, capture] : captures_) {
    if (!any_capture && id != capture_id) continue;
    if (capture.active == 0 || capture.in_job || segments_[capture.active].chunks > 0) continue;
    Retire(std::exchange(capture.active, 0), false);
    some = true;
  }
  return some;
}

// Returns the capture that has to lose chunks: the wanting one if it exceeds its share, otherwise
// the largest, which exceeds its own share furthest.
Spool::Capture* Spool::Victim(const CaptureId& wanting, bool over_share) {
  if (over_share) return &captures_[wanting];
  Capture* largest = nullptr;
  for (auto& [id, capture] : captures_) {
    if (largest == nullptr || capture.bytes > largest->bytes) largest = &capture;
  }
  return largest;
}

void Spool::DropSegment(uint64_t segment) {
  assert(segments_.contains(segment));
  const CaptureId capture_id = segments_[segment].capture_id;
  ++counters_.segments_dropped;
  Retire(segment, true);
  listener_->OnSegmentDropped(capture_id, segment);
}

void Spool::Retire(uint64_t number, bool given_up) {
  const auto it = segments_.find(number);
  assert(it != segments_.end());
  const Segment segment = it->second;
  segments_.erase(it);
  assert(chunks_ >= segment.chunks && bytes_ >= segment.bytes);
  chunks_ -= segment.chunks;
  bytes_ -= segment.bytes;
  Capture& capture = captures_[segment.capture_id];
  capture.segments.erase(number);
  assert(capture.bytes >= segment.bytes);
  capture.bytes -= segment.bytes;
  if (capture.active == number) capture.active = 0;
  capture.cursor_dirty = true;
  removals_.push_back({DirectoryOf(segment.capture_id), number, segment.bytes, given_up, false});
}

// Segments that are to be removed still occupy room, so what they free is seen after the next job.
void Spool::HandleCapacity(const FileSystem::Capacity& capacity) {
  // No part of the disk is reserved, so only bytes_max limits the spool.
  if (options_.free_percent_min == 0) return;
  const uint64_t kept_free = capacity.total_bytes / 100 * options_.free_percent_min;
  uint64_t removed_later = 0;
  for (const SpoolJob::Removal& removal : removals_) removed_later += removal.bytes;
  const uint64_t held = bytes_ + removed_later;
  const bool was_short = IsShortOfDisk();
  disk_bytes_max_ = capacity.free_bytes >= kept_free
                        ? held + (capacity.free_bytes - kept_free)
                        : held - std::min(held, kept_free - capacity.free_bytes);
  // Logged on changes only.
  if (IsShortOfDisk() == was_short) return;
  if (IsShortOfDisk()) {
    spdlog::warn(
        "spool: its disk has {} of {} bytes free and must keep {} free; the spool is limited to {} "
        "bytes instead of {}",
        capacity.free_bytes, capacity.total_bytes, kept_free, disk_bytes_max_, options_.bytes_max);
  } else {
    spdlog::info("spool: its disk has room for {} bytes again", options_.bytes_max);
  }
}

// --- Running captures, and the aggregator that the spool is for (docs/decisions/0012) ------------

void Spool::RecordRunning(const CaptureId& capture_id, const CaptureSpec& spec) {
  if (!readable_ || options_.boot_id.empty()) return;
  if (running_.size() >= limits::kSpoolRunningMax && !running_.contains(capture_id)) return;
  running_.insert_or_assign(capture_id, spec);
  next_tidy_ns_ = 0;
  KickLater(0);
}

bool Spool::WaitsToBeRecorded() const {
  return std::any_of(running_.begin(), running_.end(),
                     [this](const auto& item) { return !recorded_.contains(item.first); });
}

void Spool::RecordUnsure(const CaptureId& capture_id) {
  if (running_.erase(capture_id) != 0) KickLater(0);
}

void Spool::RecordAggregator(const std::string& aggregator_id) {
  if (!readable_ || aggregator_id == aggregator_id_) return;
  aggregator_id_ = aggregator_id;
  aggregator_dirty_ = true;
  KickLater(0);
}

// Captures that are over leave the file before anything of them is removed: otherwise the next
// agent would resume them from cursors that are gone.
void Spool::PutRunningLeft(SpoolJob& job) {
  recorded_in_job_ = recorded_;
  if (std::erase_if(recorded_in_job_, [this](const CaptureId& capture_id) {
        return !running_.contains(capture_id);
      }) == 0) {
    return;
  }
  SpoolRunning left{options_.boot_id, {}};
  if (recorded_in_job_.empty()) {
    job.running_left.emplace();
    return;
  }
  for (const CaptureId& capture_id : recorded_in_job_) {
    left.captures[capture_id] = running_.at(capture_id);
  }
  job.running_left = EncodeSpoolRunning(left);
}

// Captures enter the file when the cursors on the disk are exact, which is with this very job.
void Spool::PutRunning(SpoolJob& job) {
  // There may be nothing to add, or nothing that the spool can vouch for.
  const bool all = std::all_of(running_.begin(), running_.end(), [this](const auto& item) {
    return recorded_in_job_.contains(item.first);
  });
  if (all || !health_.ok() || !listener_->CursorsAreExact()) return;
  const std::string bytes = EncodeSpoolRunning({options_.boot_id, running_});
  if (bytes.size() > limits::kSpoolRunningBytesMax) return;
  for (const auto& [capture_id, spec] : running_) {
    recorded_in_job_.insert(capture_id);
    const std::string directory = DirectoryOf(capture_id);
    const auto known =
        std::find_if(job.cursors.begin(), job.cursors.end(),
                     [&](const SpoolJob::Cursor& cursor) { return cursor.directory == directory; });
    if (known == job.cursors.end()) {
      PutCursor(capture_id, true, job);
    } else {
      known->create = true;
    }
  }
  job.running = bytes;
}

void Spool::HandleRunning(const SpoolJobResult& result) {
  using Running = SpoolJobResult::Running;
  assert(recorded_in_job_.size() <= limits::kSpoolRunningMax);
  const bool was_stuck = std::exchange(running_stuck_, result.running == Running::kStuck);
  if (running_stuck_ && !was_stuck) {
    spdlog::error("spool: cannot remove {}, which is out of date",
                  RunningFileOf(options_.directory));
  }
  if (result.running == Running::kLeft || result.running == Running::kWritten) {
    recorded_ = std::move(recorded_in_job_);
  } else if (result.running == Running::kGone) {
    recorded_.clear();
  }
}

}  // namespace neurontrace
