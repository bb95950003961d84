// SPDX-License-Identifier: Apache-2.0
// A bad network for tests, in one process: makes a network namespace of its own, joins it to the
// namespace it was started in by two TUN devices, and carries the IP packets between them late, out
// of order, twice or not at all. TCP on both sides is the kernel's: it retransmits, backs off and
// times out as on a real network.
//
//   bad_link NUMBER SEED     near end 10.77.NUMBER.1 here, far end 10.77.NUMBER.2 in the new
//   namespace
//
// Prints "link PID" when it carries packets; /proc/PID/ns/net is the far namespace. Lines on stdin
// change the link at once: "loss 0.05", "duplicate 0.01", "delay_us 20000", "near_us 3000" (more
// delay, of what comes to the near end alone), "jitter_us 5000" (which reorders), "cut 1". The line
// "count" is answered with the packets carried, dropped and twice. The end of stdin ends it, and
// the namespace goes with it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <queue>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace neurontrace {
namespace {

constexpr size_t kPacketBytesMax = 65'536;
constexpr size_t kPacketsMax = 20'000;  // on their way; beyond: dropped, as by a full router

uint64_t NowUs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "bad_link: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

ifreq Request(const std::string& device) {
  ifreq request = {};
  std::strncpy(request.ifr_name, device.c_str(), IFNAMSIZ - 1);
  return request;
}

void SetAddress(int socket, const std::string& device, unsigned long call,
                const std::string& address) {
  ifreq request = Request(device);
  auto* const to = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  to->sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &to->sin_addr);
  if (ioctl(socket, call, &request) != 0) Fail("address of a device");
}

void SetUp(int socket, const std::string& device) {
  ifreq request = Request(device);
  if (ioctl(socket, SIOCGIFFLAGS, &request) != 0) Fail("flags of a device");
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  if (ioctl(socket, SIOCSIFFLAGS, &request) != 0) Fail("flags of a device");
}

// A TUN device in the present namespace with a point-to-point address, up.
int OpenDevice(const std::string& device, const std::string& own, const std::string& peer) {
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) Fail("/dev/net/tun");
  ifreq request = Request(device);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(fd, TUNSETIFF, &request) != 0) Fail("TUN device");
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  SetAddress(socket, device, SIOCSIFADDR, own);
  SetAddress(socket, device, SIOCSIFDSTADDR, peer);
  SetUp(socket, device);
  close(socket);
  return fd;
}

struct Packet {
  uint64_t due_us;
  uint64_t number;  // equal moments keep their order
  int to;
  std::vector<char> bytes;
  bool operator<(const Packet& other) const {
    return std::pair(due_us, number) > std::pair(other.due_us, other.number);
  }
};

class Link {
 public:
  Link(int near, int far, uint64_t seed) : near_(near), far_(far), random_(seed) {}

  void Run() {
    while (true) {
      pollfd polls[] = {{near_, POLLIN, 0}, {far_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
      const timespec left = Left();
      const bool is_due = !packets_.empty();
      if (ppoll(polls, 3, is_due ? &left : nullptr, nullptr) < 0 && errno != EINTR) Fail("poll");
      if (polls[0].revents != 0) Take(near_, far_);
      if (polls[1].revents != 0) Take(far_, near_);
      if (polls[2].revents != 0 && !ReceiveCommands()) return;
      Deliver();
    }
  }

 private:
  bool Chance(const char* setting) {
    return std::uniform_real_distribution<>(0, 1)(random_) < settings_[setting];
  }

  // Until the next packet is due, if there is one.
  timespec Left() const {
    const uint64_t now = NowUs();
    const uint64_t due = packets_.empty() ? now : std::max(packets_.top().due_us, now);
    const auto left = static_cast<int64_t>(due - now);
    return {.tv_sec = left / 1'000'000, .tv_nsec = left % 1'000'000 * 1000};
  }

  void Take(int from, int to) {
    char bytes[kPacketBytesMax];
    ssize_t size = 0;
    while ((size = read(from, bytes, sizeof bytes)) > 0) {
      if (settings_["cut"] > 0 || Chance("loss") || packets_.size() >= kPacketsMax) {
        ++dropped_;
        continue;
      }
      Enqueue(to, bytes, static_cast<size_t>(size));
      if (!Chance("duplicate")) continue;
      ++twice_;
      Enqueue(to, bytes, static_cast<size_t>(size));
    }
  }

  void Enqueue(int to, const char* bytes, size_t size) {
    const double jitter = std::uniform_real_distribution<>(0, 1)(random_) * settings_["jitter_us"];
    const double more = to == near_ ? settings_["near_us"] : 0;
    const auto late = static_cast<uint64_t>(settings_["delay_us"] + more + jitter);
    packets_.push({NowUs() + late, next_++, to, {bytes, bytes + size}});
  }

  void Deliver() {
    const uint64_t now = NowUs();
    while (!packets_.empty() && packets_.top().due_us <= now) {
      const Packet& packet = packets_.top();
      // What was under way when the link was cut is lost with it.
      const bool carried =
          settings_["cut"] == 0 && write(packet.to, packet.bytes.data(), packet.bytes.size()) > 0;
      ++(carried ? carried_ : dropped_);
      packets_.pop();
    }
  }

  bool ReceiveCommands() {
    char bytes[4096];
    const ssize_t size = read(STDIN_FILENO, bytes, sizeof bytes);
    if (size <= 0) return false;
    commands_.append(bytes, static_cast<size_t>(size));
    for (size_t end = 0; (end = commands_.find('\n')) != std::string::npos;) {
      std::istringstream line(commands_.substr(0, end));
      commands_.erase(0, end + 1);
      std::string name;
      double value = 0;
      line >> name >> value;
      if (name == "count") {
        std::cout << "carried " << carried_ << " dropped " << dropped_ << " twice " << twice_
                  << "\n"
                  << std::flush;
      } else {
        settings_[name] = value;
      }
    }
    return true;
  }

  const int near_;
  const int far_;
  std::mt19937_64 random_;
  std::map<std::string, double> settings_;
  std::priority_queue<Packet> packets_;
  std::string commands_;
  uint64_t next_ = 0;
  uint64_t carried_ = 0;
  uint64_t dropped_ = 0;
  uint64_t twice_ = 0;
};

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bad_link NUMBER SEED\n");
    return 2;
  }
  const std::string number = argv[1];
  const std::string near = "10.77." + number + ".1";
  const std::string far = "10.77." + number + ".2";
  const std::string device = "ntlink" + number;
  const int near_fd = neurontrace::OpenDevice(device, near, far);
  if (unshare(CLONE_NEWNET) != 0) neurontrace::Fail("a network namespace");
  const int far_fd = neurontrace::OpenDevice(device, far, near);
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  neurontrace::SetUp(socket, "lo");
  close(socket);
  std::printf("link %d\n", getpid());
  std::fflush(stdout);
  neurontrace::Link(near_fd, far_fd, std::strtoull(argv[2], nullptr, 10)).Run();
  return 0;
}
