// SPDX-License-Identifier: Apache-2.0
// The library as NVTX meets it: by the table of callbacks. What it records is read from the shared
// buffer, without an agent.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "annotate/annotator.h"
#include "annotate/nvtx_abi.h"

extern "C" int InitializeInjectionNvtx2(neurontrace::annotate::NvtxGetExportTable);
extern "C" int InitializeInjectionNvtxExtension(void*);

namespace neurontrace::annotate {
namespace {

// The function pointers of one copy of NVTX, null before a tool sets them.
NvtxFunction core_functions[16];
NvtxFunction core2_functions[16];
NvtxFunction* core_places[16];
NvtxFunction* core2_places[16];
unsigned core2_size = 16;

int GetTable(int module, NvtxTable* table, unsigned* size) {
  if (module != kNvtxModuleCore && module != kNvtxModuleCore2) return 0;
  const bool is_core = module == kNvtxModuleCore;
  for (int i = 0; i < 16; ++i) {
    core_places[i] = &core_functions[i];
    core2_places[i] = &core2_functions[i];
  }
  *table = is_core ? core_places : core2_places;
  *size = is_core ? 16 : core2_size;
  return 1;
}
NvtxCallbacks callbacks = {sizeof callbacks, &GetTable};
const void* GetExports(uint32_t table) {
  return table == kNvtxCallbacksTable ? &callbacks : nullptr;
}

template <typename Function>
Function Core(NvtxCore id) {
  return reinterpret_cast<Function>(core_functions[static_cast<unsigned>(id)]);
}
template <typename Function>
Function Core2(NvtxCore2 id) {
  return reinterpret_cast<Function>(core2_functions[static_cast<unsigned>(id)]);
}

// A record of any ring, with its texts.
struct Read {
  AnnotationRecord record;
  std::string domain;
  std::string category;
  std::string message;
};

class NvtxInjectionTest : public ::testing::Test {
 protected:
  NvtxInjectionTest() {
    // The first annotation would start the thread, which looks for an agent. Tests switch the
    // recording by themselves, which also shuts that gate.
    EXPECT_TRUE(annotator_.CreateBuffer());
    annotator_.SetRecording(true);
    EXPECT_EQ(InitializeInjectionNvtx2(&GetExports), 1);
    ReadAll();
  }
  ~NvtxInjectionTest() override { annotator_.SetRecording(false); }

  AnnotationRingHeader& ring(uint32_t index) {
    return *reinterpret_cast<AnnotationRingHeader*>(annotator_.buffer() + kAnnotationHeaderBytes +
                                                    index * kAnnotationRingSpan);
  }
  AnnotationBufferHeader& header() {
    return *reinterpret_cast<AnnotationBufferHeader*>(annotator_.buffer());
  }

  // Returns what was recorded since the last call, ring by ring.
  std::vector<Read> ReadAll() {
    std::vector<Read> all;
    for (uint32_t i = 0; i < kAnnotationRings; ++i) {
      const char* const data = reinterpret_cast<char*>(&ring(i)) + kAnnotationRingHeaderBytes;
      uint64_t at = ring(i).read_pos.load();
      while (at < ring(i).write_pos.load()) {
        const auto copy = [&](void* to, size_t from, size_t bytes) {
          for (size_t b = 0; b < bytes; ++b) {
            static_cast<char*>(to)[b] = data[(at + from + b) % kAnnotationRingBytes];
          }
        };
        Read& read = all.emplace_back();
        copy(&read.record, 0, sizeof read.record);
        size_t from = sizeof read.record;
        const auto text = [&](std::string& to, size_t bytes) {
          to.resize(bytes);
          copy(to.data(), from, bytes);
          from += bytes;
        };
        text(read.domain, read.record.domain_bytes);
        text(read.category, read.record.category_bytes);
        text(read.message, read.record.message_bytes);
        EXPECT_EQ(read.record.length, from);
        at += AnnotationRecordSpan(read.record.length);
      }
      ring(i).read_pos.store(at);
    }
    return all;
  }

  static NvtxAttributes Attributes(const char* message) {
    NvtxAttributes attributes = {};
    attributes.version = 3;
    attributes.size = sizeof attributes;
    attributes.message_type = kNvtxMessageAscii;
    attributes.message.ascii = message;
    return attributes;
  }

