// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/upload/delivery_queue.h"
#include "agent/upload/fake_aggregator.h"
#include "agent/upload/uploader.h"
#include "lib/base/fake_file_system.h"
#include "lib/base/fake_task_runner.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// For tests: everything that an agent has between its sources and the wire, on a disk that can
// fail, with sources that keep what is not durable, as a tap's ring does. The agent may be killed
// and started again; sources, disk and aggregator outlive it.
class FakeNode {
 public:
  static constexpr char kRoot[] = "/var/spool";
  static constexpr uint32_t kEventsPerChunk = 10;

  explicit FakeNode(uint64_t seed = 1) : disk(seed), random_(seed) {
    options.directory = kRoot;
    options.agent_id = "agent";
    options.bytes_max = uint64_t{64} << 20;
    options.capture_bytes_max = options.bytes_max;
  }

  // Starts the agent; returns false if the spool could not be read.
  bool Begin() {
    spool = std::make_unique<Spool>(options, disk, runner, runner, clock, random_);
    queue = std::make_unique<DeliveryQueue>(spool.get(), queue_bytes);
    uploader =
        std::make_unique<Uploader>(*queue, aggregator.connector(), runner, clock, random_, 8);
    return queue->Recover().ok();
  }
  // Ends it as kill -9 does.
  void Kill() {
    uploader.reset();
    queue.reset();
    spool.reset();
    runner.RunUntilIdle();  // tasks that find nobody
  }
  // Resumes captures before the aggregator is reached, if the spool can vouch for them.
  bool ResumeOffline() {
    bool any = false;
    for (const DeliveryQueue::Resumed& resumed : queue->HandleRunning()) {
      EXPECT_EQ(resumed.capture_id, capture);
      any = true;
      for (auto& [name, source] : sources) {
        uint64_t next = 0;
        for (const StreamCursor& cursor : resumed.cursors) {
          if (cursor.stream.name != name) continue;
          next = cursor.next_sequence;
          EXPECT_EQ(cursor.source_position, next);
          EXPECT_EQ(cursor.events_before, next * kEventsPerChunk);
        }
        if (!source.running) Resume(name, source, next);
      }
    }
    return any;
  }
  // The aggregator's welcome: cursors are merged, and the sources continue from there.
  void Welcome() {
    std::vector<StreamCursor> cursors = aggregator.Cursors();
    EXPECT_FALSE(queue->WasWrong(capture, cursors));
    uploader->HandleCursors(capture, cursors);
    queue->MergeCursors(capture, cursors);
    for (auto& [name, source] : sources) {
      uint64_t next = 0;
      for (const StreamCursor& cursor : cursors) {
        if (cursor.stream.name == name) next = cursor.next_sequence;
      }
      if (!source.running) Resume(name, source, next);
    }
    queue->RecordRunning(capture, CaptureSpec{.name = "running"});
    uploader->ForgetAllBut({capture});
    uploader->SetEnabled(true);
  }
  void Run(uint64_t ns = 3'000'000'000) { runner.AdvanceNs(ns); }

  // The source of a stream makes its next chunk.
  void Produce(const std::string& name, bool end = false) {
    Source& source = sources[name];
    const uint64_t sequence = source.produced++;
    source.ended = end;
    source.kept_by_source.insert(sequence);
    if (source.running && queue != nullptr) Submit(name, source, sequence);
  }
  void NewProcess() {
    for (auto& [name, source] : sources) source.running = false;
  }

  // Expects that every event of every source is either stored exactly once or reported as lost.
  void ExpectConservation(const std::string& when) {
    for (const auto& [name, source] : sources) {
      const FakeUploadAggregator::Stream& stream = aggregator.streams[name];
      EXPECT_EQ(stream.stored + stream.lost_events(), source.produced * kEventsPerChunk)
          << name << ", " << when;
      EXPECT_EQ(stream.cursor.ended, source.ended) << name << ", " << when;
      EXPECT_EQ(stream.cursor.events_before, source.produced * kEventsPerChunk)
          << name << ", " << when;
    }
  }
  uint64_t LostEvents() const {
    uint64_t sum = 0;
    for (const auto& [name, stream] : aggregator.streams) sum += stream.lost_events();
    return sum;
  }
  uint64_t StoredEvents() const {
    uint64_t sum = 0;
    for (const auto& [name, stream] : aggregator.streams) sum += stream.stored;
    return sum;
  }

  struct Source {
    uint64_t produced = 0;              // chunks
    std::set<uint64_t> kept_by_source;  // not durable anywhere else, by sequence
    bool ended = false;
    bool running = true;                      // with the process at hand
    uint64_t kept = 0, stored = 0, lost = 0;  // receipts
  };

  FakeClock clock;
  FakeTaskRunner runner{clock};
  FakeFileSystem disk;
  FakeUploadAggregator aggregator{runner};
  Spool::Options options;
  size_t queue_bytes = size_t{1} << 20;
  size_t columns_bytes = 3'000;
  std::map<std::string, Source> sources;
  std::unique_ptr<Spool> spool;
  std::unique_ptr<DeliveryQueue> queue;
  std::unique_ptr<Uploader> uploader;

 private:
  void Resume(const std::string& name, Source& source, uint64_t next) {
    source.running = true;
    // What was not confirmed as kept must be there to be read again.
    for (uint64_t sequence = next; sequence < source.produced; ++sequence) {
      EXPECT_TRUE(source.kept_by_source.contains(sequence))
          << name << " " << sequence << " was reported as kept but is stored nowhere";
      Submit(name, source, sequence);
    }
  }
  void Submit(const std::string& name, Source& source, uint64_t sequence) {
    Chunk chunk;
    ChunkHeader& header = chunk.header;
    header.capture_id = capture;
    header.stream.agent_id = "agent";
    header.stream.worker.instance_id = "i-1";
    header.stream.kind = StreamKind::kFramework;
    header.stream.nc_idx = limits::kNoNcIdx;
    header.stream.name = name;
    header.sequence = sequence;
    header.event_count = kEventsPerChunk;
    header.first_timestamp_ns = header.last_timestamp_ns = 1;
    header.columns_bytes = 1;
    header.source_position = sequence + 1;
    header.events_before = sequence * kEventsPerChunk;
    header.end_of_stream = source.ended && sequence + 1 == source.produced;
    // The same bytes whenever it is made.
    SeededRandom bytes(sequence * 1'000 + name.size() + static_cast<uint8_t>(name[0]));
    for (size_t i = 0; i < columns_bytes / 8; ++i) {
      const uint64_t word = bytes.Next64();
      chunk.columns.append(reinterpret_cast<const char*>(&word), sizeof word);
    }
    queue->Submit(std::move(chunk), [&source, sequence](const ChunkSink::Receipt& receipt) {
      switch (receipt.fate) {
        case ChunkSink::Fate::kKept:
          ++source.kept;
          break;
        case ChunkSink::Fate::kStored:
          ++source.stored;
          break;
        case ChunkSink::Fate::kLost:
          ++source.lost;
          break;
      }
      source.kept_by_source.erase(sequence);
    });
  }

  SeededRandom random_;

 public:
  CaptureId capture = CaptureId::Make(clock, random_);
};

}  // namespace neurontrace
