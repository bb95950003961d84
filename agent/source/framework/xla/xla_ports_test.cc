// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xla/xla_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "agent/source/neuron/tap/fake_proc.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";
constexpr const char* kAll = "00000000000000000000000000000000";
constexpr const char* kJaxlib = "/usr/lib/python3/site-packages/jaxlib/libjax_common.so";

// One process, 40, and its sockets.
class XlaPortsTest : public ::testing::Test {
 protected:
  XlaPortsTest() {
    PutProcess({}, {kJaxlib});
    for (const char* who : {"self", "40"}) {
      std::filesystem::create_directories(fmt::format("{}/{}/ns", proc_.root(), who));
      std::filesystem::create_symlink("net:[1]", fmt::format("{}/{}/ns/net", proc_.root(), who));
    }
    std::filesystem::create_directories(proc_.root() + "/40/net");
    std::filesystem::create_directories(proc_.root() + "/40/fd");
    PutTables("", "");
  }
  void PutProcess(const std::vector<std::string>& environment,
                  const std::vector<std::string>& mapped) {
    proc_.Put({.pid = 40, .mapped = mapped, .environment = environment});
  }
  void PutTables(const std::string& table, const std::string& table6) {
    proc_.Write(40, "net/tcp", kHeader + table);
    proc_.Write(40, "net/tcp6", kHeader + table6);
  }
  // Returns a line of the kernel's table. Gives the process the socket, unless it is another's.
  std::string Line(const std::string& address, uint16_t port, const char* state = "0A",
                   bool is_own = true) {
    const int inode = ++inodes_;
    if (is_own) {
      std::filesystem::create_symlink(fmt::format("socket:[{}]", inode),
                                      fmt::format("{}/40/fd/{}", proc_.root(), inode));
    }
    return fmt::format(
        "   0: {}:{:04X} {}:0000 {} 00000000:00000000 00:00000000 00000000  1000        0 {} 1 "
        "0000000000000000 100 0 0 10 0\n",
        address, port, address, state, inode);
  }
  std::string Found() const {
    const auto address = XlaPorts(proc_.root()).Find(40);
    return address.ok() ? *address : std::string(address.status().message());
  }

  FakeProc proc_;
  int inodes_ = 1'000;
};

TEST_F(XlaPortsTest, TheVariableNamesAPortOfTheProcess) {
  PutProcess({"NEURONTRACE_XLA_PORT=9012"}, {});
  PutTables(Line("0100007F", 9'011), Line(kAll, 9'012) + Line(kAll, 9'013));
  EXPECT_EQ(Found(), "ipv4:127.0.0.1:9012");
  PutProcess({"NEURONTRACE_XLA_PORT=9011"}, {});
  EXPECT_EQ(Found(), "ipv4:127.0.0.1:9011");
  PutTables("", Line("00000000000000000000000001000000", 9'011));
  EXPECT_EQ(Found(), "ipv6:%5B::1%5D:9011");
}

TEST_F(XlaPortsTest, NoVariableLeadsToAnotherServer) {
  PutProcess({"NEURONTRACE_XLA_PORT=9012"}, {kJaxlib});
  // The socket of another process, a connection, and an address of the network.
  PutTables(Line("0100000A", 9'012), Line(kAll, 9'012, "0A", /*is_own=*/false) + Line(kAll, 9'013) +
                                         Line(kAll, 9'012, "01"));
  EXPECT_THAT(Found(), HasSubstr("does not listen on port 9012"));
  for (const char* bad : {"0", "65536", "x", "9012 ", "10.0.0.1:80"}) {
    PutProcess({std::string("NEURONTRACE_XLA_PORT=") + bad}, {kJaxlib});
    EXPECT_THAT(Found(), HasSubstr("is no port")) << bad;
  }
}

TEST_F(XlaPortsTest, WithoutTheVariableItIsTheOnlyPortOfAProcessWithXla) {
  PutTables(Line("0100007F", 8'888), Line(kAll, 9'012));
  EXPECT_EQ(Found(), "ipv4:127.0.0.1:9012");
  PutProcess({}, {"/site-packages/_XLAC.cpython-311-x86_64-linux-gnu.so"});
  EXPECT_EQ(Found(), "ipv4:127.0.0.1:9012");
  PutProcess({}, {"/usr/lib/libpython3.11.so"});
  EXPECT_THAT(Found(), HasSubstr("neither jaxlib nor torch_xla"));
  PutProcess({}, {kJaxlib});
  PutTables("", Line(kAll, 9'012) + Line(kAll, 1'234));
  EXPECT_THAT(Found(), HasSubstr("listens on 2 ports (1234, 9012)"));
  EXPECT_THAT(Found(), HasSubstr("start the process with NEURONTRACE_XLA_PORT=PORT"));
  PutTables(Line("0100007F", 8'888), "");
  EXPECT_THAT(Found(), HasSubstr("listens on no port"));
}

TEST_F(XlaPortsTest, AProcessOutOfReachIsNotCalled) {
  PutTables("", Line(kAll, 9'012));
  std::filesystem::remove(proc_.root() + "/40/ns/net");
  std::filesystem::create_symlink("net:[2]", proc_.root() + "/40/ns/net");
  EXPECT_THAT(Found(), HasSubstr("network of its own"));
  proc_.Remove(40);
  EXPECT_THAT(Found(), HasSubstr("cannot look into the process"));
}

TEST_F(XlaPortsTest, TablesThatAreCutOrStrangeAddNothing) {
  std::string line = Line(kAll, 9'012);
  for (size_t length = 0; length < line.find(" 1000 "); length += 7) {
    PutTables(line.substr(0, length), line.substr(0, length) + "\n\n");
    EXPECT_THAT(Found(), HasSubstr("listens on no port")) << length;
  }
  // A machine without IPv6 has no second table.
  PutTables(Line("00000000", 9'012), "");
  std::filesystem::remove(proc_.root() + "/40/net/tcp6");
  EXPECT_EQ(Found(), "ipv4:127.0.0.1:9012");
}

}  // namespace
}  // namespace neurontrace
