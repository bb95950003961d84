// SPDX-License-Identifier: Apache-2.0
#include "tap/shared_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace neurontrace::tap {

namespace {

// MFD_NOEXEC_SEAL, since Linux 6.3; older kernels return EINVAL. Without it newer kernels may warn
// or refuse (vm.memfd_noexec).
constexpr unsigned kMfdNoexecSeal = 0x0008;

// Returns a new memfd of no bytes that can be sealed, or a negative value.
int CreateMemfd(const char* name) {
  // By system call, as glibc has the function since 2.27 only.
  const auto create = [name](unsigned flags) {
    return static_cast<int>(syscall(SYS_memfd_create, name, flags));
  };
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = create(flags | kMfdNoexecSeal);
  return fd < 0 && errno == EINVAL ? create(flags) : fd;
}

// Fills the constant fields and the state of a header whose bytes are all zero. No agent has the
// file yet.
void FillHeader(TapBufferHeader* header, uint64_t ring_bytes, uint64_t realtime_ns) {
  header->format_version = kTapBufferFormatVersion;
  header->header_bytes = kTapHeaderBytes;
  header->facts_offset = kTapFactsOffset;
  header->facts_bytes = kTapFactsBytes;
  header->ring_offset = kTapRingOffset;
  header->ring_bytes = ring_bytes;
  header->claimed_pid = static_cast<uint32_t>(getpid());
  header->claimed_uid = static_cast<uint32_t>(getuid());
  header->process_start_ticks = ProcessStartTicks();
  strncpy(header->tap_version, NEURONTRACE_VERSION, sizeof header->tap_version - 1);
  header->created_realtime_ns = realtime_ns;
  header->state.store(static_cast<uint32_t>(TapState::kNotInitialised));
  // Last: a file with the magic number has a complete header.
  header->magic = kTapBufferMagic;
}

}  // namespace

uint64_t RingBytesFromText(const char* text) {
  // strtoull would accept a sign and blanks.
  if (text == nullptr || text[0] < '0' || text[0] > '9') return kTapRingBytesDefault;
  char* end = nullptr;
  const uint64_t wanted = strtoull(text, &end, 10);
  if (*end != '\0' || wanted == 0) return kTapRingBytesDefault;
  uint64_t bytes = kTapRingBytesMin;
  while (bytes < wanted && bytes < kTapRingBytesMax) bytes *= 2;
  return bytes;
}

uint8_t* MapSealedMemfd(const char* name, uint64_t bytes, int* fd) {
  const int created = CreateMemfd(name);
  if (created < 0) return nullptr;
  void* base = MAP_FAILED;
  // The seals are part of the protection of both sides: a file that shrinks would raise SIGBUS in
  // the other process.
  if (ftruncate(created, static_cast<off_t>(bytes)) == 0 &&
      fcntl(created, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, created, 0);
  }
  if (base == MAP_FAILED) {
    close(created);
    return nullptr;
  }
  // A forked child must neither write to the buffer nor keep its memory alive.
  madvise(base, bytes, MADV_DONTFORK);
  *fd = created;
  return static_cast<uint8_t*>(base);
}

bool SharedBuffer::Create(uint64_t ring_bytes, uint64_t realtime_ns) {
  int fd = -1;
  uint8_t* const base = MapSealedMemfd("neurontrace_tap", kTapRingOffset + ring_bytes, &fd);
  if (base == nullptr) return false;
  fd_ = fd;
  base_ = base;
  ring_bytes_ = ring_bytes;
  FillHeader(header(), ring_bytes, realtime_ns);
  return true;
}

void SharedBuffer::Destroy() {
  if (base_ != nullptr) munmap(base_, total_bytes());
  if (fd_ >= 0) close(fd_);
  *this = SharedBuffer();
}

void SharedBuffer::ReleaseRingPages() {
  // If the kernel refuses, the pages stay, which costs memory and nothing else.
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kTapRingOffset),
            static_cast<off_t>(ring_bytes_));
}

uint64_t ProcessStartTicks() {
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  // The second field is the program's name in parentheses and may contain anything, including
  // blanks and parentheses.
  const char* field = strrchr(text, ')');
  if (field == nullptr) return 0;
  for (int number = 2; number < 22; ++number) {
    field = strchr(field + 1, ' ');
    if (field == nullptr) return 0;
  }
  return strtoull(field + 1, nullptr, 10);
}

}  // namespace neurontrace::tap
