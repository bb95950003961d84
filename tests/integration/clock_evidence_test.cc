// SPDX-License-Identifier: Apache-2.0
// An agent and an aggregator, each in a process of its own: they exchange probes over loopback, and
// what was measured is in the store after the aggregator was killed and started again. As both live
// on one machine, the truth is known: the reference timescale is raw and the epoch's offset.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/store.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

constexpr std::chrono::seconds kPatience{60};

// A program in a process of its own, which says where it listens and serves its health.
class Daemon {
 public:
  Daemon(const char* program, std::vector<std::string> arguments) {
    int out[2];
    EXPECT_EQ(pipe(out), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      std::vector<char*> argv = {const_cast<char*>(program)};
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(program, argv.data());
      _exit(127);
    }
    close(out[1]);
    output_.reset(fdopen(out[0], "r"));
    while (address_.empty() || health_port_ == 0) {
      char line[512];
      if (fgets(line, sizeof(line), output_.get()) == nullptr) {
        ADD_FAILURE() << program << " ended before it listened";
        return;
      }
      const std::string text(line);
      const size_t address = text.find("listening on ");
      if (address != std::string::npos) {
        address_ = text.substr(address + 13, text.find_first_of(",\n", address) - address - 13);
      }
      const size_t health = text.find("health on port ");
      if (health != std::string::npos) health_port_ = atoi(text.c_str() + health + 15);
    }
  }
  ~Daemon() {
    if (pid_ > 0) End(SIGKILL);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  void End(int signal) {
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  const std::string& address() const { return address_; }

  // The value of a metric, summed over its labels; 0 where there is none.
  double Metric(const std::string& name) const {
    const std::string page = Metrics();
    double sum = 0;
    for (size_t at = page.find("\n" + name); at != std::string::npos;
         at = page.find("\n" + name, at + 1)) {
      const char after = page[at + 1 + name.size()];
      if (after != ' ' && after != '{') continue;
      const size_t end = page.find('\n', at + 1);
      sum += atof(page.c_str() + page.rfind(' ', end));
    }
    return sum;
  }

 private:
  std::string Metrics() const {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(health_port_));
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return "";
    const std::string request = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
    if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
    std::string page;
    char bytes[4'096];
    for (ssize_t n; (n = recv(fd.get(), bytes, sizeof(bytes), 0)) > 0;) {
      page.append(bytes, static_cast<size_t>(n));
    }
    return page;
  }

  pid_t pid_ = 0;
  std::unique_ptr<FILE, int (*)(FILE*)> output_{nullptr, fclose};
  std::string address_;
  int health_port_ = 0;
};

class ClockEvidenceTest : public testing::Test {
 protected:
  ClockEvidenceTest() {
    std::string form = (std::filesystem::temp_directory_path() / "nt_clocks_XXXXXX").string();
    directory_ = mkdtemp(form.data());
  }
  ~ClockEvidenceTest() override {
    agent_.reset();
    aggregator_.reset();
    std::filesystem::remove_all(directory_);
  }

  void StartAggregator(const std::string& address, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"--listen",         address,      "--store", store(),
                                          "--health-address", "127.0.0.1:0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    aggregator_ = std::make_unique<Daemon>(NEURONTRACE_AGGREGATOR, arguments);
  }
  void StartAgent() {
    agent_ = std::make_unique<Daemon>(
        NEURONTRACE_AGENT,
        std::vector<std::string>{"--aggregator", aggregator_->address(), "--socket",
                                 directory_ + "/agent.sock", "--spool", "none", "--instance-id",
                                 "i-clocks", "--health-address", "127.0.0.1:0"});
  }
  // Waits until a metric of the agent's is so high.
  void WaitForAgent(const std::string& metric, double value) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (agent_->Metric(metric) < value) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline)
          << metric << " is " << agent_->Metric(metric) << " and not " << value;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // tidy: poll
    }
  }
  // Ends both, and checks what is stored against the truth.
  ClockEvidence EndAndRead() {
    agent_->End(SIGTERM);
    aggregator_->End(SIGTERM);
    const auto opened = Store::Open(store(), {});
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return {};
    const ClockEvidenceStore& clocks = (*opened)->clocks();
    const auto hosts = clocks.Hosts();
    // The aggregator's own, and the agent's.
    EXPECT_TRUE(hosts.ok() && hosts->size() == 2);
    if (!hosts.ok() || hosts->size() != 2) return {};
    EXPECT_TRUE(IsReferenceKeeper((*hosts)[0]));
    EXPECT_EQ((*hosts)[1].instance_id, "i-clocks");
    const auto epochs = clocks.Epochs();
    EXPECT_TRUE(epochs.ok() && epochs->size() == 1) << "one boot of this machine";
    const auto evidence = clocks.Read((*hosts)[1], {});
    EXPECT_TRUE(evidence.ok()) << evidence.status();
    if (!evidence.ok() || !epochs.ok() || epochs->empty()) return {};
    const uint64_t offset_ns = (*epochs)[0].offset_ns;
    const auto own = clocks.Read((*hosts)[0], {});
    EXPECT_TRUE(own.ok() && !own->snapshots.empty() && !own->exchanges.empty()) << own.status();
    if (!own.ok()) return {};
    for (const ClockExchange& exchange : own->exchanges) {
      EXPECT_EQ(exchange.reference_epoch, (*epochs)[0].number);
      EXPECT_EQ(exchange.reference_send_ns - exchange.receive_raw_ns, offset_ns);
    }
    for (const ClockExchange& exchange : evidence->exchanges) {
      EXPECT_EQ(exchange.reference_epoch, (*epochs)[0].number);
      EXPECT_LE(exchange.reference_send_ns - exchange.receive_raw_ns, offset_ns);
      EXPECT_GE(exchange.reference_receive_ns - exchange.send_raw_ns, offset_ns);
    }
    return *evidence;
  }
  std::string store() const { return directory_ + "/store"; }

  std::string directory_;
  std::unique_ptr<Daemon> aggregator_;
  std::unique_ptr<Daemon> agent_;
};

