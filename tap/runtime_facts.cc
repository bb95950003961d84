// SPDX-License-Identifier: Apache-2.0
#include "tap/runtime_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace neurontrace::tap {

namespace {

constexpr size_t kCommandLineBytesMax = 4096;

uint32_t JoinEventTypes(const NrtLibrary& library, char* text, size_t capacity) {
  if (library.get_event_types == nullptr) return 0;
  const char** types = nullptr;
  size_t count = 0;
  if (library.get_event_types(&types, &count) != kNrtSuccess) return 0;
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t bytes = strlen(types[i]);
    if (bytes + 1 > capacity - used) break;
    if (used > 0) text[used++] = ',';
    memcpy(text + used, types[i], bytes);
    used += bytes;
  }
  FreeEventTypes(library, types, count);
  return static_cast<uint32_t>(used);
}

}  // namespace

void RuntimeFacts::Gather(const NrtLibrary& library) {
  has_version = library.get_version != nullptr &&
                library.get_version(&version, sizeof version) == kNrtSuccess;
  has_instance = library.get_instance_info != nullptr &&
                 library.get_instance_info(&instance, sizeof instance) == kNrtSuccess;
  has_visible_cores = library.get_visible_vnc_count != nullptr &&
                      library.get_visible_vnc_count(&visible_cores) == kNrtSuccess;
  has_total_cores = library.get_total_vnc_count != nullptr &&
                    library.get_total_vnc_count(&total_cores) == kNrtSuccess;
  event_types_bytes = JoinEventTypes(library, event_types, sizeof event_types);
  complete = true;
}

void RuntimeFacts::AddTo(FactsWriter* writer) const {
  if (has_version) {
    char text[256];
    snprintf(text, sizeof text, "%llu.%llu.%llu.%llu %.*s",
             static_cast<unsigned long long>(version.major),
             static_cast<unsigned long long>(version.minor),
             static_cast<unsigned long long>(version.patch),
             static_cast<unsigned long long>(version.maintenance),
             static_cast<int>(sizeof version.detail), version.detail);
    writer->Add("runtime.version", text);
  }
  if (has_visible_cores) writer->AddNumber("runtime.visible_cores", visible_cores);
  if (has_total_cores) writer->AddNumber("runtime.total_cores", total_cores);
  if (has_instance) {
    writer->AddNumber("instance.family", instance.family);
    writer->AddNumber("instance.size", instance.size);
    writer->Add("instance.arch", instance.arch_name,
                strnlen(instance.arch_name, sizeof instance.arch_name));
    writer->Add("instance.device_revision", instance.device_revision,
                strnlen(instance.device_revision, sizeof instance.device_revision));
  }
  if (event_types_bytes > 0) writer->Add("runtime.event_types", event_types, event_types_bytes);
}

void AddProcessFacts(FactsWriter* writer) {
  char text[kCommandLineBytesMax];
  const ssize_t path_bytes = readlink("/proc/self/exe", text, sizeof text);
  if (path_bytes > 0) writer->Add("process.executable", text, static_cast<uint64_t>(path_bytes));
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t bytes = read(fd, text, sizeof text);
  close(fd);
  if (bytes <= 0) return;
  if (text[bytes - 1] == '\0') --bytes;
  for (ssize_t i = 0; i < bytes; ++i) {
    if (text[i] == '\0') text[i] = ' ';
  }
  writer->Add("process.command_line", text, static_cast<uint64_t>(bytes));
}

}  // namespace neurontrace::tap
