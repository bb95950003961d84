// SPDX-License-Identifier: Apache-2.0
// Goal: no order of orders, deaths, restarts and messages of a tap leaves a capture unfinished, or
// a tap without its order. Method: random sequences of all of them, then a stop of everything; as
// tap_source_test.cc.
#include "agent/source/neuron/tap_source.h"
#include "agent/source/neuron/tap_source_fixture.h"
#include "lib/base/random.h"
#include "lib/base/sanitizers.h"

namespace neurontrace {
namespace {

class TapSourcePropertyTest : public TapSourceTest {
 protected:
  struct Known {
    CaptureId id;
    CaptureSpec spec;
    bool stopped = false;
  };

  TapSourcePropertyTest() {
    constexpr CaptureMode kModes[] = {CaptureMode::kFlightRecorder, CaptureMode::kContinuous,
                                      CaptureMode::kStream, CaptureMode::kSnapshot};
    for (size_t i = 0; i < std::size(kModes); ++i) {
      Known& known = known_.emplace_back();
      known.id = *CaptureId::FromBytes(std::string(16, static_cast<char>('a' + i)));
      known.spec.mode = kModes[i];
      if (kModes[i] == CaptureMode::kSnapshot) known.spec.timing.flight_recorder = known_[0].id;
    }
  }

  // Carries out the tap's orders, as a tap does.
  void Obey() {
    while (const auto command = tap_.ReadCommand()) {
      tap_.realtime_ns = clock_.RealtimeNs();
      const CaptureId& id = command->capture_id;
      TapResult result = TapResult::kOk;
      if (command->type == TapMessageType::kCollect) {
        result = running_ == command->recorder_id ? TapResult::kOk : TapResult::kAnotherCapture;
        tap_.Answer(command->type, result, id);
      } else if (command->type == TapMessageType::kStart) {
        if (running_.empty()) tap_.WriteStarted(id);
        if (running_.empty()) running_ = id;
        tap_.SetState(command->start.flags == kTapStartFlagHold ? TapState::kHolding
                                                                : TapState::kStreaming);
        if (running_ != id) result = TapResult::kAnotherCapture;
        tap_.Answer(command->type, result, running_);
      } else {
        if (running_ == id) {
          tap_.WriteStopped(id, TapStopReason::kCommand);
          running_ = CaptureId();
          tap_.SetState(TapState::kIdle);
        } else if (!running_.empty()) {
          result = TapResult::kAnotherCapture;
        }
        tap_.Answer(command->type, result, running_.empty() ? id : running_);
      }
      Deliver();
    }
  }

  void Order(Known& known, uint64_t choice) {
    const auto begin = In(static_cast<int64_t>(choice / 8 % 2'000) - 500);
    const std::vector<StreamCursor> cursors = sink_.Cursors();
    switch (choice % 6) {
      case 0:
        return source_->ApplyOrder(SourceOrder::Start(known.id, known.spec, cursors));
      case 1:
        return source_->ApplyOrder(SourceOrder::Arm(known.id, known.spec, cursors));
      case 2:
        return source_->ApplyOrder(SourceOrder::Begin(known.id, begin));
      case 3:
        return source_->ApplyOrder(SourceOrder::Join(known.id, known.spec, cursors, begin));
      case 4:
        return source_->ApplyOrder(SourceOrder::Continue(known.id, known.spec, cursors));
      default:
        known.stopped = true;
        return source_->Stop(known.id, choice % 5 == 0 ? begin.host_raw_ns : Source::kStopNow);
    }
  }

  // As the agent is killed, and the next one is welcomed with the captures that still run.
  void RestartAgent() {
    tap_.HangUp();
    MakeSource();
    for (Known& known : known_) {
      if (!known.stopped) {
        source_->ApplyOrder(SourceOrder::Join(known.id, known.spec, sink_.Cursors(), In(-100)));
      } else {
        source_->ApplyOrder(SourceOrder::Finish(known.id, known.spec, sink_.Cursors(), In(-100)));
        source_->Stop(known.id, Source::kStopNow);
      }
    }
    source_->OnCaptureListComplete();
    Connect(running_);
  }

  void Step(uint64_t choice) {
    Known& known = known_[choice / 16 % known_.size()];
    switch (choice % 12) {
      case 0:
        tap_.HangUp();
        Deliver();
        return Pass(choice / 64 % 1'000);
      case 1:
        return RestartAgent();
      case 2:
        if (!running_.empty()) tap_.WriteDocument(Document(0, number_, 3), running_);
        number_ += 3;
        return Deliver();
      case 3:
        tap_.SetState(choice / 16 % 2 == 0 ? TapState::kBusyOtherProfiler : TapState::kIdle);
        return Pass(200);
      case 4:
        return sink_.StoreAll();
      case 5:
        return Pass(choice / 64 % 3'000);
      case 6:
        // A tap that answers what it was not asked.
        if (tap_.connected()) {
          tap_.Answer(TapMessageType::kStart, static_cast<TapResult>(choice / 64 % 6), known.id);
        }
        return Deliver();
      default:
        return Order(known, choice / 64);
    }
  }

  void Run(uint64_t seed) {
    SeededRandom random(seed);
    Connect();
    for (uint64_t steps = 1 + random.Next64() % 40; steps > 0; --steps) {
      const uint64_t choice = random.Next64();
      Step(choice);
      if (!tap_.connected() && choice % 3 != 0) Connect(running_);
      if (choice % 4 != 0) Obey();
    }
    if (random.Next64() % 4 == 0) {
      SetProcessAlive(false);
      tap_.HangUp();
    } else if (!tap_.connected()) {
      Connect(running_);
    }
    for (Known& known : known_) {
      source_->ApplyOrder(SourceOrder::Begin(known.id, In(0)));
      source_->Stop(known.id, Source::kStopNow);
    }
    for (int seconds = 0; seconds < 120; ++seconds) {
      Pass(1'000);
      Deliver();
      if (tap_.connected()) Obey();
      sink_.StoreAll();
    }
    Pass(1'000);
    for (const Known& known : known_) {
      EXPECT_TRUE(source_->IsFinished(known.id))
          << "seed " << seed << ", " << static_cast<int>(known.spec.mode) << ": "
          << static_cast<int>(listener_.statuses[known.id].state) << " "
          << listener_.statuses[known.id].detail;
    }
  }

  std::vector<Known> known_;
  CaptureId running_;
  uint64_t number_ = 0;
};

// A world of its own for each sequence.
class TapSourceSequence final : public TapSourcePropertyTest {
 public:
  void TestBody() override {}
  using TapSourcePropertyTest::Run;
};

TEST(TapSourceSequencesTest, EveryCaptureFinishes) {
  for (uint64_t seed = 0; seed < (kUnderSanitizer ? 40 : 400); ++seed) {
    TapSourceSequence().Run(seed);
  }
}

}  // namespace
}  // namespace neurontrace