  Annotator& annotator_ = ProcessAnnotator();
};

TEST_F(NvtxInjectionTest, PushAndPopNestPerThreadAndDomain) {
  const auto push = Core<int (*)(const char*)>(NvtxCore::kRangePushA);
  const auto pop = Core<int (*)()>(NvtxCore::kRangePop);
  EXPECT_EQ(push("outer"), 0);
  EXPECT_EQ(push("inner"), 1);
  void* const io =
      const_cast<void*>(Core2<const void* (*)(const char*)>(NvtxCore2::kDomainCreateA)("io"));
  const NvtxAttributes read = Attributes("read");
  using PushEx = int (*)(void*, const NvtxAttributes*);
  EXPECT_EQ(Core2<PushEx>(NvtxCore2::kDomainRangePushEx)(io, &read), 0);
  EXPECT_EQ(pop(), 1);
  EXPECT_EQ(pop(), 0);
  EXPECT_EQ(pop(), kNvtxNoPushPopTracking) << "more pops than pushes";
  EXPECT_EQ(Core2<int (*)(void*)>(NvtxCore2::kDomainRangePop)(io), 0);
  const std::vector<Read> all = ReadAll();
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(all[0].message, "outer");
  EXPECT_EQ(all[1].record.level, 1);
  EXPECT_EQ(all[2].domain, "io");
  EXPECT_EQ(all[2].record.level, 0);
  EXPECT_EQ(all[3].record.type, static_cast<uint8_t>(AnnotationType::kPop));
  EXPECT_EQ(all[5].record.level, kAnnotationNoLevel);
  EXPECT_EQ(all[6].record.domain, all[2].record.domain);
  for (const Read& one : all) {
    EXPECT_EQ(one.record.thread_id, static_cast<uint32_t>(gettid()));
    EXPECT_GE(one.record.realtime_ns, all[0].record.realtime_ns);
  }
}

TEST_F(NvtxInjectionTest, AttributesAreRecorded) {
  Core<void (*)(uint32_t, const char*)>(NvtxCore::kNameCategoryA)(5, "phase");
  NvtxAttributes attributes = Attributes("loss");
  attributes.category = 5;
  attributes.color_type = kNvtxColorArgb;
  attributes.color = 0xff0000ff;
  attributes.payload_type = kNvtxPayloadFloat;
  attributes.payload.f32 = 1.5f;
  const auto mark = Core<void (*)(const NvtxAttributes*)>(NvtxCore::kMarkEx);
  mark(&attributes);
  attributes.payload_type = kNvtxPayloadInt32;
  attributes.payload.i32 = -3;
  mark(&attributes);
  attributes.payload_type = 0x10002;
  mark(&attributes);
  const std::vector<Read> all = ReadAll();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].category, "phase");
  EXPECT_EQ(all[0].record.category, 5u);
  EXPECT_EQ(all[0].record.color, 0xff0000ffu);
  EXPECT_NE(all[0].record.flags & kAnnotationFlagColor, 0);
  double wide = 0;
  memcpy(&wide, &all[0].record.payload, sizeof wide);
  EXPECT_EQ(wide, 1.5);
  EXPECT_EQ(static_cast<int64_t>(all[1].record.payload), -3);
  EXPECT_EQ(all[1].record.payload_type, static_cast<uint8_t>(AnnotationPayload::kInt));
  EXPECT_EQ(all[2].record.payload_type, static_cast<uint8_t>(AnnotationPayload::kNone));
  EXPECT_NE(all[2].record.flags & kAnnotationFlagPayloadUnknown, 0);
}

TEST_F(NvtxInjectionTest, MessagesOfEveryKindAreCopiedDuringTheCall) {
  const auto mark = Core<void (*)(const NvtxAttributes*)>(NvtxCore::kMarkEx);
  std::string text(5'000, 'm');
  NvtxAttributes attributes = Attributes(text.c_str());
  mark(&attributes);
  text.assign(text.size(), 'n');
  attributes.message_type = kNvtxMessageWide;
  attributes.message.wide = L"wide";
  mark(&attributes);
  attributes.message_type = kNvtxMessageRegistered;
  const void* const registered = Core2<const void* (*)(void*, const char*)>(
      NvtxCore2::kDomainRegisterStringA)(nullptr, "registered");
  attributes.message.registered = registered;
  mark(&attributes);
  attributes.message.registered = nullptr;
  mark(&attributes);
  attributes.size = 8;
  mark(&attributes);
  mark(nullptr);
  const std::vector<Read> all = ReadAll();
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].message, std::string(kAnnotationMessageBytesMax, 'm'));
  EXPECT_NE(all[0].record.flags & kAnnotationFlagMessageCut, 0);
  EXPECT_EQ(all[1].message, "wide");
  EXPECT_EQ(all[2].message, "registered");
  EXPECT_EQ(all[3].message, NameTable::kOtherText);
  EXPECT_EQ(all[4].message, "");
  EXPECT_EQ(all[5].message, "");
  free(const_cast<void*>(registered));  // NVTX itself has no call for it
}

TEST_F(NvtxInjectionTest, RangesOfTheProcessEndOnAnyThread) {
  const auto start = Core<uint64_t (*)(const char*)>(NvtxCore::kRangeStartA);
  const auto end = Core<void (*)(uint64_t)>(NvtxCore::kRangeEnd);
  const uint64_t one = start("one");
  const uint64_t two = start("two");
  EXPECT_NE(one, two);
  std::thread([&] { end(one); }).join();
  end(0);
  const std::vector<Read> all = ReadAll();
  ASSERT_EQ(all.size(), 3u) << "a range without an id has no end";
  EXPECT_EQ(all[0].record.range_id, one);
  EXPECT_EQ(all[2].record.range_id, one);
  EXPECT_NE(all[2].record.thread_id, all[0].record.thread_id);
}

