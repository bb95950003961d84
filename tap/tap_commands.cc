// SPDX-License-Identifier: Apache-2.0
// The part of Tap that talks to the agent.
#include <string.h>
#include <unistd.h>

#include "tap/tap.h"

namespace neurontrace::tap {

void Tap::ServeAgent(uint64_t now_ns) {
  if (connection_.ConnectIfDue(now_ns)) {
    // Nothing of this comes from the shared header, which an earlier agent may have written over.
    TapHello hello = {};
    hello.header = {kTapMessageMagic, kTapProtocolVersion,
                    static_cast<uint16_t>(TapMessageType::kHello), sizeof hello, 0};
    hello.claimed_pid = static_cast<uint32_t>(getpid());
    hello.claimed_uid = static_cast<uint32_t>(getuid());
    hello.process_start_ticks = ProcessStartTicks();
    hello.buffer_bytes = buffer_.total_bytes();
    hello.state = static_cast<uint32_t>(CurrentState());
    hello.protocol_newest = kTapProtocolVersion;
    if (wanted_) memcpy(hello.capture_id, spec_.capture_id, sizeof hello.capture_id);
    strncpy(hello.tap_version, NEURONTRACE_VERSION, sizeof hello.tap_version - 1);
    connection_.SendHello(hello, buffer_.fd(), now_ns);
  }
  for (uint32_t i = 0; i < kCommandsPerStep && connection_.connected(); ++i) {
    const long size = connection_.Receive(packet_, sizeof packet_, now_ns);
    if (size <= 0) break;
    ServePacket(size, now_ns);
  }
  connection_.Flush(now_ns);
}

void Tap::ServePacket(long size, uint64_t now_ns) {
  const char* wrong = nullptr;
  if (!connection_.TakeCommandToken(now_ns)) {
    wrong = "too many commands";
  } else if (size > static_cast<long>(sizeof packet_)) {
    wrong = "the message is too long";
  } else {
    wrong = ParseCommand(packet_, static_cast<size_t>(size), &command_);
  }
  if (wrong != nullptr) {
    buffer_.header()->counters.invalid_commands.fetch_add(1, std::memory_order_relaxed);
    Answer(TapResult::kInvalid, nullptr, wrong, now_ns);
    connection_.Drop(now_ns, true);
    return;
  }
  if (command_.at_ns > now_ns && command_.at_ns - now_ns > kAheadMaxNs) {
    Answer(TapResult::kTooFarAhead, command_.spec.capture_id, "its time is too far ahead", now_ns);
    return;
  }
  switch (command_.type) {
    case TapMessageType::kStart:
      return HandleStart(now_ns);
    case TapMessageType::kCollect:
      return HandleCollect(now_ns);
    default:
      return HandleStop(now_ns);
  }
}

void Tap::HandleStart(uint64_t now_ns) {
  if (wanted_ && !SameCaptureId(spec_.capture_id, command_.spec.capture_id)) {
    Answer(TapResult::kAnotherCapture, spec_.capture_id, "another capture runs: stop it first",
           now_ns);
    return;
  }
  if (view_.initialised && !library_->CanTrace()) {
    Answer(TapResult::kUnsupported, command_.spec.capture_id, detail_, now_ns);
    return;
  }
  if (!wanted_) {
    spec_ = command_.spec;
    wanted_ = true;
    resumed_ = false;
    start_at_ns_ = 0;
    start_pause_ns_ = kStartRetryFirstNs;
    stop_at_ns_ = kNeverNs;
    detail_[0] = '\0';
  }
  if (!resumed_) {
    begin_at_ns_ = command_.at_ns;
    StartIfWanted(now_ns);
    PublishState(now_ns);
  }
  Answer(trace_.running() ? TapResult::kOk : TapResult::kAccepted, spec_.capture_id, detail_,
         now_ns);
}

void Tap::HandleStop(uint64_t now_ns) {
  const uint8_t* asked = command_.spec.capture_id;
  if (StopCollection(asked, now_ns)) return;
  if (!wanted_) {
    Answer(TapResult::kNotRunning, asked, "", now_ns);
    return;
  }
  if (!SameCaptureId(spec_.capture_id, asked)) {
    Answer(TapResult::kAnotherCapture, spec_.capture_id, "another capture runs", now_ns);
    return;
  }
  stop_at_ns_ = command_.at_ns;
  if (stop_at_ns_ > now_ns) {
    Answer(TapResult::kAccepted, asked, "", now_ns);
  } else {
    StopCapture(now_ns);
  }
}

void Tap::StopCapture(uint64_t now_ns) {
  StopTrace(TapStopReason::kCommand);
  wanted_ = false;
  refusal_ = Refusal::kNone;
  detail_[0] = '\0';
  PublishState(now_ns);
  Tell(TapMessageType::kStop, TapResult::kOk, spec_.capture_id, "", now_ns);
}

void Tap::StopIfDue(uint64_t now_ns) {
  if (wanted_ && now_ns >= stop_at_ns_) StopCapture(now_ns);
}

void Tap::Answer(TapResult result, const uint8_t* capture_id, const char* detail, uint64_t now_ns) {
  Tell(command_.type, result, capture_id, detail, now_ns);
}

void Tap::Tell(TapMessageType command, TapResult result, const uint8_t* capture_id,
               const char* detail, uint64_t now_ns) {
  TapStatus status = {};
  status.state = static_cast<uint32_t>(state_);
  status.result = static_cast<uint32_t>(result);
  status.command = result == TapResult::kNone ? 0 : static_cast<uint32_t>(command);
  status.nrt_status = nrt_status_;
  if (capture_id != nullptr) memcpy(status.capture_id, capture_id, sizeof status.capture_id);
  connection_.SendStatus(status, detail, now_ns);
}

}  // namespace neurontrace::tap
