// SPDX-License-Identifier: Apache-2.0
// Queue and uploader against an aggregator that is played by the test: it stores in order, refuses,
// asks to wait, and loses connections. What counts is what is stored in the end, and the receipts.
#include "agent/upload/uploader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/fake_task_runner.h"
#include "lib/wire/chunk_envelope.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kMs = 1'000'000;

// Keeps what an aggregator keeps, by the rules of the wire.
class FakeAggregator {
 public:
  explicit FakeAggregator(FakeTaskRunner& runner) : runner_(runner) {}

  UploadConnector connector() {
    return [this](UploadStream::Listener& listener) -> std::unique_ptr<UploadStream> {
      ++calls;
      listener_ = &listener;
      return std::make_unique<Call>(*this);
    };
  }

  // What came and waits to be answered, answered.
  void Answer() {
    while (!received_.empty()) {
      const v1::ChunkEnvelope envelope = std::move(received_.front());
      received_.pop_front();
      Handle(envelope);
    }
  }
  void Lose() {
    received_.clear();
    UploadStream::Listener* const listener = listener_;
    listener->OnClosed(absl::UnavailableError("gone"));
  }
  size_t waiting() const { return received_.size(); }

  int calls = 0;
  bool answers_at_once = true;
  int busy = 0;                     // so many chunks are answered with BUSY
  std::set<std::string> malformed;  // "name sequence" to refuse for good
  bool malformed_for_ever = false;  // replacements too
  bool unknown_capture = false;
  std::map<std::string, uint64_t> next;             // cursors by stream name
  std::vector<std::string> stored;                  // "name sequence", in order
  std::vector<std::string> received;                // the same, every time
  std::map<std::string, std::vector<Loss>> losses;  // of stored chunks, by stream name

 private:
  class Call final : public UploadStream {
   public:
    explicit Call(FakeAggregator& aggregator) : aggregator_(aggregator) {}
    ~Call() override { *alive_ = false; }
    void Write(std::shared_ptr<const v1::ChunkEnvelope> envelope) override {
      aggregator_.runner_.PostTask([this, alive = alive_, envelope] {
        if (!*alive) return;
        aggregator_.received_.push_back(*envelope);
        if (aggregator_.answers_at_once) aggregator_.Answer();
        if (*alive) aggregator_.listener_->OnWritten();
      });
    }

   private:
    FakeAggregator& aggregator_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  };

  void Handle(const v1::ChunkEnvelope& envelope) {
    const auto header = ParseEnvelopeHeader(envelope);
    ASSERT_TRUE(header.ok()) << header.status();
    const std::string name = header->stream.name;
    const std::string label = fmt::format("{} {}", name, header->sequence);
    received.push_back(label);
    uint64_t& cursor = next[name];
    v1::UploadAck ack;
    ack.set_stream_ref(envelope.stream_ref());
    ack.set_refused_sequence(header->sequence);
    const bool replacement = header->replaced.has_value();
    if (unknown_capture) {
      ack.set_refusal(v1::REFUSAL_CODE_UNKNOWN_CAPTURE);
    } else if (malformed.contains(label) && (malformed_for_ever || !replacement)) {
      ack.set_refusal(v1::REFUSAL_CODE_MALFORMED);
      ack.set_message("looks odd");
    } else if (header->sequence > cursor) {
      ack.set_refusal(v1::REFUSAL_CODE_GAP);
    } else if (header->sequence == cursor && busy > 0) {
      --busy;
      ack.set_refusal(v1::REFUSAL_CODE_BUSY);
      ack.set_retry_delay_ms(50);
    } else if (header->sequence == cursor) {
      ++cursor;
      stored.push_back(label);
      if (header->replaced) losses[name].push_back(*header->replaced);
    }
    ack.set_next_sequence(cursor);
    listener_->OnAck(ack);
  }

  FakeTaskRunner& runner_;
  UploadStream::Listener* listener_ = nullptr;
  std::deque<v1::ChunkEnvelope> received_;
};

