// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/fake_tap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>

#include "lib/base/crc32c.h"

namespace neurontrace {
namespace {

constexpr size_t kFileBytes = kTapRingOffset + FakeTap::kRingBytes;

// Not assert: tests must fail here in builds without assertions too.
void Check(bool ok) {
  if (!ok) std::abort();
}

TapMessageHeader MakeHeader(TapMessageType type, size_t length) {
  return {kTapMessageMagic, kTapProtocolVersion, static_cast<uint16_t>(type),
          static_cast<uint32_t>(length), 0};
}

template <typename T>
std::string_view AsText(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

// A memory file as a tap makes it, but unsealed, so that tests can try what the agent refuses.
FakeTap::FakeTap() : memfd_(memfd_create("fake_tap", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  Check(ftruncate(memfd_.get(), kFileBytes) == 0);
  memory_ = static_cast<char*>(
      mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_.get(), 0));
  Check(memory_ != MAP_FAILED);
  TapBufferHeader& h = header();
  h.magic = kTapBufferMagic;
  h.format_version = kTapBufferFormatVersion;
  h.header_bytes = kTapHeaderBytes;
  h.facts_offset = kTapFactsOffset;
  h.facts_bytes = kTapFactsBytes;
  h.ring_offset = kTapRingOffset;
  h.ring_bytes = kRingBytes;
  h.claimed_pid = static_cast<uint32_t>(getpid());
  SetState(TapState::kIdle);
}

FakeTap::~FakeTap() { munmap(memory_, kFileBytes); }

void FakeTap::Seal(int seals) { Check(fcntl(memfd_.get(), F_ADD_SEALS, seals) == 0); }

void FakeTap::SendPacket(int socket, std::string_view bytes, std::span<const int> descriptors) {
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))] = {};
  Check(descriptors.size() <= kDescriptorsMax);
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  Check(sendmsg(socket, &message, 0) == static_cast<ssize_t>(bytes.size()));
}

UniqueFd FakeTap::Connect(const CaptureId& running) {
  int pair[2];
  int wake[2];
  Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
  Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, wake) == 0);
  socket_ = UniqueFd(pair[0]);
  wake_ = UniqueFd(wake[0]);
  const UniqueFd agent_wake(wake[1]);
  TapHello hello = {};
  hello.header = MakeHeader(TapMessageType::kHello, sizeof hello);
  hello.claimed_pid = static_cast<uint32_t>(getpid());
  hello.buffer_bytes = kFileBytes;
  hello.state = static_cast<uint32_t>(state());
  hello.protocol_newest = kTapProtocolVersion;
  std::memcpy(hello.capture_id, running.bytes().data(), sizeof hello.capture_id);
  const int passed[2] = {memfd_.get(), wake_to_pass < 0 ? agent_wake.get() : wake_to_pass};
  SendPacket(socket_.get(), {reinterpret_cast<const char*>(&hello), sizeof hello}, passed);
  return UniqueFd(pair[1]);
}

void FakeTap::HangUp() {
  socket_.Close();
  wake_.Close();
}

std::optional<FakeTap::Command> FakeTap::ReadCommand() {
  char data[kTapMessageBytesMax];
  const ssize_t size = recv(socket_.get(), data, sizeof data, MSG_DONTWAIT);
  if (size < static_cast<ssize_t>(sizeof(TapMessageHeader))) return std::nullopt;
  TapMessageHeader head;
  std::memcpy(&head, data, sizeof head);
  Command command;
  command.type = static_cast<TapMessageType>(head.type);
  command.capture_id = *CaptureId::FromBytes({data + sizeof head, kTapCaptureIdBytes});
  if (command.type == TapMessageType::kStart) {
    std::memcpy(&command.start, data, sizeof command.start);
    command.at_ns = command.start.begin_at_monotonic_ns;
    for (const char* name = data + sizeof command.start; name < data + size;
         name += command.names.back().size() + 1) {
      command.names.emplace_back(name);
    }
  } else if (command.type == TapMessageType::kStop) {
    TapStop stop = {};
    std::memcpy(&stop, data, sizeof stop);
    command.at_ns = stop.stop_at_monotonic_ns;
  } else if (command.type == TapMessageType::kCollect) {
    TapCollect collect = {};
    std::memcpy(&collect, data, sizeof collect);
    command.at_ns = collect.at_monotonic_ns;
    command.recorder_id = *CaptureId::FromBytes(
        {reinterpret_cast<const char*>(collect.recorder_id), sizeof collect.recorder_id});
  }
  return command;
}

