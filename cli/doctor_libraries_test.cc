// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/elf_test_support.h"
#include "cli/fake_host_view.h"

namespace neurontrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTapPath[] = "/lib/libneurontrace_tap.so";

class DoctorLibrariesTest : public testing::Test {
 protected:
  FakeElf tap_{.symbols = {"nrt_init", "nrt_close"},
               .versions = {"GLIBC_2.34"},
               .version_constant = "0.1.0"};
  FakeElf runtime_{.symbols = {"nrt_init", "nrt_close", "nrt_sys_trace_config_allocate",
                               "nrt_sys_trace_config_free", "nrt_sys_trace_start",
                               "nrt_sys_trace_stop", "nrt_sys_trace_fetch_events",
                               "nrt_sys_trace_buffer_free"}};
  std::vector<Finding> Tap() {
    host_.PutFile(kTapPath, tap_.Bytes());
    return CheckTap(host_, kTapPath, "0.1.0");
  }
  Finding Runtime() {
    host_.PutFile("/opt/aws/neuron/lib/libnrt.so.1", runtime_.Bytes());
    return CheckRuntime(host_, RuntimePlaces(""), true);
  }
  FakeHostView host_;
};

TEST_F(DoctorLibrariesTest, ASoundTapIsGoodInEveryRespect) {
  const auto findings = Tap();
  ASSERT_EQ(findings.size(), 3u);
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.severity, Severity::kGood) << finding.what;
  }
}

TEST_F(DoctorLibrariesTest, ReportsTapErrors) {
  EXPECT_THAT(CheckTap(host_, "", "0.1.0")[0].what, HasSubstr("neither beside the programs"));
  EXPECT_EQ(CheckTap(host_, "/none.so", "0.1.0")[0].severity, Severity::kBroken);
  host_.PutFile("/text.so", "no library");
  EXPECT_THAT(CheckTap(host_, "/text.so", "0.1.0")[0].what, HasSubstr("not an ELF file"));
  tap_.machine = EM_PPC64;
  EXPECT_THAT(Tap()[0].what, HasSubstr("a different processor architecture"));
  tap_ = FakeElf{.symbols = {"main"}};
  EXPECT_THAT(Tap()[0].what, HasSubstr("it is not the tap"));
}

TEST_F(DoctorLibrariesTest, AnotherReleaseOfTheTapIsAWarning) {
  tap_.version_constant = "0.0.9";
  EXPECT_EQ(Tap()[1].severity, Severity::kWarning);
  EXPECT_THAT(Tap()[1].what, HasSubstr("0.0.9, but this command is 0.1.0"));
  tap_.version_constant = "";
  EXPECT_EQ(Tap()[1].severity, Severity::kWarning);
}

TEST_F(DoctorLibrariesTest, TheCLibraryHasToBeNewEnough) {
  host_.glibc_version = "2.31";
  EXPECT_EQ(Tap()[2].severity, Severity::kBroken);
  EXPECT_THAT(Tap()[2].what, HasSubstr("has 2.31, but the tap needs 2.34"));
  host_.glibc_version = "2.36";
  tap_.versions = {"GLIBC_2.38"};
  EXPECT_EQ(Tap()[2].severity, Severity::kBroken);
  host_.glibc_version = "";
  EXPECT_THAT(Tap()[2].what, HasSubstr("not glibc"));
}

TEST_F(DoctorLibrariesTest, TheRuntimeHasToHaveWhatTheTapCalls) {
  EXPECT_EQ(Runtime().severity, Severity::kGood);
  std::erase(runtime_.symbols, "nrt_sys_trace_fetch_events");
  EXPECT_EQ(Runtime().severity, Severity::kBroken);
  EXPECT_THAT(Runtime().what, HasSubstr("lacks nrt_sys_trace_fetch_events"));
  host_.PutFile("/opt/aws/neuron/lib/libnrt.so.1",
                "\x7f"
                "ELF");
  EXPECT_EQ(CheckRuntime(host_, RuntimePlaces(""), true).severity, Severity::kBroken);
}

TEST_F(DoctorLibrariesTest, ReadsRuntimeVersionFromFileName) {
  host_.links["/opt/aws/neuron/lib/libnrt.so.1"] = "/opt/aws/neuron/lib/libnrt.so.2.22.4.0";
  EXPECT_EQ(Runtime().what,
            "/opt/aws/neuron/lib/libnrt.so.1 (/opt/aws/neuron/lib/libnrt.so.2.22.4.0) has every "
            "function that the tap calls");
  runtime_.symbols.pop_back();
  EXPECT_THAT(Runtime().what, HasSubstr("(/opt/aws/neuron/lib/libnrt.so.2.22.4.0) lacks nrt_"));
}

TEST_F(DoctorLibrariesTest, NoRuntimeMattersWhereThereAreDevices) {
  EXPECT_EQ(CheckRuntime(host_, RuntimePlaces(""), true).severity, Severity::kWarning);
  EXPECT_EQ(CheckRuntime(host_, RuntimePlaces(""), false).severity, Severity::kNote);
}

TEST_F(DoctorLibrariesTest, TheLibraryPathComesFirst) {
  const auto places = RuntimePlaces("/a::/b");
  EXPECT_THAT(std::vector<std::string>(places.begin(), places.begin() + 3),
              ElementsAre("/a/libnrt.so.1", "/b/libnrt.so.1", "/opt/aws/neuron/lib/libnrt.so.1"));
}

}  // namespace
}  // namespace neurontrace::cli