class UploaderTest : public ::testing::Test {
 protected:
  void Submit(const std::string& name, uint64_t sequence, bool end = false) {
    Chunk chunk;
    chunk.header.capture_id = capture_;
    chunk.header.stream.agent_id = "agent";
    chunk.header.stream.worker.instance_id = "i-1";
    chunk.header.stream.kind = StreamKind::kFramework;
    chunk.header.stream.nc_idx = limits::kNoNcIdx;
    chunk.header.stream.name = name;
    chunk.header.sequence = sequence;
    chunk.header.event_count = 10;
    chunk.header.first_timestamp_ns = 5;
    chunk.header.last_timestamp_ns = 6;
    chunk.header.columns_bytes = 1000;
    chunk.header.end_of_stream = end;
    chunk.columns = std::string(200, 'c');
    queue_.Submit(std::move(chunk), [this, name, sequence](const ChunkSink::Receipt& receipt) {
      receipts_.push_back(
          fmt::format("{} {} {}", name, sequence,
                      receipt.fate == ChunkSink::Fate::kStored ? "stored" : receipt.reason));
      given_up_ += receipt.given_up;
    });
  }
  void Start() {
    uploader_.SetEnabled(true);
    runner_.RunUntilIdle();
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  SeededRandom random_{5};
  CaptureId capture_ = CaptureId::Make(clock_, random_);
  FakeAggregator aggregator_{runner_};
  DeliveryQueue queue_{nullptr, 10'000};
  Uploader uploader_{queue_, aggregator_.connector(), runner_, clock_, random_, 4};
  std::vector<std::string> receipts_;
  uint64_t given_up_ = 0;
};

TEST_F(UploaderTest, SendsNothingBeforeItIsEnabled) {
  Submit("a", 0);
  runner_.RunUntilIdle();
  EXPECT_EQ(aggregator_.calls, 0);
  EXPECT_THAT(receipts_, IsEmpty());
  Start();
  EXPECT_THAT(receipts_, ElementsAre("a 0 stored"));
  EXPECT_EQ(queue_.bytes(), 0u);
}

TEST_F(UploaderTest, KeepsOrderWithinStreamsAndSharesBetweenThem) {
  for (uint64_t i = 0; i < 5; ++i) Submit("loud", i);
  Submit("calm", 0);
  Submit("calm", 1);
  Start();
  EXPECT_THAT(aggregator_.stored,
              ElementsAre("loud 0", "calm 0", "loud 1", "calm 1", "loud 2", "loud 3", "loud 4"));
  EXPECT_EQ(queue_.counters().chunks_stored, 7u);
  EXPECT_EQ(queue_.counters().events_stored, 70u);
}

TEST_F(UploaderTest, WaitsForAnswersWhenTheWindowIsFull) {
  aggregator_.answers_at_once = false;
  for (uint64_t i = 0; i < 9; ++i) Submit("a", i);
  Start();
  EXPECT_EQ(aggregator_.waiting(), 4u);
  EXPECT_EQ(uploader_.unacked(), 4u);
  aggregator_.Answer();
  runner_.RunUntilIdle();
  EXPECT_EQ(aggregator_.waiting(), 4u);
  aggregator_.answers_at_once = true;
  aggregator_.Answer();
  runner_.RunUntilIdle();
  EXPECT_EQ(receipts_.size(), 9u);
}

TEST_F(UploaderTest, SendsAgainWhatALostConnectionLeftOpenAndDuplicatesAreStoredOnce) {
  aggregator_.answers_at_once = false;
  for (uint64_t i = 0; i < 3; ++i) Submit("a", i);
  Start();
  // The first chunk is stored, but its acknowledgement does not arrive.
  aggregator_.next["a"] = 1;
  aggregator_.stored.push_back("a 0");
  aggregator_.Lose();
  EXPECT_FALSE(uploader_.connected());
  EXPECT_EQ(aggregator_.calls, 1);
  aggregator_.answers_at_once = true;
  runner_.AdvanceNs(200 * kMs);
  EXPECT_EQ(aggregator_.calls, 2);
  EXPECT_THAT(aggregator_.received, ElementsAre("a 0", "a 1", "a 2"));
  EXPECT_THAT(aggregator_.stored, ElementsAre("a 0", "a 1", "a 2"));
  EXPECT_THAT(receipts_, ElementsAre("a 0 stored", "a 1 stored", "a 2 stored"));
}

TEST_F(UploaderTest, TriesLaterAndLaterWhileThereIsNoAggregator) {
  Start();
  for (int i = 0; i < 4; ++i) {
    aggregator_.Lose();
    runner_.AdvanceNs(70 * kMs << i);
    EXPECT_EQ(aggregator_.calls, i + 1) << "too early";
    runner_.AdvanceNs(40 * kMs << i);
    EXPECT_EQ(aggregator_.calls, i + 2) << "too late";
  }
}

TEST_F(UploaderTest, BeginsANewCallWhenAnswersStayAway) {
  Start();
  runner_.AdvanceNs(100'000 * kMs);
  EXPECT_EQ(aggregator_.calls, 1) << "nothing to answer is no silence";
  aggregator_.answers_at_once = false;
  Submit("a", 0);
  runner_.AdvanceNs(70'000 * kMs);
  EXPECT_GE(aggregator_.calls, 2);
  aggregator_.answers_at_once = true;
  aggregator_.Answer();
  EXPECT_THAT(receipts_, ElementsAre("a 0 stored"));
}

TEST_F(UploaderTest, GoesBackOnceWhenAskedForEarlierChunks) {
  aggregator_.answers_at_once = false;
  for (uint64_t i = 0; i < 4; ++i) Submit("a", i);
  Start();
  // As if the first two had been lost on the way: 2 and 3 are gaps, each refused.
  v1::UploadAck gap;
  gap.set_stream_ref(1);
  gap.set_refusal(v1::REFUSAL_CODE_GAP);
  gap.set_next_sequence(0);
  for (const uint64_t refused : {2, 3}) {
    gap.set_refused_sequence(refused);
    uploader_.OnAck(gap);
  }
  EXPECT_EQ(uploader_.counters().gaps, 2u);
  runner_.RunUntilIdle();
  EXPECT_EQ(aggregator_.waiting(), 8u) << "sent once more, not once per refusal";
  aggregator_.Answer();
  EXPECT_THAT(aggregator_.stored, ElementsAre("a 0", "a 1", "a 2", "a 3"));
  EXPECT_EQ(receipts_.size(), 4u);
}

TEST_F(UploaderTest, WaitsWhenTheAggregatorIsBusyAndOtherStreamsContinue) {
  aggregator_.busy = 1;
  Submit("a", 0);
  Start();
  Submit("b", 0);
  runner_.RunUntilIdle();
  EXPECT_THAT(receipts_, ElementsAre("b 0 stored"));
  runner_.AdvanceNs(49 * kMs);
  EXPECT_THAT(receipts_, ElementsAre("b 0 stored"));
  runner_.AdvanceNs(14 * kMs);  // with up to a quarter more, at random
  EXPECT_THAT(receipts_, ElementsAre("b 0 stored", "a 0 stored"));
  EXPECT_EQ(uploader_.counters().busy, 1u);
}

TEST_F(UploaderTest, BusyAggregatorWithoutCursorLosesNothing) {
  Submit("a", 0);
  Start();
  aggregator_.answers_at_once = false;
  Submit("a", 1);
  runner_.RunUntilIdle();
  v1::UploadAck busy;
  busy.set_stream_ref(1);
  busy.set_refusal(v1::REFUSAL_CODE_BUSY);
  busy.set_refused_sequence(1);
  uploader_.OnAck(busy);
  runner_.AdvanceNs(200 * kMs);
  aggregator_.Answer();
  EXPECT_THAT(receipts_, ElementsAre("a 0 stored", "a 1 stored"));
  EXPECT_EQ(uploader_.counters().streams_abandoned, 0u);
}

TEST_F(UploaderTest, ReplacesPermanentlyRefusedChunkByLossAndContinues) {
  aggregator_.malformed.insert("a 1");
  for (uint64_t i = 0; i < 4; ++i) Submit("a", i, i == 3);
  Start();
  EXPECT_THAT(aggregator_.stored, ElementsAre("a 0", "a 1", "a 2", "a 3"));
  EXPECT_THAT(receipts_, ElementsAre("a 0 stored", "a 1 lost; the loss is reported in the stream",
                                     "a 2 stored", "a 3 stored"));
  ASSERT_EQ(aggregator_.losses["a"].size(), 1u);
  const Loss& loss = aggregator_.losses["a"][0];
  EXPECT_EQ(loss.place, LossPlace::kWireRefusal);
  EXPECT_EQ(loss.events, 10u);
  EXPECT_EQ(loss.first_timestamp_ns, 5u);
  EXPECT_EQ(loss.detail, "looks odd");
  EXPECT_EQ(queue_.counters().events_lost, 10u);
  EXPECT_EQ(queue_.counters().events_stored, 30u);
  EXPECT_EQ(uploader_.counters().chunks_refused, 1u);
  EXPECT_EQ(given_up_, 0u) << "the stream reports it";
  EXPECT_EQ(queue_.streams(), 0u) << "ended streams are forgotten";
}

TEST_F(UploaderTest, RefusalThatComesAheadOfEarlierAnswersIsUnderstood) {
  aggregator_.answers_at_once = false;
  for (uint64_t i = 0; i < 3; ++i) Submit("a", i);
  Start();
  v1::UploadAck refusal;  // of chunk 1, while chunk 0 is not durable yet
  refusal.set_stream_ref(1);
  refusal.set_refusal(v1::REFUSAL_CODE_LIMIT);
  refusal.set_refused_sequence(1);
  uploader_.OnAck(refusal);
  aggregator_.answers_at_once = true;
  aggregator_.Answer();
  runner_.RunUntilIdle();
  EXPECT_THAT(receipts_, ElementsAre("a 0 stored", "a 1 lost; the loss is reported in the stream",
                                     "a 2 stored"));
}

TEST_F(UploaderTest, StreamWhoseReplacementIsRefusedTooIsGivenUp) {
  aggregator_.malformed.insert("a 0");
  aggregator_.malformed_for_ever = true;
  Submit("a", 0);
  Submit("a", 1);
  Submit("b", 0);
  Start();
  EXPECT_THAT(receipts_,
              UnorderedElementsAre(HasSubstr("a 0 the aggregator refused"),
                                   HasSubstr("a 1 the aggregator refused"), "b 0 stored"));
  EXPECT_EQ(queue_.counters().events_lost, 20u);
  EXPECT_EQ(queue_.bytes(), 0u);
  EXPECT_EQ(given_up_, 2u) << "its source is told";
}

TEST_F(UploaderTest, UnknownCaptureEndsItsStreams) {
  aggregator_.unknown_capture = true;
  Submit("a", 0);
  Submit("a", 1);
  Start();
  EXPECT_EQ(receipts_.size(), 2u);
  EXPECT_THAT(receipts_[0], HasSubstr("does not know the capture"));
  EXPECT_EQ(queue_.chunks(), 0u);
}

TEST_F(UploaderTest, AggregatorThatLostStoredChunksCannotWedgeTheQueue) {
  Submit("a", 0);
  Start();
  aggregator_.next["a"] = 0;
  Submit("a", 1);
  runner_.RunUntilIdle();
  // This one knows nothing of chunks that say what is gone before them.
  EXPECT_THAT(receipts_, ElementsAre("a 0 stored", HasSubstr("chunk 0, which no longer exists")));
  EXPECT_EQ(uploader_.counters().streams_abandoned, 1u);
  EXPECT_EQ(queue_.chunks(), 0u);
}

TEST_F(UploaderTest, ForgottenCaptureIsGivenUp) {
  aggregator_.answers_at_once = false;
  Submit("a", 0);
  Submit("b", 0);
  Start();
  uploader_.ForgetCapture(capture_);
  EXPECT_EQ(receipts_.size(), 2u);
  EXPECT_EQ(uploader_.unacked(), 0u);
  aggregator_.Answer();  // late answers are about streams that nobody knows
  EXPECT_EQ(receipts_.size(), 2u);
}

TEST_F(UploaderTest, BlocksSourcesAndKeepsOnlyLossBeyondTwiceBudget) {
  uint64_t sequence = 0;
  while (queue_.HasRoom()) Submit("a", sequence++);
  EXPECT_GE(queue_.bytes(), 10'000u);
  EXPECT_LT(queue_.bytes(), 12'000u);
  while (queue_.bytes() < 20'000) Submit("a", sequence++);
  EXPECT_EQ(queue_.counters().chunks_refused_full, 0u);
  Submit("a", sequence);
  EXPECT_EQ(queue_.counters().chunks_refused_full, 1u);
  EXPECT_THAT(receipts_, IsEmpty()) << "never from within Submit";
  Start();
  EXPECT_THAT(receipts_.back(), HasSubstr("the loss is reported in the stream"));
  EXPECT_TRUE(queue_.HasRoom());
  EXPECT_EQ(queue_.counters().chunks_stored, sequence);
  EXPECT_EQ(queue_.counters().events_lost, 10u);
  ASSERT_EQ(aggregator_.losses["a"].size(), 1u);
  EXPECT_EQ(aggregator_.losses["a"][0].place, LossPlace::kAgentQueue);
}

TEST_F(UploaderTest, EndedStreamMayComeAgainInAnotherCapture) {
  Submit("a", 0, true);
  Start();
  aggregator_.next.clear();
  capture_ = CaptureId::Make(clock_, random_);
  Submit("a", 0, true);
  runner_.RunUntilIdle();
  EXPECT_THAT(receipts_, ElementsAre("a 0 stored", "a 0 stored"));
}

}  // namespace
}  // namespace neurontrace
