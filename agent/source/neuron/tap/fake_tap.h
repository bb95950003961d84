// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/trace/ids.h"
#include "tap/agent_protocol.h"
#include "tap/buffer_format.h"

namespace neurontrace {

// For tests: the tap's side of the shared buffer and of the socket, without a runtime. Writes
// whatever a test wants, valid or not.
class FakeTap {
 public:
  static constexpr uint64_t kRingBytes = kTapRingBytesMin;

  FakeTap();
  ~FakeTap();
  FakeTap(const FakeTap&) = delete;
  FakeTap& operator=(const FakeTap&) = delete;

  // Makes a connection, sends HELLO on it and returns the agent's end.
  UniqueFd Connect(const CaptureId& running = CaptureId());
  // Closes the connection, as a process that ends.
  void HangUp();
  bool connected() const { return socket_.valid(); }

  struct Command {
    TapMessageType type = TapMessageType::kStop;
    CaptureId capture_id;
    TapStart start = {};
    uint64_t at_ns = 0;     // begin, stop or collect
    CaptureId recorder_id;  // of a COLLECT
    std::vector<std::string> names;
  };
  // Returns the agent's next command, if there is one.
  std::optional<Command> ReadCommand();
  // Sends a STATUS; with TapResult::kNone it answers no command.
  void Answer(TapMessageType command, TapResult result, const CaptureId& capture_id,
              std::string_view detail = "");
  void SendRaw(std::string_view message);
  // Sends one packet with at least one descriptor over any packet socket.
  static constexpr size_t kDescriptorsMax = 8;
  static void SendPacket(int socket, std::string_view bytes, std::span<const int> descriptors);
  // Returns whether the agent has asked to be woken, and clears the request.
  bool TakeWakeRequest();

  // Write records. Each returns the record's position.
  uint64_t Write(TapRecordType type, std::string_view payload, const CaptureId& capture_id,
                 uint32_t nc_idx = kTapNoCore, uint16_t flags = 0);
  uint64_t WriteDocument(std::string_view json, const CaptureId& capture_id, uint32_t nc_idx = 0);
  uint64_t WriteLoss(const TapLoss& loss, const CaptureId& capture_id, uint32_t nc_idx);
  uint64_t WriteStarted(const CaptureId& capture_id, uint16_t flags = 0);
  uint64_t WriteStopped(const CaptureId& capture_id, TapStopReason reason, bool drained = true);

  // Writes the facts as a tap does, with a new generation.
  void SetFacts(const std::map<std::string, std::string>& facts);
  void SetState(TapState state) { header().state.store(static_cast<uint32_t>(state)); }
  TapBufferHeader& header() { return *reinterpret_cast<TapBufferHeader*>(memory_); }
  char* ring() { return memory_ + kTapRingOffset; }
  int memfd() const { return memfd_.get(); }
  uint64_t write_pos() { return header().write_pos.load(); }
  uint64_t read_pos() { return header().read_pos.load(); }

  uint64_t realtime_ns = 1'700'000'000'000'000'000;  // of the next record

  // Of the memory file; set before Connect.
  void Seal(int seals);
  int wake_to_pass = -1;  // of the test, in place of the end of a socket pair; before Connect

 private:
  UniqueFd memfd_;
  UniqueFd socket_;
  UniqueFd wake_;
  char* memory_ = nullptr;
  TapState state() { return static_cast<TapState>(header().state.load()); }
};

}  // namespace neurontrace