void FakeTap::Answer(TapMessageType command, TapResult result, const CaptureId& capture_id,
                     std::string_view detail) {
  TapStatus status = {};
  status.header = MakeHeader(TapMessageType::kStatus, sizeof status + detail.size());
  status.state = header().state.load();
  status.result = static_cast<uint32_t>(result);
  status.command = result == TapResult::kNone ? 0 : static_cast<uint32_t>(command);
  std::memcpy(status.capture_id, capture_id.bytes().data(), sizeof status.capture_id);
  status.detail_bytes = static_cast<uint32_t>(detail.size());
  SendRaw(std::string(AsText(status)) + std::string(detail));
}

void FakeTap::SendRaw(std::string_view message) {
  Check(send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(message.size()));
}

// As the tap does: the request is cleared when it is answered.
bool FakeTap::TakeWakeRequest() { return header().consumer_waiting.exchange(0) == 1; }

uint64_t FakeTap::Write(TapRecordType type, std::string_view payload, const CaptureId& capture_id,
                        uint32_t nc_idx, uint16_t flags) {
  TapRecordHeader record = {};
  record.flags = flags;
  record.length = static_cast<uint32_t>(sizeof record + payload.size());
  record.type = static_cast<uint16_t>(type);
  record.nc_idx = nc_idx;
  record.host_realtime_ns = realtime_ns;
  std::memcpy(record.capture_id, capture_id.bytes().data(), sizeof record.capture_id);
  std::string bytes = std::string(AsText(record)) + std::string(payload);
  const uint32_t crc =
      Crc32c(bytes.data() + kTapRecordCrcOffset, bytes.size() - kTapRecordCrcOffset);
  std::memcpy(bytes.data() + offsetof(TapRecordHeader, crc32c), &crc, sizeof crc);
  const uint64_t position = write_pos();
  // A real tap refuses the record; here a test that writes too much is wrong.
  Check(position + TapRecordSpan(bytes.size()) - read_pos() <= kRingBytes);
  for (size_t i = 0; i < bytes.size(); ++i) ring()[(position + i) % kRingBytes] = bytes[i];
  header().write_pos.store(position + TapRecordSpan(bytes.size()));
  return position;
}

uint64_t FakeTap::WriteDocument(std::string_view json, const CaptureId& capture_id,
                                uint32_t nc_idx) {
  return Write(TapRecordType::kFetchDocument, json, capture_id, nc_idx);
}

uint64_t FakeTap::WriteLoss(const TapLoss& loss, const CaptureId& capture_id, uint32_t nc_idx) {
  return Write(TapRecordType::kLoss, AsText(loss), capture_id, nc_idx);
}

uint64_t FakeTap::WriteStarted(const CaptureId& capture_id, uint16_t flags) {
  const TapTraceStarted started = {.max_events_per_nc = 65'536};
  return Write(TapRecordType::kTraceStarted, AsText(started), capture_id, kTapNoCore, flags);
}

uint64_t FakeTap::WriteStopped(const CaptureId& capture_id, TapStopReason reason, bool drained) {
  const TapTraceStopped stopped = {.reason = static_cast<uint32_t>(reason),
                                   .final_drain_complete = drained ? 1u : 0u};
  return Write(TapRecordType::kTraceStopped, AsText(stopped), capture_id);
}

void FakeTap::SetFacts(const std::map<std::string, std::string>& facts) {
  std::string entries;
  for (const auto& [key, value] : facts) {
    const TapFactEntry entry = {static_cast<uint16_t>(key.size()), 0,
                                static_cast<uint32_t>(value.size())};
    entries += AsText(entry);
    entries += key + value;
  }
  auto& head = *reinterpret_cast<TapFactsHeader*>(memory_ + kTapFactsOffset);
  const uint64_t generation = head.generation.load();
  // Odd while the facts are being written, as the format's sequence lock requires.
  head.generation.store(generation + 1);
  head.used_bytes = static_cast<uint32_t>(entries.size());
  head.crc32c = Crc32c(entries.data(), entries.size());
  std::memcpy(memory_ + kTapFactsOffset + sizeof head, entries.data(), entries.size());
  head.generation.store(generation + 2);
}

}  // namespace neurontrace
