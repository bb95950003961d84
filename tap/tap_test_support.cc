// SPDX-License-Identifier: Apache-2.0
#include "tap/tap_test_support.h"

#include <poll.h>

#include <algorithm>
#include <thread>

namespace neurontrace::tap {

TapTestRuntime* TapTestRuntime::current_ = nullptr;
uint64_t TapTest::now_ns_ = 0;

NrtStatus TapTestRuntime::Fetch(char** json, size_t* size, const NrtFetchOptions* opaque) {
  TapTestRuntime& runtime = *current_;
  ++runtime.fetches;
  if (!runtime.running || *json != nullptr) ++runtime.misuses;
  if (runtime.fetch_status != kNrtSuccess) return runtime.fetch_status;
  if (runtime.failures_to_come > 0 && runtime.failures_to_come-- > 0) return kNrtFailure;
  const auto* options = reinterpret_cast<const Options*>(opaque);
  std::string text = "{\"events\":[";
  for (auto& [core, left] : runtime.backlog) {
    if (options->core != UINT64_MAX && options->core != core) continue;
    for (uint64_t n = std::min(left, options->max_events); n > 0; --n, --left) {
      std::string event = "{\"event_type\":\"nc_exec_running\",\"nc_idx\":" + std::to_string(core) +
                          ",\"nc_local_id\":" + std::to_string(runtime.sequence[core]++) +
                          ",\"x\":\"";
      event.resize(std::max(event.size(), runtime.event_bytes), 'x');
      text += (text.back() == '[' ? "" : ",") + event + "\"}";
    }
  }
  text += "],\"data_version\":2}";
  *json = strdup(text.c_str());
  *size = text.size();
  ++runtime.live_buffers;
  if (runtime.during_fetch) runtime.during_fetch(static_cast<uint32_t>(options->core));
  return kNrtSuccess;
}

NrtLibrary TapTestRuntime::Table() const {
  NrtLibrary table;
  table.get_visible_vnc_count = [](uint32_t* count) {
    *count = current_->cores;
    return kNrtSuccess;
  };
  table.get_version = [](NrtVersion* version, size_t) {
    *version = {2, 31, 24, 0, "test", ""};
    return kNrtSuccess;
  };
  table.config_allocate = [](NrtTraceConfig** config) {
    current_->disabled_cores.clear();
    current_->disabled_types.clear();
    *config = reinterpret_cast<NrtTraceConfig*>(current_);
    return kNrtSuccess;
  };
  table.config_free = [](NrtTraceConfig*) {};
  table.config_set_max_events_per_nc = [](NrtTraceConfig*, uint64_t events) {
    current_->max_events_per_nc = events;
  };
  table.config_set_enabled_for_nc = [](NrtTraceConfig*, uint32_t core, bool enabled) {
    if (!enabled) current_->disabled_cores.insert(core);
  };
  table.config_set_enabled_for_event_type = [](NrtTraceConfig*, const char* type, bool enabled) {
    if (strcmp(type, "unheard_of") == 0) return 2;
    if (!enabled) current_->disabled_types.insert(type);
    return kNrtSuccess;
  };
  table.get_event_types = [](const char*** types, size_t* count) {
    *count = 3;
    *types = static_cast<const char**>(calloc(3, sizeof(char*)));
    (*types)[0] = strdup("nrt_execute");
    (*types)[1] = strdup("nc_exec_running");
    (*types)[2] = strdup("cc_running");
    return kNrtSuccess;
  };
  table.trace_start = [](NrtTraceConfig*) {
    if (current_->start_status != kNrtSuccess) return current_->start_status;
    if (current_->running) ++current_->misuses;
    current_->running = true;
    ++current_->starts;
    return kNrtSuccess;
  };
  table.trace_stop = []() {
    if (!current_->running) ++current_->misuses;
    current_->running = false;
    ++current_->stops;
    return kNrtSuccess;
  };
  table.fetch_options_allocate = [](NrtFetchOptions** options) {
    *options = reinterpret_cast<NrtFetchOptions*>(&current_->options_);
    return kNrtSuccess;
  };
  table.fetch_options_free = [](NrtFetchOptions*) { current_->options_ = Options(); };
  table.fetch_options_set_max_events_per_nc = [](NrtFetchOptions* options, uint64_t events) {
    reinterpret_cast<Options*>(options)->max_events = events;
  };
  table.fetch_options_set_nc_idx = [](NrtFetchOptions* options, uint64_t core) {
    reinterpret_cast<Options*>(options)->core = core;
  };
  table.fetch_events = &TapTestRuntime::Fetch;
  table.buffer_free = [](char* json) {
    --current_->live_buffers;
    free(json);
  };
  return table;
}

TapTestAgent::TapTestAgent() {
  char directory[] = "/tmp/neurontrace_tap_test.XXXXXX";
  directory_ = mkdtemp(directory);
  path_ = directory_ + "/agent.sock";
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(listener_, 8), 0);
}

TapTestAgent::~TapTestAgent() {
  Hang();
  close(listener_);
  unlink(path_.c_str());
  rmdir(directory_.c_str());
}

