// SPDX-License-Identifier: Apache-2.0
#include "agent/triggers/file_looker.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace neurontrace {
namespace {

constexpr int kReadsAtOnce = 64;

std::string PathOf(const std::string& directory, const std::string& name) {
  return directory == "/" ? "/" + name : directory + "/" + name;
}

bool Exists(const std::string& path) {
  struct stat about = {};
  return lstat(path.c_str(), &about) == 0;
}

}  // namespace

FileLooker::FileLooker(TaskRunner& runner, std::function<void(const std::string&)> appeared)
    : runner_(runner),
      appeared_(std::move(appeared)),
      inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      self_(std::make_shared<FileLooker*>(this)) {
  if (inotify_.valid()) runner_.AddReadableWatch(inotify_.get(), [this] { TakeNews(); });
}

FileLooker::~FileLooker() {
  if (inotify_.valid()) runner_.RemoveReadableWatch(inotify_.get());
}

void FileLooker::SetPaths(const std::vector<std::string>& paths) {
  std::map<std::string, Directory> next;
  for (const std::string& path : paths) {
    const size_t slash = path.rfind('/');
    const std::string directory = slash == 0 ? "/" : path.substr(0, slash);
    const std::string name = path.substr(slash + 1);
    Directory& entry = next[directory];
    const auto before = directories_.find(directory);
    if (before != directories_.end()) entry.watch = before->second.watch;
    const bool is_known = before != directories_.end() && before->second.files.contains(name);
    entry.files[name] = is_known ? before->second.files.at(name) : Exists(path);
  }
  for (const auto& [directory, entry] : directories_) {
    if (!next.contains(directory) && entry.watch >= 0) {
      inotify_rm_watch(inotify_.get(), entry.watch);
    }
  }
  directories_ = std::move(next);
  Look();
}

void FileLooker::LookLater() {
  if (directories_.empty() || std::exchange(look_scheduled_, true)) return;
  runner_.PostDelayedTask(
      [weak = std::weak_ptr<FileLooker*>(self_)] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        (*self)->look_scheduled_ = false;
        (*self)->Look();
      },
      kLookNs);
}

void FileLooker::Found(const std::string& directory, const std::string& name) {
  const auto entry = directories_.find(directory);
  const auto file = entry->second.files.find(name);
  if (file == entry->second.files.end() || std::exchange(file->second, true)) return;
  appeared_(PathOf(directory, name));
}

void FileLooker::Look() {
  for (auto& [directory, entry] : directories_) {
    // A directory that was replaced has another inode, and is watched anew: the same watch stays
    // the same.
    if (inotify_.valid()) {
      entry.watch =
          inotify_add_watch(inotify_.get(), directory.c_str(),
                            IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR);
    }
    for (auto& [name, is_there] : entry.files) {
      const bool exists = Exists(PathOf(directory, name));
      if (exists) Found(directory, name);
      is_there = exists;
    }
  }
  LookLater();
}

void FileLooker::TakeNews() {
  alignas(inotify_event) char buffer[8'192];
  bool overflowed = false;
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const ssize_t size = read(inotify_.get(), buffer, sizeof buffer);
    if (size <= 0) break;
    for (ssize_t at = 0; at < size;) {
      inotify_event event = {};
      std::memcpy(&event, buffer + at, sizeof event);
      const std::string name =
          event.len == 0 ? std::string() : std::string(buffer + at + sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
      overflowed = overflowed || (event.mask & IN_Q_OVERFLOW) != 0;
      for (auto& [directory, entry] : directories_) {
        const auto file = entry.files.find(name);
        if (entry.watch != event.wd || file == entry.files.end()) continue;
        if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) Found(directory, name);
        if ((event.mask & (IN_DELETE | IN_MOVED_FROM)) != 0) file->second = false;
      }
    }
  }
  if (overflowed) Look();
}

}  // namespace neurontrace
