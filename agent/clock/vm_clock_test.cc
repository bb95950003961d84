// SPDX-License-Identifier: Apache-2.0
// The page of the hypervisor, as it may be and as it may not.
#include "agent/clock/vm_clock.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lib/base/fake_file_system.h"
#include "lib/base/fuzz_seed.h"

namespace neurontrace {
namespace {

std::string Page(uint32_t sequence, uint64_t marker) {
  std::string page(104, '\0');
  const uint32_t size = 4'096;
  const uint16_t version = 1;
  memcpy(page.data(), "VCLK", 4);
  memcpy(page.data() + 4, &size, sizeof(size));
  memcpy(page.data() + 8, &version, sizeof(version));
  page[10] = 1;
  memcpy(page.data() + 12, &sequence, sizeof(sequence));
  memcpy(page.data() + 16, &marker, sizeof(marker));
  return page;
}

TEST(VmClock, ReadsTheMarkerAsItChanges) {
  FakeFileSystem files;
  files.SetContents(VmClock::kPath, Page(2, 0x1122334455667788));
  auto clock = VmClock::Open(files, VmClock::kPath);
  ASSERT_TRUE(clock.ok()) << clock.status();
  EXPECT_EQ(clock->DisruptionMarker(), 0x1122334455667788u);
}

TEST(VmClock, ReturnsNothingDuringUpdate) {
  FakeFileSystem files;
  files.SetContents(VmClock::kPath, Page(3, 1));
  auto clock = VmClock::Open(files, VmClock::kPath);
  ASSERT_TRUE(clock.ok());
  EXPECT_EQ(clock->DisruptionMarker(), std::nullopt);
}

// Not a test: see lib/base/fuzz_seed.h. The first byte is the fuzzer's own.
TEST(VmClock, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  WriteFuzzSeed("clock_pages_fuzzer", "vm_clock", '\1' + Page(2, 7));
}

TEST(VmClock, RejectsInvalidPage) {
  FakeFileSystem files;
  EXPECT_TRUE(absl::IsNotFound(VmClock::Open(files, VmClock::kPath).status()));
  std::string other_version = Page(2, 1);
  other_version[8] = 2;
  std::string other_magic = Page(2, 1);
  other_magic[0] = 'X';
  for (const std::string& page : {std::string(), Page(2, 1).substr(0, 23), other_version,
                                  other_magic, std::string(104, '\0')}) {
    files.SetContents(VmClock::kPath, page);
    EXPECT_TRUE(absl::IsInvalidArgument(VmClock::Open(files, VmClock::kPath).status()));
  }
}

}  // namespace
}  // namespace neurontrace