TEST_F(ClockEvidenceTest, ProbesOverUdpAreStoredAndOutliveTheAggregator) {
  StartAggregator("127.0.0.1:0");
  const std::string address = aggregator_->address();
  StartAgent();
  WaitForAgent("neurontrace_agent_clock_batches_stored_total", 1);
  WaitForAgent("neurontrace_agent_clock_exchanges_total", 64);
  aggregator_->End(SIGKILL);
  StartAggregator(address);
  const double stored = agent_->Metric("neurontrace_agent_clock_batches_stored_total");
  const double exchanges = agent_->Metric("neurontrace_agent_clock_exchanges_total");
  WaitForAgent("neurontrace_agent_clock_exchanges_total", exchanges + 64);
  WaitForAgent("neurontrace_agent_clock_batches_stored_total", stored + 2);
  EXPECT_EQ(agent_->Metric("neurontrace_agent_clock_batches_dropped_total"), 0);
  const ClockEvidence evidence = EndAndRead();
  EXPECT_GE(evidence.exchanges.size(), 128u);
  EXPECT_GE(evidence.snapshots.size(), 1u);
  for (const ClockExchange& exchange : evidence.exchanges) {
    EXPECT_EQ(exchange.path, ProbePath::kUdp);
  }
}

TEST_F(ClockEvidenceTest, ProbesGoInACallWhereThereIsNoUdp) {
  StartAggregator("127.0.0.1:0", {"--no-udp-probes"});
  StartAgent();
  WaitForAgent("neurontrace_agent_clock_exchanges_total", 20);
  EXPECT_EQ(agent_->Metric("neurontrace_agent_clock_probes_in_call"), 1);
  const ClockEvidence evidence = EndAndRead();
  EXPECT_GE(evidence.exchanges.size(), 20u) << "an agent that ends sends what it has";
  for (const ClockExchange& exchange : evidence.exchanges) {
    EXPECT_EQ(exchange.path, ProbePath::kGrpc);
  }
}

}  // namespace
}  // namespace neurontrace