bool TapTestAgent::Accept() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return false;
  Hang();
  connection_ = fd;
  pollfd hello_comes = {fd, POLLIN, 0};
  if (poll(&hello_comes, 1, 20'000) != 1) return false;
  iovec part = {&hello_, sizeof hello_};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != sizeof hello_) return false;
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_len != CMSG_LEN(2 * sizeof(int))) return false;
  int fds[2];
  memcpy(fds, CMSG_DATA(rights), sizeof fds);
  memfd_ = fds[0];
  wake_ = fds[1];
  map_bytes_ = hello_.buffer_bytes;
  void* map = mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_, 0);
  if (map == MAP_FAILED) return false;
  map_ = static_cast<uint8_t*>(map);
  return true;
}

void TapTestAgent::Hang() {
  Unmap();
  for (int* fd : {&connection_, &memfd_, &wake_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

void TapTestAgent::Unmap() {
  if (map_ != nullptr) munmap(map_, map_bytes_);
  map_ = nullptr;
}

void TapTestAgent::Send(const std::vector<uint8_t>& packet) {
  send(connection_, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::vector<TapStatus> TapTestAgent::ReadStatuses(std::vector<std::string>* details) {
  std::vector<TapStatus> statuses;
  char packet[sizeof(TapStatus) + kTapStatusDetailBytesMax];
  for (;;) {
    const ssize_t size = recv(connection_, packet, sizeof packet, MSG_DONTWAIT);
    if (size < static_cast<ssize_t>(sizeof(TapStatus))) return statuses;
    TapStatus status;
    memcpy(&status, packet, sizeof status);
    EXPECT_EQ(status.header.length, static_cast<uint32_t>(size));
    EXPECT_EQ(status.detail_bytes, static_cast<size_t>(size) - sizeof status);
    statuses.push_back(status);
    if (details != nullptr) details->emplace_back(packet + sizeof status, status.detail_bytes);
  }
}

bool TapTestAgent::ConnectionEnded() {
  ReadStatuses();
  char byte;
  return recv(connection_, &byte, 1, MSG_DONTWAIT) == 0;
}

bool TapTestAgent::WakeIsReadable() {
  uint64_t value;
  bool any = false;
  while (read(wake_, &value, sizeof value) == sizeof value) any = true;
  return any;
}

ino_t TapTestAgent::buffer_inode() const {
  struct stat info = {};
  EXPECT_EQ(fstat(memfd_, &info), 0);
  return info.st_ino;
}

uint64_t TapTestAgent::buffer_blocks() const {
  struct stat info = {};
  EXPECT_EQ(fstat(memfd_, &info), 0);
  return static_cast<uint64_t>(info.st_blocks);
}

std::vector<TapTestRecord> TapTestAgent::Read() {
  uint64_t position = header()->read_pos.load();
  std::vector<TapTestRecord> records =
      ReadTapRecords(*header(), map_ + kTapRingOffset, header()->ring_bytes, &position);
  header()->read_pos.store(position);
  return records;
}

std::map<std::string, std::string> TapTestAgent::ReadFacts() {
  const auto* facts = reinterpret_cast<const TapFactsHeader*>(map_ + kTapFactsOffset);
  EXPECT_EQ(facts->generation.load() % 2, 0u);
  const char* at = reinterpret_cast<const char*>(facts + 1);
  EXPECT_EQ(facts->crc32c, Crc32c(at, facts->used_bytes));
  std::map<std::string, std::string> out;
  for (const char* const end = at + facts->used_bytes; at < end;) {
    TapFactEntry entry;
    memcpy(&entry, at, sizeof entry);
    at += sizeof entry;
    const std::string key(at, entry.key_bytes);
    out[key] = std::string(at + entry.key_bytes, entry.value_bytes);
    at += entry.key_bytes + entry.value_bytes;
  }
  return out;
}

TapTest::TapTest() {
  now_ns_ = 1'000 * kNsPerSecond;
  clock_.monotonic_ns = [] { return now_ns_; };
  clock_.thread_cpu_ns = [] { return now_ns_; };
  clock_.realtime_ns = [] { return now_ns_ + 1'700'000'000 * kNsPerSecond; };
}

void TapTest::Open(uint64_t ring_bytes) {
  EXPECT_TRUE(gate_.ClaimThread());
  gate_.ThreadStarting();
  tap_ = std::make_unique<Tap>();
  ASSERT_TRUE(
      tap_->Open(&gate_, &worker_facts_, &library_, &clock_, agent_.path().c_str(), ring_bytes));
}

void TapTest::InitAndConnect() {
  Open();
  gate_.SetInitialised(false, false);
  Step();
  ASSERT_TRUE(agent_.Accept());
  ASSERT_EQ(State(), TapState::kIdle);
  agent_.ReadStatuses();
}

void TapTest::StartCapture(uint8_t capture) {
  agent_.Send(TapTestStart(capture).Packet());
  Step();
  ASSERT_EQ(State(), TapState::kStreaming);
}

void TapTest::CallAsApp(RuntimeGate::Claim claim, const std::function<void()>& call) {
  std::atomic<bool> done = false;  // at once, where the tap holds nothing
  std::thread application([&] {
    gate_.AcquireForApp(claim, 0);
    call();
    gate_.ReleaseFromApp(claim);
    done = true;
  });
  while (gate_.waiting().load() == 0 && !done) std::this_thread::yield();  // tidy: poll
  Step();
  application.join();
  Step();
}

std::vector<TapTestRecord> TapTest::ReadOfType(TapRecordType type) {
  std::vector<TapTestRecord> records = agent_.Read();
  std::erase_if(records, [type](const TapTestRecord& record) {
    return record.header.type != static_cast<uint16_t>(type);
  });
  return records;
}

}  // namespace neurontrace::tap
