// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/process_evidence.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "lib/base/unique_fd.h"
#include "lib/trace/pod_limits.h"

namespace neurontrace {
namespace {

// The name under which the driver registers its character devices (neuron_cdev.c), as PROC/devices
// lists it.
constexpr std::string_view kDriverName = "neuron";
// Lengths of a UID: a UUID with dashes, or the hash that the kubelet gives static pods.
constexpr size_t kUuidBytes = 36;
constexpr size_t kHashBytes = 32;  // the UID of a static pod

// O_NOFOLLOW and O_NONBLOCK cost nothing in /proc and keep a prepared directory from blocking this
// thread.
std::optional<std::string> ReadProcFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return std::nullopt;
  std::string text(limits::kPodProcFileBytesMax, '\0');
  size_t used = 0;
  while (used < text.size()) {
    const ssize_t size = read(fd.get(), text.data() + used, text.size() - used);
    if (size < 0) return std::nullopt;
    if (size == 0) break;
    used += static_cast<size_t>(size);
  }
  text.resize(used);
  return text;
}

// Removes and returns the text before `separator`, and the separator.
std::string_view TakePart(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// "kubepods-burstable-pod1234…_….slice" or "pod1234…-…"; empty for anything else.
std::string UidInGroup(std::string_view group) {
  if (group.ends_with(".slice")) group.remove_suffix(std::string_view(".slice").size());
  const size_t dash = group.rfind("-pod");
  if (dash != std::string_view::npos) group.remove_prefix(dash + 1);
  if (!group.starts_with("pod")) return {};
  std::string uid(group.substr(3));
  std::replace(uid.begin(), uid.end(), '_', '-');
  if (uid.size() == kHashBytes && std::all_of(uid.begin(), uid.end(), IsHex)) return uid;
  if (uid.size() != kUuidBytes) return {};
  for (size_t i = 0; i < uid.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash ? uid[i] != '-' : !IsHex(uid[i])) return {};
  }
  return uid;
}

}  // namespace

std::string PodUidOf(std::string_view cgroup) {
  std::string found;
  while (!cgroup.empty()) {
    std::string_view line = TakePart(cgroup, '\n');
    TakePart(line, ':');  // the hierarchy's number
    TakePart(line, ':');  // its controllers
    while (!line.empty()) {
      std::string uid = UidInGroup(TakePart(line, '/'));
      if (uid.empty()) continue;
      // Hierarchies of version 1 that disagree: nothing is certain then.
      if (!found.empty() && uid != found) return {};
      found = std::move(uid);
      break;
    }
  }
  return found;
}

ProcessReader::ProcessReader(std::string proc_root) : root_(std::move(proc_root)), files_(root_) {}

std::optional<uint32_t> ProcessReader::NeuronMajor() const {
  const auto text = ReadProcFile(root_ + "/devices");
  if (!text) return std::nullopt;
  for (std::string_view rest = *text; !rest.empty();) {
    std::string_view line = TakePart(rest, '\n');
    if (line == "Block devices:") break;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::string_view number = TakePart(line, ' ');
    uint32_t major = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), major);
    if (line == kDriverName && parsed.ec == std::errc() &&
        parsed.ptr == number.data() + number.size()) {
      return major;
    }
  }
  return std::nullopt;
}

std::optional<ProcessEvidence> ProcessReader::Read(const PodProcess& process,
                                                   std::optional<uint32_t> neuron_major) const {
  // The control group first: a process in no pod needs no look at its files.
  const auto cgroup = ReadProcFile(fmt::format("{}/{}/cgroup", root_, process.pid));
  if (!cgroup) return std::nullopt;
  ProcessEvidence evidence{.pod_uid = PodUidOf(*cgroup)};
  if (!evidence.pod_uid.empty() && neuron_major) {
    ReadDevices(process.pid, *neuron_major, evidence);
  }
  // Checked after reading: only then is it certain that everything read belongs to this process.
  if (files_.StartTimeTicks(process.pid) != process.start_time_ticks) return std::nullopt;
  return evidence;
}

void ProcessReader::ReadDevices(uint32_t pid, uint32_t neuron_major,
                                ProcessEvidence& evidence) const {
  const auto close = [](DIR* directory) { closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> files(
      opendir(fmt::format("{}/{}/fd", root_, pid).c_str()), close);
  if (files == nullptr) {
    evidence.files_are_readable = false;
    return;
  }
  for (size_t i = 0; i < limits::kPodOpenFilesMax; ++i) {
    const dirent* const entry = readdir(files.get());
    if (entry == nullptr) break;
    // By device numbers, as the name in the container is the container's to choose.
    struct stat about = {};
    if (fstatat(dirfd(files.get()), entry->d_name, &about, 0) != 0) continue;
    if (!S_ISCHR(about.st_mode) || major(about.st_rdev) != neuron_major) continue;
    if (minor(about.st_rdev) <= limits::kPodDeviceNumberMax) {
      evidence.devices.insert(minor(about.st_rdev));
    }
  }
}

}  // namespace neurontrace
