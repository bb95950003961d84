// SPDX-License-Identifier: Apache-2.0
// Goal: the simulation is repeatable, and it can fail: what is broken on purpose, through a wrapper
// at a seam, is caught by the invariant that is there for it.
#include "tests/sim/sim_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace neurontrace {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs seeds, all broken in the same way, until an invariant is seen not to hold.
std::vector<std::string> FirstViolations(const std::function<void(SimProfile&)>& break_it) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SimProfile profile = MakeProfile(seed);
    break_it(profile);
    SimResult result = SimFleet(profile, {}, false).Run();
    if (!result.violations.empty()) return result.violations;
  }
  return {};
}

class SimFleetTest : public ::testing::Test {
 protected:
  SimFleetTest() { spdlog::set_level(spdlog::level::off); }
};

TEST_F(SimFleetTest, RepeatsItselfFromASeed) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const SimResult first = SimFleet(MakeProfile(seed), {}, false).Run();
    const SimResult second = SimFleet(MakeProfile(seed), {}, false).Run();
    EXPECT_THAT(first.violations, IsEmpty());
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.rows_stored, second.rows_stored) << "seed " << seed;
  }
  EXPECT_NE(SimFleet(MakeProfile(1), {}, false).Run().trace_hash,
            SimFleet(MakeProfile(2), {}, false).Run().trace_hash);
}

// Answers a chunk before it is written.
class HastyWriter final : public ChunkReceiver {
 public:
  explicit HastyWriter(ChunkReceiver& writer) : writer_(writer) {}
  void Submit(ReceivedChunk chunk, Done done) override {
    done(PutResult{.outcome = PutOutcome::kStored, .next_sequence = chunk.header.sequence + 1});
    writer_.Submit(std::move(chunk), [](const auto&) {});
  }

 private:
  ChunkReceiver& writer_;
};

TEST_F(SimFleetTest, CatchesAnAggregatorThatAcknowledgesBeforeTheWrite) {
  const auto violations = FirstViolations([](SimProfile& profile) {
    profile.aggregator_crash = 5'000;
    profile.aggregator.wrap_writer = [](ChunkReceiver& writer, IngestBudget&) {
      return std::make_unique<HastyWriter>(writer);
    };
  });
  EXPECT_THAT(violations, Contains(HasSubstr("is acknowledged up to")));
}

// Reports every seventh chunk as stored, and drops it.
class ForgetfulSink final : public ChunkSink {
 public:
  explicit ForgetfulSink(ChunkSink& sink) : sink_(sink) {}
  bool HasRoom(const CaptureId& capture_id) const override { return sink_.HasRoom(capture_id); }
  void Submit(Chunk chunk, Done done) override {
    const bool forget = ++count_ % 7 == 0 && chunk.header.event_count > 0;
    if (forget) {
      chunk.header.event_count = 0;
      chunk.header.first_timestamp_ns = chunk.header.last_timestamp_ns = 0;
      chunk.header.columns_bytes = 0;
      chunk.columns.clear();
    }
    sink_.Submit(std::move(chunk), std::move(done));
  }

 private:
  ChunkSink& sink_;
  uint64_t count_ = 0;
};

TEST_F(SimFleetTest, CatchesAQueueThatForgets) {
  const auto violations = FirstViolations([](SimProfile& profile) {
    profile.agent.wrap_sink = [](ChunkSink& sink) { return std::make_unique<ForgetfulSink>(sink); };
  });
  EXPECT_THAT(violations, Contains(AnyOf(HasSubstr("losses behind the agent are not exact"),
                                         HasSubstr("nobody reports"))));
}

// Tells every loss twice.
class DoubleCountingSink final : public ChunkSink {
 public:
  explicit DoubleCountingSink(ChunkSink& sink) : sink_(sink) {}
  bool HasRoom(const CaptureId& capture_id) const override { return sink_.HasRoom(capture_id); }
  void Submit(Chunk chunk, Done done) override {
    for (Loss& loss : chunk.header.losses) loss.events *= 2;
    sink_.Submit(std::move(chunk), std::move(done));
  }

 private:
  ChunkSink& sink_;
};

TEST_F(SimFleetTest, CatchesAWriterThatCountsALossTwice) {
  const auto violations = FirstViolations([](SimProfile& profile) {
    profile.burst = 10'000;
    profile.worker.runtime_ring_rows = 16;
    profile.agent.wrap_sink = [](ChunkSink& sink) {
      return std::make_unique<DoubleCountingSink>(sink);
    };
  });
  EXPECT_THAT(violations, Contains(AnyOf(HasSubstr("losses are counted too high"),
                                         HasSubstr("losses before the agent are not exact"))));
}

// Stores every chunk a second time, under the next number.
class DoubleWriter final : public ChunkReceiver {
 public:
  DoubleWriter(ChunkReceiver& writer, IngestBudget& budget) : writer_(writer), budget_(budget) {}
  void Submit(ReceivedChunk chunk, Done done) override {
    ReceivedChunk again = chunk;
    ++again.header.sequence;
    budget_.Take(again.header.stream.agent_id, again.bytes());
    writer_.Submit(std::move(chunk), std::move(done));
    writer_.Submit(std::move(again), [](const auto&) {});
  }

 private:
  ChunkReceiver& writer_;
  IngestBudget& budget_;
};

TEST_F(SimFleetTest, CatchesAnAggregatorThatStoresTwice) {
  const auto violations = FirstViolations([](SimProfile& profile) {
    profile.aggregator.wrap_writer = [](ChunkReceiver& writer, IngestBudget& budget) {
      return std::make_unique<DoubleWriter>(writer, budget);
    };
  });
  EXPECT_THAT(violations, Contains(HasSubstr("which is stored already")));
}

// Stores every chunk and answers none.
class SilentWriter final : public ChunkReceiver {
 public:
  explicit SilentWriter(ChunkReceiver& writer) : writer_(writer) {}
  void Submit(ReceivedChunk chunk, Done) override {
    writer_.Submit(std::move(chunk), [](const auto&) {});
  }

 private:
  ChunkReceiver& writer_;
};

TEST_F(SimFleetTest, CatchesAnAggregatorThatNeverAnswers) {
  const auto violations = FirstViolations([](SimProfile& profile) {
    profile.aggregator.wrap_writer = [](ChunkReceiver& writer, IngestBudget&) {
      return std::make_unique<SilentWriter>(writer);
    };
  });
  EXPECT_THAT(violations, Contains(AnyOf(HasSubstr("no progress"), HasSubstr("not complete"))));
}

}  // namespace
}  // namespace neurontrace