TEST_F(NvtxInjectionTest, AFullRingDropsTheNewestAndCountsThem) {
  const auto mark = Core<void (*)(const char*)>(NvtxCore::kMarkA);
  mark("first");
  const std::string text(400, 'x');
  const size_t fits = kAnnotationRingBytes / (sizeof(AnnotationRecord) + text.size());
  for (size_t i = 0; i < fits + 10; ++i) mark(text.c_str());
  uint64_t dropped = 0;
  for (uint32_t i = 0; i < kAnnotationRings; ++i) dropped += ring(i).dropped.exchange(0);
  const std::vector<Read> all = ReadAll();
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(all.size() + dropped, fits + 11);
  EXPECT_EQ(all.front().message, "first");
  mark("after");
  ASSERT_EQ(ReadAll().size(), 1u);
}

TEST_F(NvtxInjectionTest, AHostileReadPositionOnlyCostsRecords) {
  const auto mark = Core<void (*)(const char*)>(NvtxCore::kMarkA);
  mark("finds the ring");
  ReadAll();
  for (uint32_t i = 0; i < kAnnotationRings; ++i) {
    const uint64_t position = ring(i).read_pos.load();
    ring(i).read_pos.store(position + (uint64_t{1} << 60));
    mark("ahead");
    ring(i).read_pos.store(position - (uint64_t{1} << 60));
    mark("behind");
    ring(i).read_pos.store(position);
  }
  for (const Read& read : ReadAll())
    EXPECT_TRUE(read.message == "ahead" || read.message == "behind");
  mark("after");
  ASSERT_EQ(ReadAll().size(), 1u);
}

TEST_F(NvtxInjectionTest, RingsOfEndedThreadsAreGivenToOthers) {
  const auto mark = Core<void (*)(const char*)>(NvtxCore::kMarkA);
  for (uint32_t i = 0; i < 2 * kAnnotationRings; ++i) std::thread([&] { mark("short"); }).join();
  EXPECT_EQ(ReadAll().size(), 2 * kAnnotationRings);
  EXPECT_EQ(header().dropped_without_ring.load(), 0u);
}

TEST_F(NvtxInjectionTest, NothingIsRecordedWhileIdle) {
  const auto push = Core<int (*)(const char*)>(NvtxCore::kRangePushA);
  annotator_.SetRecording(false);
  EXPECT_EQ(push("idle"), kNvtxNoPushPopTracking);
  EXPECT_EQ(Core<uint64_t (*)(const char*)>(NvtxCore::kRangeStartA)("idle"), 0u);
  EXPECT_TRUE(ReadAll().empty());
  annotator_.SetRecording(true);
  EXPECT_EQ(push("recorded"), 0);
  annotator_.SetRecording(false);
  annotator_.SetRecording(true);
  EXPECT_EQ(push("again"), 0) << "levels begin at zero in each recording";
  const std::vector<Read> all = ReadAll();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(all[0].record.recording, all[1].record.recording);
}

TEST_F(NvtxInjectionTest, AForkedChildDoesNotTouchTheParentsBuffer) {
  const auto mark = Core<void (*)(const char*)>(NvtxCore::kMarkA);
  mark("parent");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    annotator_.OnForkedChild();
    // A socket that nobody listens on: the first annotation starts the child's own thread.
    setenv("NEURONTRACE_AGENT_SOCKET", "/nonexistent/agent.sock", 1);
    mark("child");
    mark("child");
    _exit(annotator_.buffer() == nullptr ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  mark("parent again");
  EXPECT_EQ(ReadAll().size(), 2u);
}

TEST_F(NvtxInjectionTest, TablesOfOtherVersionsAreTaken) {
  memset(core2_functions, 0, sizeof core2_functions);
  core2_size = 3;
  EXPECT_EQ(InitializeInjectionNvtx2(&GetExports), 1);
  EXPECT_NE(core2_functions[static_cast<unsigned>(NvtxCore2::kDomainRangeStartEx)], nullptr);
  EXPECT_EQ(core2_functions[static_cast<unsigned>(NvtxCore2::kDomainRangeEnd)], nullptr);
  core2_size = 16;
  EXPECT_EQ(InitializeInjectionNvtx2(nullptr), 0);
  EXPECT_EQ(InitializeInjectionNvtx2([](uint32_t) -> const void* { return nullptr; }), 0);
  EXPECT_EQ(InitializeInjectionNvtxExtension(nullptr), 1);
}

}  // namespace
}  // namespace neurontrace::annotate
